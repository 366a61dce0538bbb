"""Markdown: what a reader is shown, as tables and paragraphs."""

from __future__ import annotations

from typing import Any

from statetrack.report.table import FORMATS, Column, Document, ReportFormat, Styled, Table
from statetrack.text import markdown, markdown_code, markdown_table, visible


def table_markdown(table: Table) -> str:
    """The rows of a table below its headings, without what is said of it."""
    head = [_line(column.heading) for column in table.columns]
    rows = []
    for line in table.lines:
        cells = [_cell(*each) for each in zip(table.columns, line.cells, strict=False)]
        rows.append([*cells, *[""] * (len(head) - len(cells))])
    return markdown_table(head, rows)


def _cell(column: Column, cell: Any) -> str:
    text = " ".join(column.text(cell).split())
    if not isinstance(cell, Styled):
        return _line(text)
    text = markdown_code(visible(text)) if cell.code else _line(text)
    text = f"**{text}**" if cell.strong else text
    return f"{text} ({_line(cell.beside)})" if cell.beside else text


def _line(text: str) -> str:
    return markdown(visible(text))


def _draw(document: Document) -> str:
    return "\n".join(
        _whole(part) if isinstance(part, Table) else f"{_line(part)}\n" for part in document.parts()
    )


def _whole(table: Table) -> str:
    said = ": ".join(_line(" ".join(each.split())) for each in (table.title, table.caption) if each)
    text = (f"{said}\n\n" if said else "") + table_markdown(table)
    if table.notes:
        text += "\n" + "".join(f"- {markdown(visible(note, lines=True))}\n" for note in table.notes)
    return text


FORMATS.register("markdown")(ReportFormat(".md", _draw))
