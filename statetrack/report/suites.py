"""A suite's table: rows of models, columns of tasks, measured and published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from statetrack.markup import markdown
from statetrack.report.drawing import framed_table, share
from statetrack.sweep.results import CellResult


def suite_table(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    results: Sequence[CellResult],
    published: Mapping[str, Mapping[str, float]],
    measure: str,
) -> Table:
    """One cell per model and task, with the published number, if any, in brackets."""
    found = {(result.row, result.column): result for result in results}
    table = framed_table(title)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        cells = [
            cell_text(found[row, column], measure, published.get(row, {}).get(column))
            if (row, column) in found
            else ""
            for column in columns
        ]
        table.add_row(row, *cells)
    return table


def cell_text(result: CellResult, measure: str, published: float | None) -> str:
    """`1.00 3/3`: the selected replica's accuracy and how many replicas are right on every word."""
    replicas = len(result.rows)
    right = round(result.success * replicas)
    if measure == "success":
        text = share(result.success, 3)
    else:
        text = f"{share(getattr(result.selected, measure))} {right}/{replicas}"
    return text if published is None else f"{text} [{published:.2f}]"


def suite_markdown(
    rows: Sequence[str],
    columns: Sequence[str],
    results: Sequence[CellResult],
    published: Mapping[str, Mapping[str, float]],
    published_as: str,
) -> str:
    """One line per cell, with all measurements of it."""
    found = {(result.row, result.column): result for result in results}
    head = (
        "| task | model | selected | all replicas | scaled | floor | right | horizon | steps | s |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    if published:
        lines = [f"{head} {markdown(published_as)} |", lines[1] + "---|"]
    for column in columns:
        for row in rows:
            if (row, column) in found:
                lines.append(_line(found[row, column], published))
    return "\n".join(lines) + "\n"


def curves_markdown(results: Sequence[CellResult]) -> str:
    """Accuracy by length for every cell that was tested at several: all replicas, seed by seed."""
    curved = [result for result in results if result.curves]
    if not curved:
        return ""
    lengths = list(dict.fromkeys(row.length for row in curved[0].curves))
    lines = [
        "| task | model | " + " | ".join(f"{length:,}" for length in lengths) + " |",
        "|---|---|" + "---|" * len(lengths),
    ]
    for result in curved:
        cells = [
            " ".join(share(row.accuracy) for row in result.curves if row.length == length)
            for length in lengths
        ]
        names = f"| {markdown(result.column)} | {markdown(result.row)} | "
        lines.append(names + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _line(result: CellResult, published: Mapping[str, Mapping[str, float]]) -> str:
    selected, rows = result.selected, result.rows
    few = " ".join(share(row.accuracy) for row in rows[:9]) + (" .." if len(rows) > 9 else "")
    cells = [
        markdown(result.column),
        markdown(result.row),
        share(selected.accuracy),
        few,
        share(selected.scaled),
        share(selected.floor),
        f"{round(result.success * len(rows))}/{len(rows)}",
        f"{result.horizon:,}",
        f"{result.steps:,}",
        f"{result.seconds:.1f}",
    ]
    if published:
        value = published.get(result.row, {}).get(result.column)
        cells.append("" if value is None else f"{value:.2f}")
    return "| " + " | ".join(cells) + " |"
