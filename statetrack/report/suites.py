"""A suite's table: rows of models, columns of tasks, measured and published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statetrack.evidence import WorstCase, length_text
from statetrack.report.entries import worst_text as worst_of_bracket
from statetrack.report.formats.markdown import table_markdown
from statetrack.report.table import Column, Table, share
from statetrack.runs import EvaluationRow
from statetrack.sweep import PointResult

WORST = WorstCase.kind

MOST_LENGTHS = 12
"""The most lengths that the table of curves has a column for: of more, every second or further."""

DIVERGED = "diverged"
"""Stands for the accuracy of a replica, or of a whole cell, that has no trained weights."""


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
    """The length up to which every word tried is right, as of an entry of a report.

    `not measured` where no word was sought; a wrong answer to the random words counts then.
    """
    if WORST not in result.searched:
        return "not measured"
    fails = result.bracket.fails_at is not None
    return f"{result.bracket.right_to:,}" if fails else worst_of_bracket(result.bracket)


_NAMES = (Column("task", "name", key="column"), Column("model", "name", key="row"))


def _of_selected(heading: str, key: str, instead: str = "-") -> Column:
    """A number of the selected replica; `instead` stands where all diverged."""

    def value(result: PointResult) -> str:
        return instead if result.selected is None else share(getattr(result.selected, key))

    return Column(heading, "whole", of=value)


def suite_markdown(
    rows: Sequence[str],
    columns: Sequence[str],
    results: Sequence[PointResult],
    published: Mapping[str, Mapping[str, float]],
    published_as: str,
) -> str:
    """One line per cell, with all measurements of it; the worst case where one was sought."""

    def was_searched(result: PointResult) -> bool:
        return bool(result.searched)

    def few(result: PointResult) -> str:
        each = _of_each(result.rows, result)
        return " ".join(each[:9]) + (" .." if len(each) > 9 else "")

    def in_print(result: PointResult) -> str:
        value = published.get(result.row, {}).get(result.column)
        return "" if value is None else f"{value:.2f}"

    shown = [
        *_NAMES,
        _of_selected("selected", "accuracy", DIVERGED),
        _of_selected("prefixes", "prefix_accuracy"),
        Column("all replicas", of=few),
        _of_selected("scaled", "scaled"),
        _of_selected("floor", "floor"),
        Column("right", of=_right),
        Column("horizon"),
        *([Column("worst case", of=worst_text)] if any(map(was_searched, results)) else []),
        Column("steps"),
        Column("s", key="seconds", write="{:.1f}".format),
        *([Column(published_as, of=in_print)] if published else []),
    ]
    return table_markdown(Table.of(shown, _in_order(rows, columns, results)))


def curves_markdown(results: Sequence[PointResult]) -> str:
    """Accuracy by length for every cell that was tested at several: all replicas, seed by seed."""
    curved = [result for result in results if result.measured.curve_lengths]
    if not curved:
        return ""

    def at(length: int) -> Column:
        def cell(result: PointResult) -> str:
            rows = [row for row in result.curves if row.length == length]
            return " ".join(_of_each(rows, result))

        return Column(f"{length:,}", of=cell)

    lengths = sorted({curved[0].measured.length, *curved[0].measured.curve_lengths})
    lengths = lengths[:: -(-len(lengths) // MOST_LENGTHS)]
    return table_markdown(Table.of([*_NAMES, *map(at, lengths)], curved))


def _machine(result: PointResult) -> str | None:
    found = result.bracket.extraction
    return None if found is None else found.cell(result.bracket.fails_at)


def _proven(result: PointResult) -> str:
    bracket = result.bracket
    if bracket.contradiction:
        return "CONTRADICTION"
    return length_text(bracket.verdict, bracket.proven)


def _exactly(result: PointResult) -> str | None:
    proof = result.bracket.certificate
    return None if proof is None else length_text(proof.verdict_real, proof.length_real)


def _first_failure(result: PointResult) -> str | None:
    errors = result.bracket.error_control
    return None if errors is None else errors.cell


EVIDENCE_COLUMNS = (
    *_NAMES,
    _of_selected("accuracy", "accuracy", DIVERGED),
    _of_selected("prefixes", "prefix_accuracy"),
    Column("random words right to", "whole", key="horizon"),
    Column("worst word right to", "whole", of=worst_text),
    Column("machine", "whole", of=_machine),
    Column("proven to", "whole", of=_proven),
    Column("in exact arithmetic", "whole", of=_exactly),
    Column("fails first in", "whole", of=_first_failure),
)
"""What the selected replica of each cell really does: the columns."""


def evidence_table(
    rows: Sequence[str], columns: Sequence[str], results: Sequence[PointResult]
) -> Table:
    """What the selected replica of each cell really does, to the worst word: one line per cell."""
    return Table.of(
        EVIDENCE_COLUMNS,
        _in_order(rows, columns, results),
        title="evidence about the selected replicas",
        look="framed",
        left_out=(*(each.heading for each in reversed(EVIDENCE_COLUMNS[6:])), "prefixes"),
        more="--markdown FILE has them",
    )


def _in_order(
    rows: Sequence[str], columns: Sequence[str], results: Sequence[PointResult]
) -> list[PointResult]:
    """The results column by column."""
    found = {(result.row, result.column): result for result in results}
    return [found[row, column] for column in columns for row in rows if (row, column) in found]


def _right(result: PointResult) -> str:
    return f"{result.num_right}/{result.replicas}"


def _of_each(rows: Sequence[EvaluationRow], result: PointResult) -> list[str]:
    """The accuracy of every replica, in their order."""
    accuracies = {row.replica: share(row.accuracy) for row in rows}
    return [accuracies.get(replica, DIVERGED) for replica in range(result.replicas)]
