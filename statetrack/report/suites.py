"""A suite's table: rows of models, columns of tasks, measured and published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statetrack.evidence import WorstCase, length_text
from statetrack.markup import markdown
from statetrack.report.formats.rich import FittedTable
from statetrack.report.table import share
from statetrack.runs import EvaluationRow
from statetrack.sweep import PointResult

WORST = WorstCase.kind

DIVERGED = "diverged"
"""Stands for the accuracy of a replica, or of a whole cell, that has no trained weights."""


def suite_table(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    results: Sequence[PointResult],
    published: Mapping[str, Mapping[str, float]],
    measure: str,
) -> FittedTable:
    """One cell per model and task, with the published number, if any, in brackets."""
    found = {(result.row, result.column): result for result in results}
    table = FittedTable(title, look="framed", in_blocks=True)
    table.add_column(kind="name")
    for column in columns:
        table.add_column(column, kind="number")
    for row in rows:
        cells = [
            cell_text(found[row, column], measure, published.get(row, {}).get(column))
            if (row, column) in found
            else ""
            for column in columns
        ]
        table.add_row(row, *cells)
    return table


def cell_text(result: PointResult, measure: str, published: float | None) -> str:
    """`1.00 3/3`: the selected replica's accuracy and how many replicas are right on every word.

    Where all replicas diverged, it says so: `diverged 0/3`. Below stands the worst-case horizon of
    the selected replica, where one was looked for.
    """
    if measure == "success":
        text = share(result.success, 3)
    elif result.selected is None:
        text = f"{DIVERGED} {_right(result)}"
    else:
        text = f"{share(getattr(result.selected, measure))} {_right(result)}"
    text = text if published is None else f"{text} [{published:.2f}]"
    return f"{text}\n{worst_text(result)}" if WORST in result.searched else text


def worst_text(result: PointResult) -> str:
    """The length up to which every word tried is right: `1,701`, or `>= 30,000` without a failure.

    A wrong answer to the random words counts too, and a proof of more than was tried: `all lengths`
    where that is proven. `not measured` where no word was sought, and `-` where none could be.
    """
    if WORST not in result.searched:
        return "not measured"
    bracket = result.bracket
    if bracket.fails_at is not None:
        return f"{bracket.right_to:,}"
    if bracket.proven is None:
        return "all lengths"
    return "-" if bracket.worst_case is None else f">= {bracket.right_to:,}"


def suite_markdown(
    rows: Sequence[str],
    columns: Sequence[str],
    results: Sequence[PointResult],
    published: Mapping[str, Mapping[str, float]],
    published_as: str,
) -> str:
    """One line per cell, with all measurements of it."""
    found = {(result.row, result.column): result for result in results}
    head = (
        "| task | model | selected | prefixes | all replicas | scaled | floor | right | horizon "
        "| worst case | steps | s |"
    )
    lines = [head, "|---" * 12 + "|"]
    if published:
        lines = [f"{head} {markdown(published_as)} |", lines[1] + "---|"]
    for column in columns:
        for row in rows:
            if (row, column) in found:
                lines.append(_line(found[row, column], published))
    return "\n".join(lines) + "\n"


def curves_markdown(results: Sequence[PointResult]) -> str:
    """Accuracy by length for every cell that was tested at several: all replicas, seed by seed."""
    curved = [result for result in results if result.measured.curve_lengths]
    if not curved:
        return ""
    measured = curved[0].measured
    lengths = sorted({measured.length, *measured.curve_lengths})
    lines = [
        "| task | model | " + " | ".join(f"{length:,}" for length in lengths) + " |",
        "|---|---|" + "---|" * len(lengths),
    ]
    for result in curved:
        cells = [
            " ".join(_of_each([row for row in result.curves if row.length == length], result))
            for length in lengths
        ]
        names = f"| {markdown(result.column)} | {markdown(result.row)} | "
        lines.append(names + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


EVIDENCE_COLUMNS = (
    *("task", "model", "accuracy", "prefixes", "random words right to", "worst word right to"),
    *("machine", "proven to", "in exact arithmetic", "fails first in"),
)
"""What the selected replica of each cell really does: the columns."""


def evidence_table(
    rows: Sequence[str], columns: Sequence[str], results: Sequence[PointResult]
) -> FittedTable:
    """What the selected replica of each cell really does, to the worst word: one line per cell."""
    table = FittedTable(
        "evidence about the selected replicas",
        look="framed",
        left_out=(*reversed(EVIDENCE_COLUMNS[6:]), "prefixes"),
        more="--markdown FILE has them",
    )
    for place, column in enumerate(EVIDENCE_COLUMNS):
        table.add_column(column, kind="name" if place < 2 else "whole")
    for result in _in_order(rows, columns, results):
        table.add_row(result.column, result.row, *_evidence_cells(result))
    return table


def evidence_markdown(
    rows: Sequence[str], columns: Sequence[str], results: Sequence[PointResult]
) -> str:
    """The same in Markdown."""
    lines = ["| " + " | ".join(EVIDENCE_COLUMNS) + " |", "|---" * len(EVIDENCE_COLUMNS) + "|"]
    for result in _in_order(rows, columns, results):
        names = [markdown(result.column), markdown(result.row)]
        lines.append("| " + " | ".join([*names, *_evidence_cells(result)]) + " |")
    return "\n".join(lines) + "\n"


def _in_order(
    rows: Sequence[str], columns: Sequence[str], results: Sequence[PointResult]
) -> list[PointResult]:
    """The results column by column."""
    found = {(result.row, result.column): result for result in results}
    return [found[row, column] for column in columns for row in rows if (row, column) in found]


def _evidence_cells(result: PointResult) -> list[str]:
    selected, bracket = result.selected, result.bracket
    proof, machine, errors = bracket.certificate, bracket.extraction, bracket.error_control
    proven = length_text(bracket.verdict, bracket.proven)
    return [
        DIVERGED if selected is None else share(selected.accuracy),
        "-" if selected is None else share(selected.prefix_accuracy),
        f"{result.horizon:,}",
        worst_text(result),
        "-" if machine is None else machine.cell(bracket.fails_at),
        "CONTRADICTION" if bracket.contradiction else proven,
        "-" if proof is None else length_text(proof.verdict_real, proof.length_real),
        "-" if errors is None else errors.cell,
    ]


def _line(result: PointResult, published: Mapping[str, Mapping[str, float]]) -> str:
    selected, each = result.selected, _of_each(result.rows, result)
    few = " ".join(each[:9]) + (" .." if len(each) > 9 else "")
    if selected is None:
        accuracy, prefixes, scaled, floor = DIVERGED, "-", "-", "-"
    else:
        accuracy, prefixes = share(selected.accuracy), share(selected.prefix_accuracy)
        scaled, floor = share(selected.scaled), share(selected.floor)
    cells = [
        markdown(result.column),
        markdown(result.row),
        accuracy,
        prefixes,
        few,
        scaled,
        floor,
        _right(result),
        f"{result.horizon:,}",
        worst_text(result),
        f"{result.steps:,}",
        f"{result.seconds:.1f}",
    ]
    if published:
        value = published.get(result.row, {}).get(result.column)
        cells.append("" if value is None else f"{value:.2f}")
    return "| " + " | ".join(cells) + " |"


def _right(result: PointResult) -> str:
    return f"{result.num_right}/{result.replicas}"


def _of_each(rows: Sequence[EvaluationRow], result: PointResult) -> list[str]:
    """The accuracy of every replica, in their order."""
    accuracies = {row.replica: share(row.accuracy) for row in rows}
    return [accuracies.get(replica, DIVERGED) for replica in range(result.replicas)]
