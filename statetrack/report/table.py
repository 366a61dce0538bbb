"""A table as plain data, which every format draws: columns, rows, and what is said of it.

Who has results to show says their columns, and nothing else. A report format is one file of
`statetrack/report/formats`, named after it; the ending that it registers is how the name of a file
asks for it. Numbers are rounded down, as
everywhere, so 1.00 means that every answer was right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from statetrack.errors import SettingsError
from statetrack.registry import Registry, modules_in
from statetrack.scoring import rounded_down, rounded_up

Kind = Literal["text", "name", "whole", "number"]
"""What a column holds: text is broken between words, a name also after its signs (`-`, `/`, `:`),
a whole cell never; a number is whole, and stands on the right."""

Look = Literal["plain", "framed", "facts", "matrix"]
"""In a terminal: a line below the headings, a frame around every cell, neither lines nor headings,
or a frame in which every column has its own width, and columns without room stand below."""

MISSING = "-"
"""Stands where there is no value."""

SHOWN = {"yes": "can", "no": "cannot", "unknown": "?"}
LOOKS = {"yes": "green", "no": "red", "unknown": "dim"}
"""The text of a prediction's answer, and its style."""

NO_BREAK = "\N{NO-BREAK SPACE}"
"""Holds two words on one line; it is printed as a space."""


def breaking_at_brackets(text: str) -> str:
    """A text, such as `hidden 3 (37 is enough)`, that breaks into lines before brackets alone."""
    return re.sub(rf"{NO_BREAK}(?=[\[(])", " ", text.replace(" ", NO_BREAK))


def written(value: Any) -> str:
    """A value as readers see it, where its column does not say otherwise."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(written, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def share(value: float | None, digits: int = 2) -> str:
    """An accuracy, a floor or a scaled accuracy, rounded down; `-` where there is none."""
    return MISSING if value is None or not math.isfinite(value) else rounded_down(value, digits)


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval, rounded outwards, or `-` where nothing was scored."""
    if low is None or high is None or not math.isfinite(low + high):
        return MISSING
    return f"{rounded_down(low, 3)}-{rounded_up(high, 3)}"


def small(value: float | None) -> str:
    """A loss."""
    return MISSING if value is None else f"{value:.1e}"


@dataclass(frozen=True)
class Column:
    """A column: the `heading` that readers see, and the `key` in files, by default the same.

    `of` is the value of a row's thing, by default its attribute or item of that key; `write` is how
    readers see a value; programs get the value itself, of the type `holds` where that is given.
    Columns beside each other with one text `over` can have it as their common heading, and `under`
    in place of their own. A terminal shows columns with one text `extra` only where there is room
    for all of them, and else names it below.
    """

    heading: str
    kind: Kind = "text"
    of: Callable[[Any], Any] | None = None
    write: Callable[[Any], str] = written
    key: str = ""
    style: str = ""
    holds: type | None = None
    over: str = ""
    under: str = ""
    extra: str = ""

    @property
    def name(self) -> str:
        """The column's name in files."""
        return self.key or self.heading

    def value_of(self, thing: Any) -> Any:
        """The value that stands in the row of a thing."""
        if self.of is not None:
            return self.of(thing)
        return thing[self.name] if isinstance(thing, dict) else getattr(thing, self.name)

    def text(self, cell: Any) -> str:
        """A cell as readers see it, without what stands beside it."""
        if isinstance(cell, Styled):
            return self.write(cell.value) if cell.text is None else cell.text
        return self.write(cell)


@dataclass(frozen=True)
class Styled:
    """A cell that is written otherwise than its column says, or stands out.

    `beside` stands behind it, smaller; `strong` is bold in every format, `code` is a name that
    Markdown shows as code, and `style` is that of a terminal.
    """

    value: Any
    text: str | None = None
    beside: str = ""
    strong: bool = False
    code: bool = False
    style: str = ""


@dataclass(frozen=True)
class Line:
    """A row of cells with a style of the terminal; a line is drawn below one that `ends` a part."""

    cells: Sequence[Any]
    style: str | None = None
    ends: bool = False


@dataclass(frozen=True)
class Table:
    """Columns and rows, with a title above, and a caption and notes below.

    A row has a value, or a `Styled` one, for each of the first columns; the others are empty. Where
    a terminal is too narrow, columns are left out in the order of `left_out`, which has their
    headings, then all others from the last one on; `more` says how to see them. With `in_blocks`
    they stand in a table below.
    """

    columns: Sequence[Column]
    rows: Sequence[Line | Sequence[Any]] = ()
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    look: Look = "plain"
    left_out: Sequence[str] = ()
    more: str = "--json has them"
    in_blocks: bool = False

    @classmethod
    def of(cls, columns: Sequence[Column], things: Iterable[Any], **more: Any) -> Table:
        """The table with a row for each thing, whose values the columns know."""
        rows = [[column.value_of(thing) for column in columns] for thing in things]
        return cls(columns, rows, **more)

    @property
    def lines(self) -> list[Line]:
        """The rows, each with its style."""
        return [row if isinstance(row, Line) else Line(row) for row in self.rows]

    def texts(self) -> list[list[str]]:
        """The cells as readers see them, row by row; a row of too few is filled up."""
        return [
            [
                self.columns[place].text(row.cells[place]) if place < len(row.cells) else ""
                for place in range(len(self.columns))
            ]
            for row in self.lines
        ]

    def values(self) -> list[list[Any]]:
        """The cells as programs get them: plain values, None where there is none."""
        return [
            [_value(row.cells[place]) if place < len(row.cells) else None for place in places]
            for places in [range(len(self.columns))]
            for row in self.lines
        ]

    def __rich__(self) -> Any:
        """What a terminal shows."""
        show = FORMATS["rich"].show
        assert show is not None
        return show(self)

    @property
    def names(self) -> list[str]:
        """The names of the columns in files; one without any has that of its place."""
        return [each.name or f"column_{place}" for place, each in enumerate(self.columns, start=1)]


def _value(cell: Any) -> Any:
    value = cell.value if isinstance(cell, Styled) else cell
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def plain_columns(
    *headings: str, right: Iterable[str] = (), whole: Iterable[str] = ()
) -> list[Column]:
    """Columns by their headings: the first has names, those of `right` numbers, others text.

    Words in those of `whole` are never broken.
    """
    numbers, never = set(right), set(whole)

    def kind(place: int, heading: str) -> Kind:
        if heading in numbers:
            return "number"
        return "whole" if heading in never else "text" if place else "name"

    return [Column(heading, kind(place, heading)) for place, heading in enumerate(headings)]


def values_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows of values by their names, which are those of the first row: for programs."""
    names = list(rows[0]) if rows else []
    return Table([Column(name) for name in names], [[row[name] for name in names] for row in rows])


def facts(rows: Iterable[tuple[str, Any]]) -> Table:
    """Names and values in two columns."""
    return Table((Column("", "whole", style="dim"), Column("")), list(rows), look="facts")


Holds = Literal["tables", "rows", "everything"]
"""What a format has room for: what a reader is shown, one table of all values, or all there is."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """What a command tells: `parts` for readers, tables and paragraphs; `rows` for programs.

    `json` is what its `--json` prints, and `page` an HTML page of its own, where it has one. All
    are made when they are asked for. `options` are those of a single format, such as a caption.
    """

    title: str
    parts: Callable[[], Sequence[Table | str]]
    rows: Callable[[], Table]
    json: Callable[[], Any]
    page: Callable[[], str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReportFormat:
    """A way to write a document: its file's ending, how it is drawn, and what it has room for.

    `options` are the settings of a document that it alone takes; `show` is a table as the library
    of the terminal prints it.
    """

    ending: str
    draw: Callable[[Document], str | bytes]
    holds: Holds = "tables"
    options: Sequence[str] = ()
    show: Callable[[Table], Any] | None = None


FORMATS: Registry[ReportFormat] = Registry(
    "report format",
    partial(modules_in, "statetrack.report.formats"),
    listing="statetrack report --help",
)
"""The formats of tables and reports, by the names of their files."""


def format_of(file: Path, instead: str = "") -> str:
    """The name of the format that the name of an `--out` file ends in.

    Raises `SettingsError` for an ending that says nothing; `instead` is what else can be done.
    """
    endings = {FORMATS[name].ending: name for name in FORMATS}
    if file.suffix not in endings:
        raise SettingsError(
            f"--out {file}: its name does not say the format: give {instead}a name that ends in "
            + ", ".join(endings)
        )
    return endings[file.suffix]
