"""Tables of training and of evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from statetrack.report.table import Column, Line, Table, interval, share, small
from statetrack.runs import EvaluationRow, Summary
from statetrack.scoring import Score, horizon
from statetrack.text import visible
from statetrack.training import Finish

MARK = "◀"
"""The mark of the replica that validation selected."""

OF_TRAINING = (
    Column("replica", "number"),
    Column("seed", "number", write=str),
    Column("lr", "number", write="{:g}".format),
    Column("best step", "number", key="best_step", write=str),
    Column("loss", "number", key="validation_loss", write=small),
    Column("accuracy", "number", key="validation_accuracy", write=share),
    Column("", "whole", key="stopped"),
)
"""What a table of training says of each replica; the last column marks the selected one."""


def training_table(title: str, summary: Summary) -> Table:
    """The outcome of each replica of a run; the selected one is marked."""
    rows = []
    for row in summary.replicas:
        chosen = row.replica == summary.selected
        later = row.stopped == "diverged" and not row.diverged
        stopped = "diverged later" if later else row.stopped
        mark = f"{MARK} selected" + later * f", {stopped}" if chosen else stopped
        cells = [*(column.value_of(row) for column in OF_TRAINING[:-1]), mark]
        rows.append(Line(cells, style="bold" if chosen else None))
    return Table(
        OF_TRAINING,
        rows,
        title=title,
        look="framed",
        left_out=("best step", "loss"),
        more="summary.json has them",
    )


def finish_line(finish: Finish) -> str:
    """What the end of training did to the selected replica."""
    if finish.refused:
        return f"not finished exactly: {finish.refused}"
    return (
        f"finished exactly: {finish.kept} of {finish.hidden} coordinates of the state used, "
        f"squared error {small(finish.loss_before)} before and {small(finish.loss_after)} after"
    )


OF_SCORES = (
    Column("accuracy", "number", write=share),
    Column("95 % interval", "number", of=lambda row: interval(row.low, row.high), key="interval"),
    Column("symbols", "number", key="symbol_accuracy", write=share),
    Column("prefixes", "number", key="prefix_accuracy", write=share),
    Column("floor", "number", write=share),
    Column("scaled", "number", write=share),
)
"""What a table of evaluation says of each row."""

LEFT_OUT_FIRST = ("scaled", "symbols", "prefixes", "95 % interval", "floor")
"""The columns that a narrow terminal goes without, in this order."""


def evaluation_table(title: str, rows: Sequence[EvaluationRow]) -> Table:
    """Accuracy by length, and by replica where there are several, with interval and floor."""
    several = len({row.replica for row in rows}) > 1
    parts = [(row.words, row.length if several else 0) for row in rows]
    return _evaluation(title, rows, several, parts)


def evaluations_table(title: str, runs: Sequence[tuple[str, Sequence[EvaluationRow]]]) -> Table:
    """The same of several runs, named in the first column."""
    rows = [row for _, own in runs for row in own]
    several = any(len({row.replica for row in own}) > 1 for _, own in runs)
    names = [name for name, own in runs for _ in own]
    table = _evaluation(title, rows, several, names)
    shown = [
        name if name != before else "" for name, before in zip(names, ["", *names], strict=False)
    ]
    lines = [
        replace(line, cells=[name, *line.cells])
        for name, line in zip(shown, table.lines, strict=True)
    ]
    return replace(table, columns=[Column("run", "name"), *table.columns], rows=lines)


def _evaluation(
    title: str, rows: Sequence[EvaluationRow], several: bool, parts: Sequence[Any]
) -> Table:
    """A table with a line between rows of different parts, and the selected replica in bold."""
    columns = _columns(rows, several)
    lines = [
        Line(
            [column.value_of(row) for column in columns],
            style="bold" if several and row.selected else None,
            ends=number < len(rows) and parts[number] != parts[number - 1],
        )
        for number, row in enumerate(rows, start=1)
    ]
    return Table(
        columns, lines, title, look="framed", left_out=LEFT_OUT_FIRST, more="--csv has them"
    )


def _columns(rows: Sequence[EvaluationRow], several: bool) -> list[Column]:
    """The columns that rows need; several replicas have columns of their own."""
    columns = [Column("length", "number")]
    if len({row.words for row in rows}) > 1:
        columns.insert(0, Column("words", "number", of=lambda row: visible(row.words)))
    if several:
        columns += [
            Column("seed", "number", write=str),
            Column("lr", "number", write="{:g}".format),
        ]
    columns += OF_SCORES
    if several:
        mark = Column("", "number", of=lambda row: MARK if row.selected else "", key="selected")
        columns.append(mark)
    return columns


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
