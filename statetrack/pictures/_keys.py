"""What stands below a drawing: samples of lines with their meaning, and names in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from statetrack.pictures._bezier import Bezier
from statetrack.pictures._canvas import Canvas, Room

LEGEND, KEY = 8.5, 7.5
"""The font sizes of a legend and of a key."""

LONGEST = 48
"""The most letters of a name beside or below a drawing."""

SAMPLE = 26.0
"""The length of a sample of a line."""


class Sample(NamedTuple):
    """A line and what it means; heads at none of its ends, at one, or at both."""

    text: str
    colour: str
    style: Any
    heads: int


def write_legend(canvas: Canvas, samples: Sequence[Sample], room: Room) -> None:
    """Samples below what is drawn, as many in a row as have room."""
    widths = [SAMPLE + 6 + canvas.size(each.text, LEGEND)[0] + 18 for each in samples]
    left, low, right, _ = canvas.box
    wide = max(right - left, min(room.width, 260.0))
    rows: list[list[int]] = [[]]
    for number, width in enumerate(widths):
        if rows[-1] and sum(widths[each] for each in rows[-1]) + width - 18 > wide:
            rows.append([])
        rows[-1].append(number)
    for row in rows:
        low -= 17
        at = (left + right) / 2 - (sum(widths[each] for each in row) - 18) / 2
        for number in row:
            text, colour, style, heads = samples[number]
            line = Bezier(np.array([[at, low], [at + SAMPLE, low]]))
            if heads:
                canvas.arrow(line, colour, style, both=heads == 2)
            else:
                canvas.line(line, colour, style)
            width = canvas.size(text, LEGEND)[0]
            canvas.text(text, np.array([at + SAMPLE + 6 + width / 2, low]), LEGEND)
            at += widths[number]


def short(name: str) -> str:
    """A name cut to a length that has room beside a drawing."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def write_key(canvas: Canvas, entries: Sequence[tuple[str, str]], room: Room) -> None:
    """Short marks with the names that they stand for, in columns below what is drawn."""
    entries = [(mark, short(name)) for mark, name in entries]
    left, low, right, _ = canvas.box
    marks = max(canvas.size(mark, KEY)[0] for mark, _ in entries) + 6
    names = max(canvas.size(name, KEY)[0] for _, name in entries) + 16
    wide = max(right - left, min(room.width, 330.0))
    columns = max(1, min(len(entries), int(wide // (marks + names))))
    rows = -(-len(entries) // columns)
    columns = -(-len(entries) // rows)
    first = (left + right) / 2 - (columns * (marks + names) - 16) / 2
    for number, (mark, name) in enumerate(entries):
        column, row = divmod(number, rows)
        at = first + column * (marks + names)
        height = low - 16 - 10.5 * row
        wide_mark, wide_name = canvas.size(mark, KEY)[0], canvas.size(name, KEY)[0]
        canvas.text(mark, np.array([at + marks - 6 - wide_mark / 2, height]), KEY)
        canvas.text(name, np.array([at + marks + wide_name / 2, height]), KEY)
