"""Rich tables of training and of evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

MARK = "◀"
"""Stands beside the replica that validation selected."""
Row = dict[str, Any]


def share(value: float | None) -> str:
    """An accuracy with two digits, rounded down: 1.00 means that nothing was wrong."""
    if value is None or value != value:
        return "-"
    return f"{int(value * 100 + 1e-9) / 100:.2f}" if value >= 0 else f"{value:.2f}"


def small(value: float | None) -> str:
    """A loss or a learning rate."""
    return "-" if value is None else f"{value:.2g}"


def training_table(title: str, replicas: Sequence[Row], selected: int) -> Table:
    """How each replica of a run came out; the selected one is marked."""
    table = Table(title=escape(title), title_justify="left")
    for heading in ("replica", "seed", "lr", "best step", "loss", "accuracy"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in replicas:
        mark = f"{MARK} selected" if row["replica"] == selected else row["stopped"]
        table.add_row(
            str(row["replica"]),
            str(row["seed"]),
            small(row["lr"]),
            str(row["best_step"]),
            small(row["validation_loss"]),
            share(row["validation_accuracy"]),
            mark,
            style="bold" if row["replica"] == selected else None,
        )
    return table


def evaluation_table(title: str, rows: Sequence[Row]) -> Table:
    """Accuracy by length and replica, with its interval and its floor."""
    table = Table(title=escape(title), title_justify="left")
    headings = ("length", "seed", "lr", "accuracy", "95 % interval", "symbols", "prefixes")
    for heading in (*headings, "floor", "scaled"):
        table.add_column(heading, justify="right")
    several = len({row["replica"] for row in rows}) > 1
    if several:
        table.add_column("")
    lengths = list(dict.fromkeys(row["length"] for row in rows))
    for length in lengths:
        here = [row for row in rows if row["length"] == length]
        for row in here:
            cells = [
                f"{length:,}",
                str(row["seed"]),
                small(row["lr"]),
                share(row["accuracy"]),
                f"{share(row['low'])}-{share(row['high'])}",
                share(row["symbol_accuracy"]),
                share(row["prefix_accuracy"]),
                share(row["floor"]),
                share(row["scaled"]),
            ]
            if several:
                cells.append(f"{MARK} selected" if row["selected"] else "")
            emphasis = "bold" if several and row["selected"] else None
            table.add_row(*cells, style=emphasis, end_section=several and row is here[-1])
    return table
