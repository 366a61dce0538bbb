"""A state diagram: a circle for every state, an arrow for every transition between two.

All lengths are in points, 72 per inch, those of text as well as those of lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statetrack.pictures._bezier import FINE, Bezier
from statetrack.pictures._canvas import INK, NOTE, Canvas
from statetrack.pictures.drawn import Drawn
from statetrack.pictures.layouts import layout
from statetrack.sources.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, SYMBOL = 10.0, 9.0
"""Font sizes: of the names of states, and of the symbols at arrows."""

BETWEEN = 46.0
"""The least free length between two neighbouring circles, in addition to a symbol's name."""

BEND = 0.26
"""The bend of two arrows in opposite directions, as a fraction of their length."""

UP = np.array([0.0, 5.0])
"""The offset of a name above the middle of its circle where a label is below it."""

ROOM = 14.0
"""The clearance around a loop beyond which more has no advantage."""

LINE = 12
"""The letters in a line of symbols at an arrow, after which a new line begins."""


@dataclass(frozen=True, eq=False)
class _Arrow:
    """All transitions from one state to another: their curve, symbols, and whether it is a loop."""

    curve: Bezier
    text: str
    loop: bool


def state_diagram(drawn: Drawn) -> Figure:
    """The diagram of a machine."""
    canvas = Canvas()
    radius = _radius(drawn, canvas)
    moves = {pair: _lines(symbols) for pair, symbols in _moves(drawn).items()}
    widest = max(canvas.size(text, SYMBOL)[0] for text in moves.values())
    step = 2 * radius + BETWEEN + widest
    edges = np.zeros((len(drawn.states),) * 2, bool)
    for source, target in moves:
        edges[source, target] = True
    places = step * layout(edges, drawn.start)
    arrows = _arrows(moves, places, radius, drawn.start)
    for arrow in arrows:
        canvas.arrow(arrow.curve, INK)
    _draw_start(canvas, places[drawn.start], radius)
    for state, place in enumerate(places):
        _draw_state(canvas, drawn, state, place, radius)
    _write_symbols(canvas, arrows, places, radius)
    canvas.write_caption(_caption(drawn))
    return canvas.figure()


def _writes_labels(drawn: Drawn) -> bool:
    """Whether labels are written below the names: not where a ring marks one of two labels."""
    return drawn.labels is not None and drawn.second is None


def _caption(drawn: Drawn) -> list[str]:
    lines = [drawn.title]
    if _writes_labels(drawn):
        lines.append("below a state: its label")
    if drawn.second in (drawn.notes or ()):
        lines.append(f"double ring: label {drawn.second}")
    if not drawn.asked.all():
        lines.append("dashed: the label is not scored")
    if drawn.leaves_out:
        lines.append("transitions that never occur are left out")
    return lines


def moves_per_state(drawn: Drawn) -> float:
    """How many arrows to other states leave a state, on average."""
    moves = [pair for pair in _moves(drawn) if pair[0] != pair[1]]
    return len(moves) / len(drawn.states)


def most_symbols_at_an_arrow(drawn: Drawn) -> int:
    """The largest number of symbols at one arrow."""
    return max(map(len, _moves(drawn).values()))


def _radius(drawn: Drawn, canvas: Canvas) -> float:
    widths = [canvas.size(name, NAME)[0] for name in drawn.states]
    if _writes_labels(drawn):
        widths += [canvas.size(label, SYMBOL - 1)[0] + 4 for label in drawn.notes or ()]
    return max(15.0, max(widths) / 2 + 6)


def _moves(drawn: Drawn) -> dict[tuple[int, int], list[str]]:
    """The symbols that lead from one state to another, for every pair that has some."""
    found: dict[tuple[int, int], list[str]] = {}
    for source, row in enumerate(drawn.delta):
        for symbol, target in enumerate(row):
            if target >= 0:
                found.setdefault((source, int(target)), []).append(drawn.symbols[symbol])
    return found


def _lines(symbols: Sequence[str]) -> str:
    """Symbols with commas between them, in lines."""
    lines = [""]
    for place, symbol in enumerate(symbols):
        piece = symbol + ("," if place + 1 < len(symbols) else "")
        if lines[-1] and len(lines[-1]) + len(piece) > LINE:
            lines.append(piece)
        else:
            lines[-1] += (" " if lines[-1] else "") + piece
    return "\n".join(lines)


def _arrows(
    moves: Mapping[tuple[int, int], str], places: Floats, radius: float, start: int
) -> list[_Arrow]:
    arrows = []
    for (source, target), text in moves.items():
        if source == target:
            continue
        both = (target, source) in moves
        curve = _curve(source, target, places, radius, both)
        kept = curve.outside(places[source], places[target], radius)
        arrows.append(_Arrow(kept, text, loop=False))
    samples = [arrow.curve.at(FINE) for arrow in arrows]
    for (source, target), text in moves.items():
        if source == target:
            arrows.append(_loop(source, text, places, radius, samples, source == start))
            samples.append(arrows[-1].curve.at(FINE))
    return arrows


def _curve(source: int, target: int, places: Floats, radius: float, both: bool) -> Bezier:
    """A line; bent to the right of an arrow in the opposite direction, and around other states."""
    a, b = places[source], places[target]
    right = np.array([b[1] - a[1], a[0] - b[0]])
    others = np.delete(places, [source, target], axis=0)
    bends = [BEND] if both else [0.0]
    for more in (0.15, 0.3, 0.45, 0.6):
        bends += [BEND + more] if both else [more, -more]
    best, clearest = None, -np.inf
    for bend in bends:
        curve = Bezier(np.array([a, (a + b) / 2 + bend * right, b]))
        gaps = np.linalg.norm(curve.at(FINE)[:, None] - others[None], axis=-1)
        clear = min(float(gaps.min(initial=np.inf)) - radius, 8.0)
        if clear > clearest:
            best, clearest = curve, clear
    assert best is not None
    return best


def _loop(
    state: int,
    text: str,
    places: Floats,
    radius: float,
    samples: Sequence[Floats],
    is_start: bool,
) -> _Arrow:
    """A loop on the side with the largest clearance."""
    centre = places[state]
    taken = [*samples, np.delete(places, state, axis=0)]
    if is_start:
        taken.append(np.array([centre - (radius + back, 0.0) for back in (10.0, 20.0, 30.0)]))
    everything = np.concatenate(taken) if taken else np.zeros((0, 2))
    best, clearest = None, -np.inf
    for sixteenths in (0, 8, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7):
        loop = _bow(centre, radius, np.pi / 2 + np.pi / 8 * sixteenths)
        gaps = np.linalg.norm(everything[:, None] - loop.at(FINE[::20])[None], axis=-1)
        clear = min(float(gaps.min(initial=np.inf)), ROOM)
        if clear > clearest + 1e-6:
            best, clearest = loop, clear
    assert best is not None
    return _Arrow(best, text, loop=True)


def _bow(centre: Floats, radius: float, angle: float) -> Bezier:
    """A curve out of a circle and back into it, around a direction."""
    sides = angle + np.array([0.5, -0.5])
    bent = centre + (1.2 * radius + 34) * np.stack([np.cos(sides), np.sin(sides)], axis=1)
    return Bezier(np.array([centre, *bent, centre])).outside(centre, centre, radius)


def _draw_start(canvas: Canvas, place: Floats, radius: float) -> None:
    tail = place - (radius + 26, 0.0)
    canvas.arrow(Bezier(np.array([tail, place - (radius, 0.0)])), INK)


def _draw_state(canvas: Canvas, drawn: Drawn, state: int, place: Floats, radius: float) -> None:
    canvas.circle(place, radius, dashed=not drawn.asked[state])
    label = (drawn.notes or drawn.states)[state]
    if _writes_labels(drawn):
        canvas.text(drawn.states[state], place + UP, NAME)
        canvas.text(label, place - 1.4 * UP, SYMBOL - 1, colour=NOTE)
        return
    if label == drawn.second:
        canvas.circle(place, radius - 3)
    canvas.text(drawn.states[state], place, NAME)


def _write_symbols(canvas: Canvas, arrows: Sequence[_Arrow], places: Floats, radius: float) -> None:
    """Symbols on their arrows, at the positions where they overlap least with other content."""
    samples = [arrow.curve.at(FINE) for arrow in arrows]
    written: list[tuple[Floats, Floats]] = []
    for number, arrow in enumerate(arrows):
        size = np.array(canvas.size(arrow.text, SYMBOL)) + 3
        others = [each for place, each in enumerate(samples) if place != number]
        crowd = np.concatenate(others) if others else np.zeros((0, 2))
        best, least = None, np.inf
        for where in _wheres(arrow):
            centre = arrow.curve.at(np.array([where]))[0]
            if arrow.loop:
                centre = _beyond(arrow.curve, centre, size)
            cost = abs(where - 0.5) + _covered(centre, size, crowd, places, radius, written)
            if cost < least:
                best, least = centre, cost
        assert best is not None
        canvas.text(arrow.text, best, SYMBOL, box=tuple(size))
        written.append((best, size))


def _wheres(arrow: _Arrow) -> Floats:
    return np.array([0.5]) if arrow.loop else np.linspace(0.22, 0.78, 29)


def _beyond(curve: Bezier, tip: Floats, size: Floats) -> Floats:
    """The centre of a text just outside the tip of a loop."""
    outward = tip - (curve.points[0] + curve.points[-1]) / 2
    outward = outward / np.linalg.norm(outward)
    found: Floats = tip + outward * (np.abs(outward) @ (size / 2) + 1)
    return found


def _covered(
    centre: Floats,
    size: Floats,
    crowd: Floats,
    places: Floats,
    radius: float,
    written: Sequence[tuple[Floats, Floats]],
) -> float:
    """The overlap of a text of this centre and size with other arrows, states and text."""
    crossed = (np.abs(crowd - centre) < size / 2 + 1).all(axis=1).sum()
    nearest = np.maximum(np.abs(places - centre) - size / 2, 0)
    states = (np.linalg.norm(nearest, axis=1) < radius + 2).sum()
    texts = sum(bool((np.abs(other - centre) < (size + its) / 2).all()) for other, its in written)
    return float(crossed / 4 + 20 * states + 20 * texts)
