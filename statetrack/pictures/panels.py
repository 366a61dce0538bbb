"""A panel for every symbol: the states on a circle, and where this symbol leads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from statetrack.colours import INK, PALETTE
from statetrack.pictures.canvas import Canvas, Room, Shape
from statetrack.pictures.layouts import circle
from statetrack.pictures.machine import DrawnMachine, few_generators, symbol_generators
from statetrack.pictures.nodes import line_between, ways_to_name, write_key
from statetrack.sources import Floats, Integers

NAME, HEADING = 7.5, 8.5
"""Font sizes: of the names of states, and of the symbols above a panel."""

GAP, BETWEEN = 13.0, 26.0
"""The free length between two nodes, and between two panels, in points."""

WIDEST_NAME = 11.0
"""Names that make nodes with a greater radius are numbered."""


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
    ways = list(ways_to_name(canvas, drawn.states, NAME))
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
        canvas.text(texts[state], place, NAME, colour=INK)
