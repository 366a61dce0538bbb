"""A report in a terminal: a table that is never wider than it, with no number cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from statetrack.report.formats.rich import FittedTable
from statetrack.report.long_form import MAIN, LongRow, as_text, is_number
from statetrack.report.matrix import Cell, Matrix
from statetrack.report.table import Kind

SEPARATION = 3
"""The characters between two columns: a rule and a space on either side of it."""

HEADING = 10
"""The characters from which a column's name is broken into several lines."""


def matrix_view(matrix: Matrix, width: int, *, bold: bool = False) -> RenderableType:
    """The table, its caption and its notes; columns that do not fit stand in a table below.

    With `bold`, the best of each column stands out.
    """
    names = max((len(name) for name in (*matrix.row_names, "floor")), default=0)
    name_width = max(min(names, width // 3), min(names, 12))
    heads = [_broken(column) for column in matrix.column_names]
    widths = [
        max(
            max((len(_plain(row[place])) for row in matrix.cells), default=0),
            len(matrix.floors[place]) if matrix.floors else 0,
            *map(len, heads[place].split("\n")),
        )
        for place in range(len(heads))
    ]
    parts: list[RenderableType] = []
    for block in blocks(widths, width - name_width - SEPARATION - 1):
        parts.append(_table(matrix, block, widths, name_width, bold=bold, first=not parts))
    parts.append(Text(matrix.caption))
    parts += [Text(f"- {note}", "dim") for note in matrix.notes]
    return Group(*parts)


def blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """The places of columns, as many of them together as there is room for, and one at least."""
    found: list[list[int]] = []
    left = 0
    for place, width in enumerate(widths):
        needed = width + SEPARATION
        if not found or needed > left:
            found.append([])
            left = room
        found[-1].append(place)
        left -= needed
    return found


def long_view(rows: Sequence[LongRow], columns: Sequence[str] | None) -> RenderableType:
    """One line for each run and length; columns that do not fit are named below.

    With `columns`, these and no others: those that do not fit stand in a table below.
    """
    wanted = list(columns or MAIN)
    table = FittedTable(
        look="framed",
        more="--columns chooses, --format csv has all",
        in_blocks=columns is not None,
    )
    for place, name in enumerate(wanted):
        number = is_number(rows, name)
        kind: Kind = "number" if number else "name" if place < 2 and columns is None else "text"
        table.add_column(name, kind=kind)
    for row in rows:
        table.add_row(*(as_text(name, getattr(row, name)) for name in wanted))
    return table


def _table(
    matrix: Matrix,
    block: Sequence[int],
    widths: Sequence[int],
    name_width: int,
    *,
    bold: bool,
    first: bool,
) -> Table:
    table = Table(title=matrix.title if first else None, title_justify="left")
    table.add_column("", width=name_width, overflow="fold")
    for place in block:
        table.add_column(
            _broken(matrix.column_names[place]),
            justify="right",
            width=widths[place],
            overflow="fold",
        )
    for number, (name, cells) in enumerate(zip(matrix.row_names, matrix.cells, strict=True)):
        last = number + 1 == len(matrix.cells)
        shown = [_styled(cells[place], bold) for place in block]
        table.add_row(_broken(name, name_width), *shown, end_section=last and bool(matrix.floors))
    if matrix.floors:
        floors = [Text(matrix.floors[place], "dim") for place in block]
        table.add_row(Text("floor", "dim"), *floors)
    return table


def _broken(name: str, width: int = HEADING) -> str:
    """A name on lines of at most so many characters, broken after signs where it has some."""
    lines = [""]
    for part in re.findall(r"[^-:,; _]*[-:,; _]?", name):
        for start in range(0, len(part), width):
            piece = part[start : start + width]
            if len(lines[-1]) + len(piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.strip() for line in lines if line.strip())


def _plain(cell: Cell) -> str:
    return f"{cell.text} {cell.right}".rstrip()


def _styled(cell: Cell, bold: bool) -> Text:
    look = "bold" if bold and cell.best else "red" if cell.text in ("failed", "diverged") else ""
    text = Text(cell.text, look if cell.value is not None or look == "red" else "dim")
    return text.append(f" {cell.right}", "dim") if cell.right else text
