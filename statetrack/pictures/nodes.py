"""Nodes of a drawing and the lines between them; below it, what lines mean and names in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from statetrack.pictures.canvas import FINE, Bezier, Canvas, Room, Shape
from statetrack.sources import Floats

LONGEST = 110.0
"""The width in points of the longest name that is written into a node."""


class Names(NamedTuple):
    """What stands in the nodes, and the shape that it needs."""

    texts: Sequence[str]
    shape: Shape
    key: bool
    """Whether the texts are numbers, to be explained."""


def ways_to_name(canvas: Canvas, names: Sequence[str], letters: float) -> Iterator[Names]:
    """Names in circles or, where they are long, in circles drawn out to the sides; then numbers."""
    widest = max(canvas.size(name, letters)[0] for name in names)
    lines = max(name.count("\n") for name in names)
    round_one = Shape(0.0, max(9.0 + 4 * lines, widest / 2 + 4))
    if round_one.radius <= 14 + 4 * lines:
        yield Names(names, round_one, key=False)
    elif widest <= LONGEST:
        radius = 9.0 + 5.5 * lines
        yield Names(names, Shape(widest / 2 + 5 - radius * 0.8, radius), key=False)
    numbers = [str(number) for number in range(len(names))]
    radius = max(7.5, canvas.size(numbers[-1], letters)[0] / 2 + 2.5)
    yield Names(numbers, Shape(0.0, radius), key=True)


def fitting_step(
    places: Floats, shape: Shape, steps: Sequence[float], room: Room
) -> tuple[float, bool]:
    """The scale of a layout, and whether the drawing then has room.

    Of three steps, the least, the usual and the greatest: the usual one if that has room, in a room
    that is to be filled up to the greatest, and the least where that has no room either.
    """
    least, usual, most = steps
    span = np.ptp(places, axis=0)
    margins = np.array([2 * shape.wide, 2 * shape.radius]) + 20
    free = np.array([room.width, room.height]) - margins
    fits = float(min([1e4, *(f / s for f, s in zip(free, span, strict=True) if s > 1e-6)]))
    if fits < least:
        return least, False
    return min(fits, most if room.filled else max(usual, least)), True


def line_between(
    places: Floats, source: int, target: int, shape: Shape, bends: Sequence[float], enough: float
) -> Bezier:
    """The line from one node to another, bent as far as is needed to pass others at a distance.

    It is the part outside of both nodes.
    """
    ends = places[[source, target]]
    others = np.delete(places, [source, target], axis=0)
    a, b = ends
    right = np.array([b[1] - a[1], a[0] - b[0]])
    best, clear = None, -np.inf
    for bend in bends:
        curve = Bezier(np.array([a, (a + b) / 2 + bend * right, b]))
        gap = float(shape.gaps(curve.at(FINE[::4]), others).min(initial=np.inf))
        if min(round(gap, 6), enough) > clear:
            best, clear = curve, min(round(gap, 6), enough)
    assert best is not None
    return best.outside(lambda points: np.asarray(shape.gaps(points, ends).min(axis=1)))


LEGEND, KEY = 8.5, 7.5
"""The font sizes of a legend and of a key."""

MOST_LETTERS = 48
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
            canvas.line(line, colour, style, heads)
            width = canvas.size(text, LEGEND)[0]
            canvas.text(text, np.array([at + SAMPLE + 6 + width / 2, low]), LEGEND)
            at += widths[number]


def short(name: str) -> str:
    """A name cut to a length that has room beside a drawing."""
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


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
