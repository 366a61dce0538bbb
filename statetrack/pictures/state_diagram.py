"""State diagrams: a circle for every state, with all transitions, or a panel for every symbol.

All lengths are in points, 72 per inch, those of text as well as those of lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from statetrack.figures import INK, NOTE, PALETTE
from statetrack.pictures.canvas import (
    FINE,
    Bezier,
    Canvas,
    Names,
    Room,
    Shape,
    fitting_step,
    line_between,
    ways_to_name,
    write_key,
)
from statetrack.pictures.layouts import circle, layout
from statetrack.pictures.machine import DrawnMachine, few_generators, symbol_generators
from statetrack.sources import Floats, Integers

NAME, SYMBOL, LABEL = 9.5, 8.5, 7.5
"""Font sizes: of the names of states, of the symbols at arrows, and of labels below names."""

LEAST_FREE, FREE, MOST_FREE = 18.0, 28.0, 56.0
"""The free length of an arrow beside its symbols: the least, the usual, and the greatest."""

MANY = 2.0
"""The arrows for each state from which on they cross so often that they are given more room."""

BEND = 0.22
"""The bend of two arrows in opposite directions, as a fraction of their length."""

ROOM = 14.0
"""The clearance around a loop beyond which more has no advantage."""

LINE = 14
"""The letters in a line of symbols at an arrow, after which a new line begins."""

LONGEST_TEXT = 110.0
"""The width in points of the widest symbols at an arrow; wider ones are numbered."""

PANEL_NAME, HEADING = 7.5, 8.5
"""Font sizes of panels: of the names of states, and of the symbols above."""

GAP, BETWEEN = 13.0, 26.0
"""The free length between two nodes, and between two panels, in points."""

WIDEST_NAME = 11.0
"""Names that make nodes with a greater radius are numbered."""


@dataclass(frozen=True, eq=False)
class _Arrow:
    """All transitions from one state to another: their curve, symbols, and whether it is a loop."""

    curve: Bezier
    text: str
    loop: bool


def state_diagram(drawn: DrawnMachine, room: Room) -> Canvas:
    """The diagram of a machine."""
    canvas = Canvas()
    edges = np.zeros((len(drawn.states),) * 2, bool)
    for source, target in moves_of(drawn):
        edges[source, target] = True
    unit = layout(edges, drawn.start)
    names = _names(drawn)
    ways = list(ways_to_name(canvas, names, NAME))
    outputs = list(dict.fromkeys(said for row in drawn.outputs or () for said in row if said))
    full = _Marks(list(drawn.symbols), outputs)
    short = _Marks(
        [_letter(place) for place in range(len(drawn.symbols))],
        [str(place) for place in range(1, len(outputs) + 1)],
    )
    known = [*drawn.symbols, *outputs]
    is_short = len(known) == 1 or max(map(len, known)) <= 2
    for marks, named in itertools.product([full] if is_short else [full, short], ways):
        moves = {
            pair: _text_of(drawn, pair[0], found, marks, outputs)
            for pair, found in moves_of(drawn).items()
        }
        step, fits = _step(canvas, unit, moves, named.shape, room)
        widest = max(canvas.size(text, SYMBOL)[0] for text in moves.values())
        if fits and widest <= LONGEST_TEXT:
            break
    places = step * unit
    arrows = _arrows(moves, places, named.shape, drawn.start)
    for arrow in arrows:
        canvas.line(arrow.curve, INK, heads=1)
    head = places[drawn.start] - (named.shape.wide, 0.0)
    canvas.line(Bezier(np.array([head - (24.0, 0.0), head])), INK, heads=1)
    for state, place in enumerate(places):
        _draw_state(canvas, drawn, state, place, named)
    _write_symbols(canvas, arrows, places, named.shape)
    entries = []
    if marks is not full:
        entries += list(zip(marks.symbols, drawn.symbols, strict=True))
        entries += list(zip(marks.outputs, outputs, strict=True))
    if named.key:
        whole = drawn.full_names if _writes_labels(drawn) else drawn.states
        entries += list(zip(named.texts, whole, strict=True))
    if entries:
        write_key(canvas, entries, room)
    canvas.write_caption(_caption(drawn, named.key))
    return canvas


class _Marks(NamedTuple):
    """What stands for symbols and for outputs at arrows."""

    symbols: Sequence[str]
    outputs: Sequence[str]


def _text_of(
    drawn: DrawnMachine, source: int, symbols: Sequence[int], marks: _Marks, outputs: Sequence[str]
) -> str:
    """The symbols of an arrow; of a Mealy machine those with one output before it: `a, b / x`."""
    if drawn.outputs is None:
        return _lines([marks.symbols[symbol] for symbol in symbols])
    by_output: dict[str, list[str]] = {}
    for symbol in symbols:
        by_output.setdefault(drawn.outputs[source][symbol], []).append(marks.symbols[symbol])
    return "\n".join(
        f"{_lines(names)} / {marks.outputs[outputs.index(said)]}"
        for said, names in by_output.items()
    )


def _names(drawn: DrawnMachine) -> list[str]:
    if not _writes_labels(drawn):
        return [*drawn.states]
    notes = drawn.notes or ()
    return [f"{state}\n{note}" for state, note in zip(drawn.states, notes, strict=True)]


def _letter(place: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    return (_letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _step(
    canvas: Canvas,
    unit: Floats,
    moves: Mapping[tuple[int, int], str],
    shape: Shape,
    room: Room,
) -> tuple[float, bool]:
    """The scale of the layout at which every arrow has room for its symbols; whether that fits."""
    pairs = [pair for pair in moves if pair[0] != pair[1]]
    steps = []
    usual = FREE if len(pairs) <= MANY * len(unit) else MOST_FREE
    for free in (LEAST_FREE, usual, MOST_FREE):
        found = shape.step(unit, free)
        for source, target in pairs:
            along = np.abs(unit[target] - unit[source])
            length = float(np.linalg.norm(along))
            across, up = along / length
            wide, high = canvas.size(moves[source, target], SYMBOL)
            taken = 2 * (shape.half * across + shape.radius) + wide * across + high * up
            found = max(found, (taken + free) / length)
        steps.append(found)
    loops = [
        canvas.size(text, SYMBOL) for (source, target), text in moves.items() if source == target
    ]
    wide, high = (max(each) for each in zip(*loops, strict=True)) if loops else (0.0, 0.0)
    beside = min(2 * (wide + 20) if len(loops) > 1 else wide + 20, 120.0) if loops else 0.0
    within = Room(
        room.width - 26 - beside / 2, room.height - (2 * high + 60 if loops else 0), room.filled
    )
    return fitting_step(unit, shape, steps, within)


def _writes_labels(drawn: DrawnMachine) -> bool:
    """Whether labels are written below the names: not where a ring marks one of two labels."""
    return drawn.labels is not None and drawn.second is None


def _caption(drawn: DrawnMachine, numbered: bool) -> list[str]:
    lines = ["symbol / output"] if drawn.outputs is not None else []
    if numbered and _writes_labels(drawn):
        lines += drawn.said_of_labels
    elif _writes_labels(drawn):
        lines.append("below a state: its label")
    if drawn.second in (drawn.notes or ()):
        lines.append(f"double ring: label {drawn.second}")
    if not drawn.asked.all():
        lines.append("dashed: the label is not scored")
    if drawn.leaves_out:
        lines.append("transitions that never occur are left out")
    return lines


def moves_of(drawn: DrawnMachine) -> dict[tuple[int, int], list[int]]:
    """The symbols that lead from one state to another, for every pair that has some."""
    found: dict[tuple[int, int], list[int]] = {}
    for source, row in enumerate(drawn.delta.tolist()):
        for symbol, target in enumerate(row):
            if target >= 0:
                found.setdefault((source, target), []).append(symbol)
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
    moves: Mapping[tuple[int, int], str], places: Floats, shape: Shape, start: int
) -> list[_Arrow]:
    arrows = []
    for (source, target), text in moves.items():
        if source == target:
            continue
        both = (target, source) in moves
        bends = [BEND] if both else [0.0]
        for more in (0.15, 0.3, 0.45, 0.6):
            bends += [BEND + more] if both else [more, -more]
        line = line_between(places, source, target, shape, bends, 8.0)
        arrows.append(_Arrow(line, text, loop=False))
    samples = [arrow.curve.at(FINE[::4]) for arrow in arrows]
    for (source, target), text in moves.items():
        if source == target:
            arrows.append(_loop(source, text, places, shape, samples, source == start))
            samples.append(arrows[-1].curve.at(FINE[::4]))
    return arrows


def _loop(
    state: int,
    text: str,
    places: Floats,
    shape: Shape,
    samples: Sequence[Floats],
    is_start: bool,
) -> _Arrow:
    """A loop on the side with the largest clearance."""
    centre = places[state]
    taken = [*samples, np.delete(places, state, axis=0)]
    if is_start:
        taken.append(np.array([centre - (shape.wide + back, 0.0) for back in (10.0, 20.0, 30.0)]))
    everything = np.concatenate(taken) if taken else np.zeros((0, 2))
    best, clearest = None, -np.inf
    for sixteenths in (0, 8, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7):
        angle = np.pi / 2 + np.pi / 8 * sixteenths
        sides = angle + np.array([0.5, -0.5])
        middle = centre + np.array([shape.half * np.cos(angle), 0.0])
        bent = middle + (1.2 * shape.radius + 26) * np.stack([np.cos(sides), np.sin(sides)], axis=1)
        loop = Bezier(np.array([middle, *bent, middle])).outside(
            lambda points: shape.gaps(points, centre[None])[:, 0]
        )
        gaps = np.linalg.norm(everything[:, None] - loop.at(FINE[::20])[None], axis=-1)
        clear = min(float(gaps.min(initial=np.inf)), ROOM)
        if clear > clearest + 1e-6:
            best, clearest = loop, clear
    assert best is not None
    return _Arrow(best, text, loop=True)


def _draw_state(
    canvas: Canvas, drawn: DrawnMachine, state: int, place: Floats, named: Names
) -> None:
    canvas.node(place, named.shape, dashed=not drawn.asked[state])
    label = (drawn.notes or drawn.states)[state]
    if _writes_labels(drawn) and not named.key:
        canvas.text(drawn.states[state], place + np.array([0.0, 4.5]), NAME)
        canvas.text(label, place - np.array([0.0, 6.5]), LABEL, colour=NOTE)
        return
    if label == drawn.second and not _writes_labels(drawn):
        canvas.node(place, named.shape, inset=2.5)
    canvas.text(named.texts[state], place, NAME)


def _write_symbols(canvas: Canvas, arrows: Sequence[_Arrow], places: Floats, shape: Shape) -> None:
    """Symbols on their arrows, at the positions where they overlap least with other content."""
    samples = [arrow.curve.at(FINE[::4]) for arrow in arrows]
    written: list[tuple[Floats, Floats]] = []
    for number, arrow in enumerate(arrows):
        size = np.array(canvas.size(arrow.text, SYMBOL)) + 3
        others = [each for place, each in enumerate(samples) if place != number]
        crowd = np.concatenate(others) if others else np.zeros((0, 2))
        best, least = None, np.inf
        for where in [0.5] if arrow.loop else np.linspace(0.22, 0.78, 29).tolist():
            centre = arrow.curve.at(np.array([where]))[0]
            if arrow.loop:
                outward = centre - (arrow.curve.points[0] + arrow.curve.points[-1]) / 2
                outward = outward / np.linalg.norm(outward)
                centre = centre + outward * (np.abs(outward) @ (size / 2) + 1)  # beyond its tip
            cost = abs(where - 0.5) + _covered(centre, size, crowd, places, shape, written)
            if cost < least:
                best, least = centre, cost
        assert best is not None
        canvas.text(arrow.text, best, SYMBOL, box=tuple(size))
        written.append((best, size))


def _covered(
    centre: Floats,
    size: Floats,
    crowd: Floats,
    places: Floats,
    shape: Shape,
    written: Sequence[tuple[Floats, Floats]],
) -> float:
    """The overlap of a text of this centre and size with other arrows, states and text."""
    crossed = (np.abs(crowd - centre) < size / 2 + 1).all(axis=1).sum()
    nearest = np.maximum(np.abs(places - centre) - size / 2 - (shape.half, 0.0), 0)
    states = (np.linalg.norm(nearest, axis=1) < shape.radius + 2).sum()
    texts = sum(bool((np.abs(other - centre) < (size + its) / 2).all()) for other, its in written)
    return float(crossed + 20 * states + 20 * texts)


class Panel(NamedTuple):
    """One panel: what stands above it, where its symbols lead, and how many heads lines have."""

    text: str
    action: Integers
    heads: int


def panels_of(drawn: DrawnMachine) -> list[Panel]:
    """The panels of a machine: symbols with the same or the inverse action share one."""
    stays = np.arange(len(drawn.states))
    if drawn.is_group:
        return [Panel(each.text, each.action, each.heads) for each in symbol_generators(drawn)]
    found: dict[bytes, tuple[list[str], Integers]] = {}
    for symbol, column in zip(drawn.symbols, drawn.delta.T, strict=True):
        found.setdefault(column.tobytes(), ([], column.copy()))[0].append(symbol)
    return [
        Panel(", ".join(names), column, 1)
        for names, column in found.values()
        if (column != stays).any()
    ]


def symbol_panels(drawn: DrawnMachine, room: Room) -> Canvas:
    """All panels, as many in a row as have room."""
    canvas = Canvas()
    shown = panels_of(drawn)
    ways = list(ways_to_name(canvas, drawn.states, PANEL_NAME))
    named = next(
        (way for way in ways if way.shape.half == 0 and way.shape.radius <= WIDEST_NAME), ways[-1]
    )
    unit = circle(_order(drawn))
    places = named.shape.step(unit, GAP) * unit
    extent = np.ptp(places, axis=0) + 2 * named.shape.radius
    wide = max(float(extent[0]), max(canvas.size(panel.text, HEADING)[0] for panel in shown))
    per_row = max(1, min(len(shown), int((room.width + BETWEEN) // (wide + BETWEEN))))
    rows = -(-len(shown) // per_row)
    per_row = -(-len(shown) // rows)
    for number, panel in enumerate(shown):
        row, column = divmod(number, per_row)
        centre = np.array([(wide + BETWEEN) * column, -(float(extent[1]) + 46) * row])
        _draw_panel(canvas, drawn, panel, places + centre, named.texts, named.shape)
        above = centre + np.array([0.0, extent[1] / 2 + 14])
        canvas.text(panel.text, above, HEADING)
    if named.key:
        write_key(canvas, list(zip(named.texts, drawn.states, strict=True)), room)
    caption = ["a panel for each symbol; a state without a line from it stays"]
    if drawn.leaves_out:
        caption[0] += ", or the symbol never occurs there"
    caption.append("double ring: the start")
    idle = [
        symbol
        for symbol, column in zip(drawn.symbols, drawn.delta.T, strict=True)
        if (column == np.arange(len(column))).all()
    ]
    if idle:
        caption.append(f"no move: {', '.join(idle)}")
    canvas.write_caption(caption)
    return canvas


def _order(drawn: DrawnMachine) -> Integers:
    """The order on the circle: along the first cycle of a group that has one through all states."""
    if drawn.regular_group:
        first = few_generators(symbol_generators(drawn))[0]
        if first.order == len(drawn.states):
            order = [drawn.start]
            while len(order) < len(drawn.states):
                order.append(int(first.action[order[-1]]))
            return np.array(order)
    return np.arange(len(drawn.states))


def _draw_panel(
    canvas: Canvas,
    drawn: DrawnMachine,
    panel: Panel,
    places: Floats,
    texts: Sequence[str],
    shape: Shape,
) -> None:
    for source, target in enumerate(panel.action.tolist()):
        twice = target >= 0 and panel.action[target] == source
        if target < 0 or target == source or (twice and panel.heads != 1 and target < source):
            continue
        bends = (0.2,) if twice and panel.heads == 1 else (0.0, 0.15, -0.15, 0.3, -0.3)
        line = line_between(places, source, target, shape, bends, 2.0)
        canvas.line(line, PALETTE[0], heads=panel.heads)
    for state, place in enumerate(places):
        canvas.node(place, shape)
        if state == drawn.start:
            canvas.node(place, shape, inset=1.8)
        canvas.text(texts[state], place, PANEL_NAME, colour=INK)
