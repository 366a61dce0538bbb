"""Machines as grids: a transition table, and a matrix of states by states for large ones."""

from __future__ import annotations

import numpy as np

from statetrack.figures import INK
from statetrack.pictures.canvas import Canvas, Room, Sample, short, write_legend
from statetrack.pictures.machine import DrawnMachine, few_generators, symbol_generators
from statetrack.sources import Floats, Integers

NAME, CELL = 8.0, 7.0
"""Font sizes: of the names of rows and columns, and of what is written into cells."""

TINTS = ("#9ecae9", "#ffc27a", "#a3d9b1", "#f2b5d4", "#fff3a3", "#d9c2f0", "#d8c3a5", "#c9e8e4")
"""Light colours for few states: none is more than another, and dark letters are read on each."""

STAYS = "#e4e4e4"
"""The colour of a cell that leads back to its own state, where there are too many for tints."""


def table_size(drawn: DrawnMachine) -> tuple[float, float]:
    """Width and height of the smallest table that can be read, in points."""
    canvas = Canvas()
    rows = [
        canvas.size(_row_name(drawn, state, True), NAME)[0] for state in range(len(drawn.delta))
    ]
    cell = canvas.size(str(len(drawn.delta) - 1), CELL)[0] + 5
    heads = max(canvas.size(name, NAME)[0] for name in drawn.symbols)
    return (
        max(rows) + max(cell, 11.0) * len(drawn.symbols) + 30,
        11.0 * len(drawn.delta) + heads + 20,
    )


def transition_table(drawn: DrawnMachine, room: Room) -> Canvas:
    """The grid: cells hold the name of the state that is reached, or its number if names are long.

    Up to as many states as there are tints have one each. Of more, cells that lead back to their
    own state are grey: colours in an order would make states look more and less.
    """
    canvas = Canvas()
    num_states, num_symbols = drawn.delta.shape
    names = max(canvas.size(name, CELL)[0] for name in drawn.states) + 8
    heads = max(canvas.size(name, NAME)[0] for name in drawn.symbols)
    rows = max(canvas.size(_row_name(drawn, state, False), NAME)[0] for state in range(num_states))
    numbered = rows + num_symbols * names > room.width
    cells = [str(state) if numbered else name for state, name in enumerate(drawn.states)]
    width = max(11.0, max(canvas.size(cell, CELL)[0] for cell in cells) + 5)
    rows = max(
        canvas.size(_row_name(drawn, state, numbered), NAME)[0] for state in range(num_states)
    )
    upright = heads + 6 <= width or rows + (heads + 6) * num_symbols <= min(room.width, 300.0)
    width = max(width, heads + 6 if upright else 0.0)
    height = max(11.0, min(15.0, room.height / (num_states + 8)))
    free = room.width - rows - 30 - width * num_symbols
    if room.filled and free > 0:
        width += free / num_symbols
    size = np.array([width, height])
    at_rows, columns = np.nonzero(drawn.delta >= 0)
    targets = drawn.delta[at_rows, columns]
    corners = np.stack([width * columns, -height * (at_rows + 1)], axis=1)
    tinted = num_states <= len(TINTS)
    colours = [
        TINTS[target] if tinted else STAYS if target == state else "#ffffff"
        for state, target in zip(at_rows.tolist(), targets.tolist(), strict=True)
    ]
    canvas.rectangles(corners, size, colours)
    for corner, target in zip(corners, targets, strict=True):
        canvas.text(cells[target], corner + size / 2, CELL, colour=INK)
    for state in range(num_states):
        _write_row_name(canvas, _row_name(drawn, state, numbered), NAME, -height * (state + 0.5))
    for symbol, name in enumerate(drawn.symbols):
        canvas.heading(name, np.array([width * (symbol + 0.5), 4.0]), NAME, upright=upright)
    meaning = "row: state; column: symbol; cell: "
    meaning += "number of the state reached" if numbered else "state reached"
    caption = [meaning + ("; grey: the state stays" if STAYS in colours else "")]
    caption += drawn.said_of_labels
    if drawn.leaves_out:
        caption.append("empty: never occurs")
    canvas.write_caption(caption)
    return canvas


def _row_name(drawn: DrawnMachine, state: int, numbered: bool) -> str:
    number = f"{state}  " if numbered and drawn.states[state] != str(state) else ""
    return ("→ " if state == drawn.start else "") + number + short(drawn.full_names[state])


def _write_row_name(canvas: Canvas, name: str, letters: float, height: float) -> None:
    place: Floats = np.array([-6 - canvas.size(name, letters)[0] / 2, height])
    canvas.text(name, place, letters)


ROW_NAME = 7.5
"""The font size of the names of rows and columns."""

SIDE, LARGEST = 380.0, 16.0
"""The side of the matrix, and of one cell, at most; in points."""

DOTS = 1200
"""About how many dots a side has: several for each cell, so that edges are sharp."""

COLOURS = (INK, "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7")
"""The colours of generators: the first ones differ in brightness, for readers of grey prints."""

LIGHT, DARK = 0.80, 0.15
"""The shades of grey of cells to which the fewest and the most symbols lead."""


def matrix(drawn: DrawnMachine, room: Room) -> Canvas:
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
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100) if n * cell >= ROW_NAME + 1.5)
    for row in range(0, num_states, every):
        state = int(order[row])
        name = ("→ " if state == drawn.start else "") + short(drawn.states[state])
        _write_row_name(canvas, name, ROW_NAME, -cell * (row + 0.5))
    if every > 1:
        ordinal = {2: "second", 5: "fifth", 10: "tenth"}.get(every, f"{every}th")
        caption.append(f"named: every {ordinal} state")
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
