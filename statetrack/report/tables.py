"""Rich tables of training and of evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from statetrack.runs.rows import EvaluationRow, Summary

MARK = "◀"
"""Stands beside the replica that validation selected."""


def share(value: float | None) -> str:
    """An accuracy with two digits, rounded down: 1.00 means that nothing was wrong."""
    if value is None or value != value:
        return "-"
    return f"{int(value * 100 + 1e-9) / 100:.2f}" if value >= 0 else f"{value:.2f}"


def rounded(value: float | None) -> str:
    """A floor or a scaled accuracy, to the nearest hundredth; never `-0.00`."""
    return "-" if value is None or value != value else f"{round(value, 2) + 0.0:.2f}"


def interval(low: float, high: float) -> str:
    """A 95 % interval, or `-` where nothing was scored."""
    return "-" if low != low else f"{low:.3f}-{high:.3f}"


def small(value: float | None) -> str:
    """A loss."""
    return "-" if value is None else f"{value:.1e}"


def training_table(title: str, summary: Summary) -> Table:
    """How each replica of a run came out; the selected one is marked."""
    table = Table(title=escape(title), title_justify="left")
    for heading in ("replica", "seed", "lr", "best step", "loss", "accuracy"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in summary.replicas:
        chosen = row.replica == summary.selected and row.validation_accuracy is not None
        mark = f"{MARK} selected" if chosen else row.stopped
        table.add_row(
            str(row.replica),
            str(row.seed),
            f"{row.lr:g}",
            str(row.best_step),
            small(row.validation_loss),
            share(row.validation_accuracy),
            mark,
            style="bold" if chosen else None,
        )
    return table


def evaluation_table(title: str, rows: Sequence[EvaluationRow]) -> Table:
    """Accuracy by length, and by replica where there are several, with interval and floor."""
    several = len({row.replica for row in rows}) > 1
    table = Table(title=escape(title), title_justify="left")
    for heading in ("length", *(("seed", "lr") if several else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("accuracy", "95 % interval", "symbols", "prefixes", "floor", "scaled"):
        table.add_column(heading, justify="right", no_wrap=True)
    if several:
        table.add_column("", no_wrap=True)
    for number, row in enumerate(rows):
        last = number + 1 == len(rows) or rows[number + 1].length != row.length
        table.add_row(
            f"{row.length:,}",
            *((str(row.seed), f"{row.lr:g}") if several else ()),
            share(row.accuracy),
            interval(row.low, row.high),
            share(row.symbol_accuracy),
            share(row.prefix_accuracy),
            rounded(row.floor),
            rounded(row.scaled),
            *((MARK if row.selected else "",) if several else ()),
            style="bold" if several and row.selected else None,
            end_section=several and last,
        )
    return table
