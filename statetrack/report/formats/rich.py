"""A terminal: consoles, and tables that fit the width that there is.

No number is cut, and no word is broken. Where there is too little room, headings and texts are
broken into lines between their words, then columns are left out in a stated order. Below the table
stands which, and how to see them. A format `rich` is the same without colours.

Text is never markup: `[on]` or `:smile:` in a name is shown as it is. A character that cannot be
printed is shown as an escape, wherever the text comes from.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table as Frame
from rich.text import Text

from statetrack.report.table import (
    FORMATS,
    NO_BREAK,
    Column,
    Document,
    Kind,
    Look,
    ReportFormat,
    Styled,
    Table,
)
from statetrack.text import visible

PIPED_WIDTH = 80
"""The width where standard output is not a terminal and COLUMNS is not set."""

IN_ASCII = str.maketrans({"◀": "<", "≥": ">", "≤": "<", "→": ">", "·": "."})
"""What stands for the signs of tables in terminals without Unicode, each as wide."""

NARROWEST_TEXT, NARROWEST_NAME = 20, 16
"""The widths that texts and names keep, if they have them, before columns are left out."""

LONGEST_WORD = 24
"""A longer word, such as a path, is broken after its signs before columns are left out."""

SEPARATION = 3
"""The characters between two columns of a matrix: a rule and a space on either side of it."""

HEADING, LONGEST_HEAD = 10, 16
"""The characters from which a heading of a matrix is broken into lines, and a word in it."""

DEEPER = 4
"""How much further in an equation goes on that is longer than a line."""

HANGING = 2
"""The same of a sentence."""

CLAUSE_ENDS, FILLED = (",", ";"), 0.6
"""Signs after which a line is broken sooner than elsewhere, where it is filled to such a share."""


class _PlainConsole(Console):
    """A console that takes no text for markup, and lets no character through that has an effect.

    Rich writes the escape sequences of styles itself, after this.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(highlight=False, emoji=False, markup=False, **given)

    def print(self, *objects: Any, **given: Any) -> None:
        """Print as rich does; a sentence that is longer than a line goes on below, further in."""
        soft = given.get("soft_wrap")
        if not (self.soft_wrap if soft is None else soft):
            objects = tuple(
                hanging(each, self.width) if isinstance(each, str) else each for each in objects
            )
        super().print(*objects, **given)

    def on_broken_pipe(self) -> None:
        """Raise the error: whoever calls a command decides on the exit code."""
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        in_ascii = self.in_ascii
        for segment in super().render(renderable, options):
            text, style, control = segment
            shown = text if control else visible(text, lines=True)
            if in_ascii:
                shown = shown.translate(IN_ASCII)
            yield segment if shown == text else Segment(shown, style, control)

    @property
    def in_ascii(self) -> bool:
        """Whether the terminal has no Unicode; rich draws frames in ASCII there of itself."""
        return not self.encoding.lower().startswith("utf")


def console() -> _PlainConsole:
    """Standard output, as wide as the terminal; `PIPED_WIDTH` if it is not a terminal."""
    is_piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return _PlainConsole(width=PIPED_WIDTH if is_piped else None)


def text_of(shown: RenderableType, width: int) -> str:
    """What a console of a width would print, without styles."""
    to = io.StringIO()
    _PlainConsole(file=to, width=width, color_system=None).print(shown)
    return "".join(f"{line.rstrip()}\n" for line in to.getvalue().splitlines())


def error_console() -> Console:
    """Standard error; its lines are not broken."""
    return _PlainConsole(stderr=True, soft_wrap=True)


def prose(docstring: str, console: Console) -> None:
    """A docstring, filled to the terminal's width; lines of indented paragraphs stay apart.

    Such a line that is longer goes on below, further in.
    """
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith(" "):
            for line in paragraph.split("\n"):
                indent = len(line) - len(line.lstrip(" "))
                room = console.width - indent
                parts = wrapped(
                    Text(line.strip()), room if len(line) <= console.width else room - DEEPER
                )
                for place, part in enumerate(parts):
                    console.print(" " * (indent + DEEPER * (place > 0)) + part.plain)
        else:
            console.print(Text(" ".join(paragraph.split())))
        console.print()


def rich_table(table: Table) -> RenderableType:
    """A table for a terminal, laid out when it is printed; its caption and notes stand below."""
    shown: RenderableType = _Matrix(table) if table.look == "matrix" else _Fitted(table)
    below = [_Sentence(table.caption)] if table.caption else []
    below += [_Sentence(f"- {note}", "dim") for note in table.notes]
    return Group(shown, *below) if below else shown


def alike(tables: Sequence[Table], room: int) -> list[Table]:
    """The tables without the columns that one of them has no room for, so that all show the same.

    Below the last one stands which these are.
    """
    gone: dict[str, None] = {}
    for table in tables:
        gone |= dict.fromkeys(column.heading for column in _Fitted(table).without(room))
    if not gone:
        return list(tables)
    shown = []
    for table in tables:
        kept = [n for n, column in enumerate(table.columns) if column.heading not in gone]
        rows = [
            replace(row, cells=[row.cells[n] for n in kept if n < len(row.cells)])
            for row in table.lines
        ]
        shown.append(replace(table, columns=[table.columns[n] for n in kept], rows=rows))
    named = ", ".join(" ".join(heading.split()) for heading in gone)
    shown[-1] = replace(shown[-1], caption=f"no room for: {named}; {shown[-1].more}")
    return shown


def _text(column: Column, cell: Any) -> Text:
    """A cell with its styles; what stands beside it is dim."""
    value = cell.value if isinstance(cell, Styled) and cell.text is None else cell
    if isinstance(value, Text):
        return value
    text = visible(column.text(cell), lines=True)
    if not isinstance(cell, Styled):
        return Text(text)
    found = Text(text, "bold" if cell.strong else cell.style)
    return found.append(f" {cell.beside}", "dim") if cell.beside else found


@dataclass(frozen=True)
class _Matrix:
    """A table whose columns have widths of their own: those without room stand in a table below."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns, rows = self.table.columns[1:], self.table.lines
        names = [visible(str(row.cells[0])) for row in rows]
        longest = max(map(len, [*names, "floor"]))
        name_width = max(min(longest, options.max_width // 3), min(longest, 12))
        cells = [
            [_text(*each) for each in zip(columns, row.cells[1:], strict=True)] for row in rows
        ]
        heads = [
            f"{_head(column.over)}\n{column.under}" if column.over else _head(column.heading)
            for column in columns
        ]
        widths = [
            max(map(len, [*(own[place].plain for own in cells), *heads[place].split("\n")]))
            for place in range(len(heads))
        ]
        room = options.max_width - name_width - SEPARATION - 1
        shown, without = {""}, list[str]()
        for extra in dict.fromkeys(column.extra for column in columns if column.extra):
            some = [n for n, column in enumerate(columns) if column.extra in {*shown, extra}]
            if len(blocks([widths[n] for n in some], room)) == 1:
                shown.add(extra)
            else:
                without.append(extra)
        kept = [n for n, column in enumerate(columns) if column.extra in shown]
        first = True
        for places in blocks([widths[n] for n in kept], room):
            block = [kept[place] for place in places]
            frame = Frame(title=self.table.title if first else None, title_justify="left")
            frame.add_column("", width=name_width, overflow="fold")
            for place in block:
                frame.add_column(
                    heads[place], justify="right", width=widths[place], overflow="fold"
                )
            for row, name, own in zip(rows, names, cells, strict=True):
                frame.add_row(
                    Text(_broken(name, name_width), row.style or ""),
                    *(own[place] for place in block),
                    end_section=row.ends,
                )
            first = False
            yield frame
        if without:
            told = f"no room for: {', '.join(without)}; {self.table.more}"
            yield _Sentence(told, "dim")


@dataclass(frozen=True)
class _Sentence:
    """A text that goes on further in where it is longer than a line."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = hanging(self.text, options.max_width)
        shown.style = self.style
        yield shown


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


_PART = re.compile(r"[^-:,; _]*[-:,; _]?")
"""A part of a name, with the sign behind it."""


def _head(name: str) -> str:
    """A heading of a matrix; its words are whole, unless they are longer than those of a table."""
    longest = max(len(part.rstrip()) for part in _PART.findall(name))
    return _broken(name, max(HEADING, min(longest, LONGEST_HEAD)))


def _broken(name: str, width: int) -> str:
    """A name on lines of at most so many characters, broken after signs where it has some."""
    lines = [""]
    for part in _PART.findall(name):
        for start in range(0, len(part), width):
            piece = part[start : start + width]
            if len(lines[-1]) + len(piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.strip() for line in lines if line.strip())


_PIECE = re.compile(r".+?(?:[-_/,:;=+|.)](?![0-9])|[/_=:|](?=[0-9])|$)", re.DOTALL)
_WORD = re.compile(r"^ *[^ ]* *|[^ ]+ *")

_GAPS: dict[Look, tuple[int, int]] = {"plain": (2, -2), "framed": (3, 1), "facts": (2, -2)}
"""The characters that a column adds to its width, and that a table adds to its columns."""


@dataclass(eq=False)
class _Column:
    """A column, whose widths are measured whenever the table is printed."""

    heading: str
    kind: Kind
    style: str
    cells: list[Text]
    widest: int = 0
    """The width at which nothing is broken."""
    least: int = 0
    """The width below which columns are left out in the order that is stated."""
    tightest: int = 0
    """The width at which no number is cut, and no word is broken but a long one at its signs.

    Below it all other columns are left out.
    """

    def measure(self) -> None:
        """Set the three widths."""
        cells = [cell.plain for cell in self.cells]
        heading = _longest(_words(self.heading))
        self.widest = max(map(_widest_line, [self.heading, *cells]))
        if self.kind in ("whole", "number"):
            self.least = self.tightest = max([heading, *map(_widest_line, cells)])
            return
        is_name = self.kind == "name"
        kept, most = (NARROWEST_NAME,) * 2 if is_name else (NARROWEST_TEXT, LONGEST_WORD)
        parts = _longest(part for cell in cells for part in (_pieces if is_name else _words)(cell))
        self.tightest = max(heading, min(parts, most))
        self.least = max(self.tightest, min(self.widest, kept))


class _Fitted:
    """A table whose layout is made when it is printed, for the width that there is then.

    Columns are left out in the order of `left_out`, after them all others from the last one on but
    the first and those without a heading, which hold marks. With `in_blocks` none is left out:
    those without room stand in a table below, with the first column again.
    """

    def __init__(self, table: Table) -> None:
        self._table, self._lines = table, table.lines
        self._columns = [
            _Column(
                visible(column.heading, lines=True),
                column.kind,
                column.style,
                [
                    _shown(_text(column, line.cells[place])) if place < len(line.cells) else Text()
                    for line in self._lines
                ],
            )
            for place, column in enumerate(table.columns)
        ]

    def without(self, room: int) -> list[_Column]:
        """The columns that a width has no room for."""
        for column in self._columns:
            column.measure()
        return self._blocks(room)[1]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width
        for column in self._columns:
            column.measure()
        if title := visible(self._table.title, lines=True):
            yield Text("\n").join(wrapped(Text(title, "italic"), room))
        blocks, left_out = self._blocks(room)
        for block in blocks:
            yield self._drawn(block, self._widths(block, room))
        if left_out:
            named = ", ".join(" ".join(column.heading.split()) for column in left_out)
            yield _Sentence(f"no room for: {named}; {self._table.more}", "dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        for column in self._columns:
            column.measure()
        widest = self._total(column.widest for column in self._columns)
        return Measurement(min(widest, options.max_width), min(widest, options.max_width))

    def _total(self, widths: Iterable[int]) -> int:
        each, around = _GAPS[self._table.look]
        return sum(width + each for width in widths) + around

    def _blocks(self, room: int) -> tuple[list[list[_Column]], list[_Column]]:
        """The columns of each table that is drawn, and those that are left out of all."""
        if self._table.in_blocks:
            return self._in_blocks(room), []
        kept = list(self._columns)
        others = kept[1:]
        names = dict.fromkeys(self._table.left_out)  # a name that is given twice counts once
        stated = [column for name in names for column in others if column.heading == name]
        for column in stated:
            if self._total(each.least for each in kept) <= room:
                break
            kept.remove(column)
        while self._total(each.tightest for each in kept) > room and self._table.look != "facts":
            named = [column for column in kept[1:] if column.heading]
            if not named:
                break
            kept.remove(named[-1])
        others.reverse()
        return [kept], [each for each in dict.fromkeys([*stated, *others]) if each not in kept]

    def _in_blocks(self, room: int) -> list[list[_Column]]:
        first, *others = self._columns
        found: list[list[_Column]] = []
        for column in others:
            if found and self._total(each.least for each in [*found[-1], column]) <= room:
                found[-1].append(column)
            else:
                found.append([first, column])
        return found or [[first]]

    def _widths(self, columns: Sequence[_Column], room: int) -> list[int]:
        """The width of each column.

        What is free goes to names, then to the narrowest of those that want more.
        """
        widest = [max(column.widest, column.least) for column in columns]
        least = [column.least for column in columns]
        if self._total(least) > room:
            least = [column.tightest for column in columns]
        free = room - self._total(least)
        while free < 0 and max(least) > 1:
            place = max(
                range(len(least)),
                key=lambda n: (columns[n].kind in ("text", "name"), least[n] > 1, least[n]),
            )
            place = place if least[place] > 1 else least.index(max(least))
            least[place] -= 1
            free += 1
        while free > 0 and least != widest:
            wanting = [n for n in range(len(least)) if least[n] < widest[n]]
            if not wanting:
                break
            least[
                min(wanting, key=lambda n: (not _is_short_name(columns[n], least[n]), least[n]))
            ] += 1
            free -= 1
        return least

    def _drawn(self, columns: Sequence[_Column], widths: Sequence[int]) -> Frame:
        table = _empty(self._table.look)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(
                Text("\n").join(wrapped(Text(column.heading), width)),
                justify="right" if column.kind == "number" else "left",
                width=width,
                no_wrap=True,
                overflow="fold",
                style=column.style,
                vertical="top",
            )
        for place, line in enumerate(self._lines):
            cells = [
                Text("\n").join(wrapped(column.cells[place], width))
                for column, width in zip(columns, widths, strict=True)
            ]
            table.add_row(*cells, style=line.style, end_section=line.ends)
        return table


def _is_short_name(column: _Column, width: int) -> bool:
    """Whether a column has names, and is not yet as wide as the longest word that is not broken."""
    return column.kind == "name" and width < LONGEST_WORD


def _shown(cell: Text) -> Text:
    """The text of a cell, with unprintable characters as escapes, which need more room."""
    plain = visible(cell.plain, lines=True)
    return cell if plain == cell.plain else Text(plain, cell.style)


def _empty(look: Look) -> Frame:
    if look == "framed":
        return Frame()
    if look == "facts":
        return Frame(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    return Frame(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
        collapse_padding=True,
    )


def wrapped(text: Text, width: int) -> list[Text]:
    """The lines of a text: broken between words, after signs in longer words, never in numbers."""
    found = []
    for line in text.split("\n", allow_blank=True):
        for part in line.divide(list(_breaks(line.plain, width))):
            part.rstrip()
            part.plain = part.plain.replace(NO_BREAK, " ")
            part.no_wrap = True
            part.overflow = "fold"
            found.append(part)
    return found


def hanging(text: str, width: int) -> Text:
    """A text whose longer lines go on below, further in than they begin."""
    found = []
    for line in visible(text, lines=True).split("\n"):
        deeper = len(line) - len(line.lstrip(" ")) + HANGING
        first = next(_breaks(line, width), len(line))
        found.append(line[:first].rstrip())
        rest = wrapped(Text(line[first:]), max(1, width - deeper))
        found += [" " * deeper + part.plain for part in rest if part.plain]
    return Text("\n".join(found).replace(NO_BREAK, " "), no_wrap=True, overflow="fold")


def _breaks(line: str, width: int) -> Iterator[int]:
    """The places at which a line is broken: after the last clause that fills it well, or word."""
    words = [(match.start(), match.group()) for match in _WORD.finditer(line) if match.group()]
    used = place = clause = 0
    while place < len(words):
        start, word = words[place]
        size = cell_len(word.rstrip(" "))
        if used and used + size > width:
            place = clause or place
            yield words[place][0]
            used = clause = 0
            continue
        place += 1
        if size <= width:
            used += cell_len(word)
            if word.rstrip(" ").endswith(CLAUSE_ENDS) and used >= FILLED * width:
                clause = place
            continue
        clause = 0
        for piece in _pieces_of_word(word, width):
            if used and used + cell_len(piece.rstrip(" ")) > width:
                yield start
                used = 0
            used += cell_len(piece)
            start += len(piece)


def _pieces_of_word(word: str, width: int) -> Iterator[str]:
    """The parts of a word that does not fit: after its signs, and of what is left, by width."""
    for piece in _PIECE.findall(word):
        while cell_len(piece.rstrip(" ")) > width:
            end = len(piece) - 1
            while end > 1 and cell_len(piece[:end]) > width:
                end -= 1
            yield piece[:end]
            piece = piece[end:]
        yield piece


def _words(text: str) -> list[str]:
    return [word for line in text.split("\n") for word in line.split(" ")]


def _pieces(text: str) -> list[str]:
    return [piece for word in _words(text) for piece in _PIECE.findall(word)]


def _longest(parts: Iterable[str]) -> int:
    return max(map(cell_len, parts), default=0)


def _widest_line(text: str) -> int:
    return _longest(text.split("\n"))


def _draw(document: Document) -> str:
    return "".join(text_of(part, PIPED_WIDTH) for part in document.parts())


FORMATS.register("rich")(ReportFormat(".txt", _draw, show=rich_table))
