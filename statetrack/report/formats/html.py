"""HTML: a command's own page, or else its tables on a page that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import Any

from statetrack.report.table import FORMATS, Column, Document, ReportFormat, Styled, Table
from statetrack.text import visible

STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}caption{text-align:left;font-style:italic}"
    "th,td{padding:.2rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid #8884}"
    ".number{text-align:right;font-variant-numeric:tabular-nums}small{opacity:.7}"
)
"""The look of a page of tables, in light and dark."""


def table_html(table: Table) -> str:
    """The table with its title, and its caption and notes below."""
    lines = ["<table>"]
    if table.title:
        lines.append(f"<caption>{_text(table.title)}</caption>")
    head = (f"<th{_place(column)}>{_text(column.heading)}</th>" for column in table.columns)
    lines.append(f"<thead><tr>{''.join(head)}</tr></thead>")
    lines.append("<tbody>")
    for line in table.lines:
        cells = [_cell(*each) for each in zip(table.columns, line.cells, strict=False)]
        lines.append(f"<tr>{''.join(cells)}{'<td></td>' * (len(table.columns) - len(cells))}</tr>")
    lines += ["</tbody>", "</table>"]
    lines += [f"<p>{_text(said)}</p>" for said in (table.caption, *table.notes) if said]
    return "\n".join(lines)


def _cell(column: Column, cell: Any) -> str:
    text = _text(column.text(cell))
    if isinstance(cell, Styled):
        text = f"<code>{text}</code>" if cell.code else text
        text = f"<strong>{text}</strong>" if cell.strong else text
        text += f" <small>{_text(cell.beside)}</small>" if cell.beside else ""
    return f"<td{_place(column)}>{text}</td>"


def _place(column: Column) -> str:
    return ' class="number"' if column.kind == "number" else ""


def _text(text: str) -> str:
    return escape(visible(text, lines=True)).replace("\n", "<br>")


def _draw(document: Document) -> str:
    if document.page is not None:
        return document.page()
    parts = [
        table_html(part) if isinstance(part, Table) else f"<p>{_text(part)}</p>"
        for part in document.parts()
    ]
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(document.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_text(document.title)}</h1>\n"
    )
    return head + "\n".join(parts) + "\n</body>\n</html>\n"


FORMATS.register("html")(ReportFormat(".html", _draw, holds="everything"))
