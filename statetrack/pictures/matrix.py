"""A matrix of states by states, for machines that are too large for a table or a diagram."""

from __future__ import annotations

import numpy as np

from statetrack.pictures._canvas import INK, Canvas, Room
from statetrack.pictures._keys import Sample, short, write_legend
from statetrack.pictures.drawn import Drawn
from statetrack.pictures.generators import few_generators, symbol_generators
from statetrack.sources import Floats, Integers

NAME = 7.5
"""The font size of the names of rows and columns."""

SIDE, LARGEST = 380.0, 16.0
"""The side of the matrix, and of one cell, at most; in points."""

DOTS = 1200
"""About how many dots a side has: several for each cell, so that edges are sharp."""

COLOURS = (INK, "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7")
"""The colours of generators: the first ones differ in brightness, for readers of grey prints."""

LIGHT, DARK = 0.80, 0.15
"""The shades of grey of cells to which the fewest and the most symbols lead."""


def matrix(drawn: Drawn, room: Room) -> Canvas:
    """Rows are states, columns states that a symbol leads to.

    Of a group, colours are generators, and states stand in the order of the cycles of the first.
    Of anything else, the darker a cell the more symbols lead there.
    """
    canvas = Canvas()
    num_states = len(drawn.states)
    side = min(SIDE if not room.filled else room.width - 90, room.height - 60)
    cell = min(LARGEST, side / num_states)
    side = cell * num_states
    order = np.arange(num_states)
    caption = ["row: state; column: the state reached"]
    legend: list[Sample] = []
    if drawn.regular_group:
        generators = few_generators(symbol_generators(drawn))[: len(COLOURS)]
        order = _by_cycles(generators[0].action, drawn.start)
        places = np.argsort(order)
        colours = np.ones((num_states, num_states, 3))
        for generator, colour in zip(generators, COLOURS, strict=False):
            shade = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
            colours[places, places[generator.action]] = shade
            legend.append(Sample(", ".join(generator.symbols), colour, "solid", 0))
        shown = sum(len(generator.symbols) for generator in generators)
        if shown < len(drawn.symbols):
            caption.append(
                f"{shown} of {len(drawn.symbols)} symbols, which generate the group; the others "
                "are products of them"
            )
    else:
        colours, most = _shades(drawn.delta)
        caption.append(f"the darker, the more symbols lead there: up to {most}")
    factor = max(1, DOTS // num_states)
    dots = np.repeat(np.repeat(colours, factor, axis=0), factor, axis=1)
    canvas.image(dots, np.array([0.0, -side]), np.array([side, 0.0]))
    corners = np.array([[0.0, 0.0], [side, 0.0], [side, -side], [0.0, -side]])
    canvas.outline(corners)
    every = _write_names(canvas, drawn, order, cell)
    if every > 1:
        caption.append(f"named: every {_ordinal(every)} state")
    if legend:
        write_legend(canvas, legend, room)
    canvas.write_caption(caption)
    return canvas


def _by_cycles(action: Integers, start: int) -> Integers:
    """The states along the cycles of an action, that of the start first."""
    order: list[int] = []
    for first in (start, *range(len(action))):
        state = first
        while state not in order:
            order.append(state)
            state = int(action[state])
    return np.array(order)


def _shades(delta: Integers) -> tuple[Floats, int]:
    """Grey values `[S, S, 3]` by how many symbols lead from a state to another; the most."""
    num_states = len(delta)
    number = np.zeros((num_states, num_states))
    for column in delta.T:
        there = np.flatnonzero(column >= 0)
        number[there, column[there]] += 1
    most = int(number.max())
    grey = np.where(
        number > 0, LIGHT - (LIGHT - DARK) * (number - 1) / max(most - 1, 1) * (most > 1), 1.0
    )
    if most == 1:
        grey = np.where(number > 0, DARK, 1.0)
    return np.repeat(grey[:, :, None], 3, axis=2), most


def _write_names(canvas: Canvas, drawn: Drawn, order: Integers, cell: float) -> int:
    """Names at as many rows as have room; which of them."""
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100) if n * cell >= NAME + 1.5)
    for row in range(0, len(order), every):
        state = int(order[row])
        name = ("→ " if state == drawn.start else "") + short(drawn.states[state])
        place = np.array([-6 - canvas.size(name, NAME)[0] / 2, -cell * (row + 0.5)])
        canvas.text(name, place, NAME, colour=INK)
    return every


def _ordinal(number: int) -> str:
    return {2: "second", 5: "fifth", 10: "tenth"}.get(number, f"{number}th")
