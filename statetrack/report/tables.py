"""Tables of training and of evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from statetrack.report.drawing import framed_table, interval, share, small
from statetrack.runs.rows import EvaluationRow, Summary
from statetrack.scoring import Score, horizon
from statetrack.text import visible
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


def evaluation_table(title: str, rows: Sequence[EvaluationRow], width: int) -> Table:
    """Accuracy by length, and by replica where there are several, with interval and floor.

    Columns for which `width` has no room are left out, those that say least first, and named below.
    """
    several = len({row.replica for row in rows}) > 1
    ends = [
        (several and at[1] != after[1]) or at[0] != after[0]
        for at, after in _neighbours([(row.words, row.length) for row in rows])
        if after is not None
    ] + [False] * bool(rows)
    bold = [several and row.selected for row in rows]
    return fitted_table(
        title,
        _columns(rows, several),
        width,
        left_out_first=LEFT_OUT_FIRST,
        names="run",
        ends=ends,
        bold=bold,
    )


def evaluations_table(
    title: str, runs: Sequence[tuple[str, Sequence[EvaluationRow]]], width: int
) -> Table:
    """The same of several runs, named in the first column."""
    rows = [row for _, own in runs for row in own]
    names = [name for name, own in runs for _ in own]
    several = any(len({row.replica for row in own}) > 1 for _, own in runs)
    shown = [name if name != before else "" for name, before in _neighbours(names, -1)]
    ends = [at != after for at, after in _neighbours(names)]
    bold = [several and row.selected for row in rows]
    return fitted_table(
        title,
        {"run": shown} | _columns(rows, several),
        width,
        left_out_first=LEFT_OUT_FIRST,
        names="run",
        ends=ends,
        bold=bold,
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

NARROWEST_NAME = 16
"""The width that names of runs keep before columns are left out."""


def fitted_table(
    title: str,
    columns: Mapping[str, Sequence[str]],
    width: int,
    *,
    left_out_first: Sequence[str],
    names: str,
    ends: Sequence[bool] = (),
    bold: Sequence[bool] = (),
    elsewhere: str = "--csv",
) -> Table:
    """A table no wider than `width`, of cells by headings: numbers are never broken into lines.

    Only the column `names` is, and keeps `NARROWEST_NAME` letters; columns for which there is no
    room are left out in the given order, and named below: the option `elsewhere` prints them.
    `ends` says after which rows a line is drawn, and `bold` which stand out.
    """
    widths = {
        heading: max(map(len, [*heading.split("\n"), *cells])) for heading, cells in columns.items()
    }
    if names in widths:
        widths[names] = min(widths[names], NARROWEST_NAME)
    kept = list(columns)
    left_out = []
    for heading in left_out_first:
        if heading in kept and sum(widths[each] + 3 for each in kept) + 1 > width:
            kept.remove(heading)
            left_out.append(heading)
    table = framed_table(title)
    for heading in kept:
        is_name = heading == names
        table.add_column(
            heading,
            justify="left" if is_name else "right",
            no_wrap=not is_name,
            overflow="fold",
        )
    for number, cells in enumerate(zip(*(columns[heading] for heading in kept), strict=True)):
        style = "bold" if bold and bold[number] else None
        table.add_row(*cells, style=style, end_section=bool(ends) and ends[number])
    if left_out:
        named = ", ".join(" ".join(heading.split()) for heading in left_out)
        table.caption = f"no room for: {named}; {elsewhere} has them"
        table.caption_justify = "left"
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
