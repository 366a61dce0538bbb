"""Tables of training and of evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statetrack.report.drawing import interval, share, small
from statetrack.report.formats.rich import FittedTable
from statetrack.runs import EvaluationRow, Summary
from statetrack.scoring import Score, horizon
from statetrack.text import visible
from statetrack.training import Finish

MARK = "◀"
"""The mark of the replica that validation selected."""

IN_SUMMARY = "summary.json has them"
"""Where the columns stand for which a terminal is too narrow."""


def training_table(title: str, summary: Summary) -> FittedTable:
    """The outcome of each replica of a run; the selected one is marked."""
    table = FittedTable(title, look="framed", left_out=("best step", "loss"), more=IN_SUMMARY)
    for heading in ("replica", "seed", "lr", "best step", "loss", "accuracy"):
        table.add_column(heading, kind="number")
    table.add_column(kind="whole")
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


def evaluation_table(title: str, rows: Sequence[EvaluationRow]) -> FittedTable:
    """Accuracy by length, and by replica where there are several, with interval and floor."""
    several = len({row.replica for row in rows}) > 1
    ends = [
        (several and at[1] != after[1]) or at[0] != after[0]
        for at, after in _neighbours([(row.words, row.length) for row in rows])
        if after is not None
    ] + [False] * bool(rows)
    bold = [several and row.selected for row in rows]
    columns = _columns(rows, several)
    return framed_table(title, columns, left_out=LEFT_OUT_FIRST, ends=ends, bold=bold)


def evaluations_table(
    title: str, runs: Sequence[tuple[str, Sequence[EvaluationRow]]]
) -> FittedTable:
    """The same of several runs, named in the first column."""
    rows = [row for _, own in runs for row in own]
    names = [name for name, own in runs for _ in own]
    several = any(len({row.replica for row in own}) > 1 for _, own in runs)
    shown = [name if name != before else "" for name, before in _neighbours(names, -1)]
    return framed_table(
        title,
        {"run": shown} | _columns(rows, several),
        left_out=LEFT_OUT_FIRST,
        names=["run"],
        ends=[at != after for at, after in _neighbours(names)],
        bold=[several and row.selected for row in rows],
    )


def _columns(rows: Sequence[EvaluationRow], several: bool) -> dict[str, list[str]]:
    """The cells of each column by its heading; several replicas have columns of their own."""
    columns = {"length": [f"{row.length:,}" for row in rows]}
    if len({row.words for row in rows}) > 1:
        columns = {"words": [visible(row.words) for row in rows]} | columns
    if several:
        columns["seed"] = [str(row.seed) for row in rows]
        columns["lr"] = [f"{row.lr:g}" for row in rows]
    columns |= {
        "accuracy": [share(row.accuracy) for row in rows],
        "95 % interval": [interval(row.low, row.high) for row in rows],
        "symbols": [share(row.symbol_accuracy) for row in rows],
        "prefixes": [share(row.prefix_accuracy) for row in rows],
        "floor": [share(row.floor) for row in rows],
        "scaled": [share(row.scaled) for row in rows],
    }
    if several:
        columns[""] = [MARK if row.selected else "" for row in rows]
    return columns


LEFT_OUT_FIRST = ("scaled", "symbols", "prefixes", "95 % interval", "floor")
"""The columns that a narrow terminal goes without, in this order."""


def framed_table(
    title: str,
    columns: Mapping[str, Sequence[str]],
    *,
    left_out: Sequence[str],
    names: Sequence[str] = (),
    texts: Sequence[str] = (),
    ends: Sequence[bool] = (),
    bold: Sequence[bool] = (),
    more: str = "--csv has them",
) -> FittedTable:
    """A table of numbers in a frame, of cells by headings, as wide as there is room for.

    The columns `names` and `texts` may be broken into lines, `left_out` says which are left out
    first. `ends` says after which rows a line is drawn, and `bold` which stand out.
    """
    table = FittedTable(title, look="framed", left_out=left_out, more=more)
    for heading in columns:
        is_name = heading in names
        table.add_column(
            heading, kind="name" if is_name else "text" if heading in texts else "number"
        )
    for number, cells in enumerate(zip(*columns.values(), strict=True)):
        style = "bold" if bold and bold[number] else None
        table.add_row(*cells, style=style, end_section=bool(ends) and ends[number])
    return table


def _neighbours(values: Sequence[Any], step: int = 1) -> list[tuple[Any, Any]]:
    """Each value with the one after it (with step -1: before it), None at the end."""
    beside = [*values[1:], None] if step == 1 else [None, *values[:-1]]
    return list(zip(values, beside, strict=True))


def closing_sentence(rows: Sequence[Score]) -> str:
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
