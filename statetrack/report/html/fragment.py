"""A table as a piece of HTML without style or script, which notebooks show."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from statetrack.report.table import Column, Styled, Table
from statetrack.text import visible


def table_html(table: Table) -> str:
    """The title, the table, its caption and its notes."""
    row, head = Markup("<tr>{}</tr>"), Markup("<th>{}</th>")
    headings = Markup("").join(head.format(each.heading) for each in table.columns)
    lines = [
        row.format(Markup("").join(map(_cell, table.columns, line.cells))) for line in table.lines
    ]
    said = [Markup("<p>{}</p>").format(visible(each)) for each in (table.caption, *table.notes)]
    parts = [
        Markup("<p><strong>{}</strong></p>").format(visible(table.title)),
        Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(
            row.format(headings), Markup("").join(lines)
        ),
        *said,
    ]
    return str(Markup("").join(parts))


def _cell(column: Column, cell: Any) -> Markup:
    text = Markup.escape(visible(column.text(cell)))
    if isinstance(cell, Styled):
        text = Markup("<strong>{}</strong>").format(text) if cell.strong else text
        text += Markup(" <small>{}</small>").format(cell.beside) if cell.beside else ""
    return Markup("<td>{}</td>").format(text)
