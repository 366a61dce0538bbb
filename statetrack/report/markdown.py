"""A report as Markdown: its table, what the numbers are, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from statetrack.markup import markdown, markdown_table
from statetrack.report.long_form import MAIN, LongRow, as_text
from statetrack.report.matrix import Cell, Matrix


def matrix_markdown(matrix: Matrix, *, bold: bool = False) -> str:
    """The table with its caption and notes; with `bold`, the best of each column stands out."""
    head = ["", *map(markdown, matrix.column_names)]
    rows = [
        [markdown(name), *(_cell(cell, bold) for cell in cells)]
        for name, cells in zip(matrix.row_names, matrix.cells, strict=True)
    ]
    if matrix.floors:
        rows.append(["floor", *map(markdown, matrix.floors)])
    text = f"{markdown(matrix.title)}: {markdown(matrix.caption)}\n\n{markdown_table(head, rows)}"
    if matrix.notes:
        text += "\n" + "".join(f"- {markdown(note)}\n" for note in matrix.notes)
    return text


def long_markdown(rows: Sequence[LongRow], columns: Sequence[str] = MAIN) -> str:
    """One line for each run and length."""
    lines = [[markdown(as_text(name, getattr(row, name))) for name in columns] for row in rows]
    return markdown_table([markdown(name) for name in columns], lines)


def _cell(cell: Cell, bold: bool) -> str:
    text = markdown(cell.text)
    text = f"**{text}**" if bold and cell.best else text
    return f"{text} ({cell.right})" if cell.right else text
