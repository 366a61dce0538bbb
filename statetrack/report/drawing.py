"""The console, two styles of tables, and numbers as text, for commands and reports.

Tables of results have a frame, tables of facts have none. Accuracies, floors and what is computed
from them are always rounded down, so 1.00 means that every answer was right.

Text is never markup: `[on]` or `:smile:` in a name is shown as it is. A character that cannot be
printed is shown as an escape, wherever the text comes from.
"""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from statetrack.report.fitting import FittedTable, Kind, wrapped
from statetrack.scoring import rounded_down, rounded_up
from statetrack.text import visible

PIPED_WIDTH = 80
"""The width where standard output is not a terminal and COLUMNS is not set."""


SHOWN = {"yes": "can", "no": "cannot", "unknown": "?"}
LOOKS = {"yes": "green", "no": "red", "unknown": "dim"}
"""The text of a prediction's answer, and its style."""


IN_ASCII = str.maketrans({"◀": "<", "≥": ">", "≤": "<", "→": ">", "·": "."})
"""What stands for the signs of tables in terminals without Unicode, each as wide."""


class _PlainConsole(Console):
    """A console that takes no text for markup, and lets no character through that has an effect.

    Rich writes the escape sequences of styles itself, after this.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(highlight=False, emoji=False, markup=False, **given)

    def on_broken_pipe(self) -> None:
        """Raise the error: whoever calls a command decides on the exit code."""
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            shown = text if control else visible(text, lines=True)
            yield Segment(shown.translate(IN_ASCII) if self.in_ascii else shown, style, control)

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


def plain_table(
    *headings: str,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    left_out: Sequence[str] = (),
    more: str = "--json has them",
) -> FittedTable:
    """A table without a frame; the columns named in `right` hold numbers.

    The first column has names, and those in `whole` words that are never broken. Without room for
    all, columns are left out in the order of `left_out`, and `more` says how to see them.
    """
    table = FittedTable(left_out=left_out, more=more)
    for place, heading in enumerate(headings):
        table.add_column(heading, kind=_kind(heading, place, right, whole))
    return table


def _kind(heading: str, place: int, right: Sequence[str], whole: Sequence[str]) -> Kind:
    if heading in right:
        return "number"
    return "whole" if heading in whole else "text" if place else "name"


def facts(rows: Iterable[tuple[str, Any]]) -> FittedTable:
    """Names and values in two columns."""
    table = FittedTable(look="facts")
    table.add_column(kind="whole", style="dim")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else str(value))
    return table


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


DEEPER = 4
"""How much further in an equation goes on that is longer than a line."""


def share(value: float | None, digits: int = 2) -> str:
    """An accuracy, a floor or a scaled accuracy, rounded down; `-` where there is none."""
    return "-" if value is None or not math.isfinite(value) else rounded_down(value, digits)


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval, rounded outwards, or `-` where nothing was scored."""
    if low is None or high is None or not math.isfinite(low + high):
        return "-"
    return f"{rounded_down(low, 3)}-{rounded_up(high, 3)}"


def small(value: float | None) -> str:
    """A loss."""
    return "-" if value is None else f"{value:.1e}"
