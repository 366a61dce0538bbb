"""Nodes of a drawing: their names, or numbers with a key where names have no room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from statetrack.pictures._bezier import FINE, Bezier
from statetrack.pictures._canvas import Canvas, Room, Shape
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


def clearest(
    a: Floats, b: Floats, others: Floats, shape: Shape, bends: Sequence[float], enough: float
) -> Bezier:
    """The line between two nodes, bent as far as is needed to pass the others at some distance."""
    right = np.array([b[1] - a[1], a[0] - b[0]])
    best, clear = None, -np.inf
    for bend in bends:
        curve = Bezier(np.array([a, (a + b) / 2 + bend * right, b]))
        gap = float(shape.gaps(curve.at(FINE[::4]), others).min(initial=np.inf))
        if min(round(gap, 6), enough) > clear:
            best, clear = curve, min(round(gap, 6), enough)
    assert best is not None
    return best


def between(curve: Bezier, first: Floats, second: Floats, shape: Shape) -> Bezier:
    """The part of a line between two nodes that is outside of both."""
    ends = np.stack([first, second])

    def gaps(points: Floats) -> Floats:
        found: Floats = shape.gaps(points, ends).min(axis=1)
        return found

    return curve.outside(gaps)
