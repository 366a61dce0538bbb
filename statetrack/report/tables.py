"""Tables of training and of evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from statetrack.report.drawing import framed_table, interval, share, small
from statetrack.runs.rows import EvaluationRow, Summary
from statetrack.scoring import horizon
from statetrack.training.records import Finish

MARK = "◀"
"""The mark of the replica that validation selected."""


def training_table(title: str, summary: Summary) -> Table:
    """The outcome of each replica of a run; the selected one is marked."""
    table = framed_table(title)
    for heading in ("replica", "seed", "lr", "best step", "loss", "accuracy"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in summary.replicas:
        chosen = row.replica == summary.selected
        later = row.stopped == "diverged" and not row.diverged
        stopped = "diverged later" if later else row.stopped
        mark = f"{MARK} selected" + later * f", {stopped}" if chosen else stopped
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


def finish_line(finish: Finish) -> str:
    """What the end of training did to the selected replica."""
    if finish.refused:
        return f"not finished exactly: {finish.refused}"
    return (
        f"finished exactly: {finish.kept} of {finish.hidden} coordinates of the state used, "
        f"squared error {small(finish.loss_before)} before and {small(finish.loss_after)} after"
    )


def evaluation_table(title: str, rows: Sequence[EvaluationRow]) -> Table:
    """Accuracy by length, and by replica where there are several, with interval and floor."""
    several = len({row.replica for row in rows}) > 1
    table = framed_table(title)
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
            share(row.floor),
            share(row.scaled),
            *((MARK if row.selected else "",) if several else ()),
            style="bold" if several and row.selected else None,
            end_section=several and last,
        )
    return table


def closing_sentence(rows: Sequence[EvaluationRow]) -> str:
    """Up to which length one replica is right at every position, and where it is not, how often."""
    reach = horizon(rows)
    said = [f"every answer correct up to length {reach:,} of those tested"] if reach else []
    wrong = [row for row in rows if row.length > reach and row.prefix_accuracy < 1]
    if wrong:
        farthest = max(wrong, key=lambda row: row.length)
        said.append(
            f"at length {farthest.length:,}, {_share_of_words(farthest.prefix_accuracy)} right at "
            "every position"
        )
        errors = [row.first_error for row in wrong if row.first_error is not None]
        if errors:
            said[-1] += f", and the first error is at position {min(errors):,}"
    broken = [row.nonfinite_from for row in rows if row.nonfinite_from is not None]
    if broken:
        said.append(f"logits are NaN or infinite from length {min(broken):,}")
    return "; ".join(said) or "no label is asked for at any length tested"


def _share_of_words(value: float) -> str:
    if value == 0:
        return "no word is"
    shown = share(value)
    return f"{shown if float(shown) else 'less than 0.01'} of the words are"
