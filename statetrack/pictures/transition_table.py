"""A transition table as a grid: a row for every state, a column for every symbol."""

from __future__ import annotations

import numpy as np

from statetrack.pictures._canvas import INK, Canvas, Room
from statetrack.pictures._keys import short
from statetrack.pictures.drawn import Drawn
from statetrack.sources import Floats

NAME, CELL = 8.0, 7.0
"""Font sizes: of the names of rows and columns, and of what is written into cells."""

TINTS = ("#9ecae9", "#ffc27a", "#a3d9b1", "#f2b5d4", "#fff3a3", "#d9c2f0", "#d8c3a5", "#c9e8e4")
"""Light colours for few states: none is more than another, and dark letters are read on each."""

STAYS = "#e4e4e4"
"""The colour of a cell that leads back to its own state, where there are too many for tints."""


def table_size(drawn: Drawn) -> tuple[float, float]:
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


def transition_table(drawn: Drawn, room: Room) -> Canvas:
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
        _write_row_name(canvas, _row_name(drawn, state, numbered), -height * (state + 0.5))
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


def _row_name(drawn: Drawn, state: int, numbered: bool) -> str:
    number = f"{state}  " if numbered and drawn.states[state] != str(state) else ""
    return ("→ " if state == drawn.start else "") + number + short(drawn.full_names[state])


def _write_row_name(canvas: Canvas, name: str, height: float) -> None:
    place: Floats = np.array([-6 - canvas.size(name, NAME)[0] / 2, height])
    canvas.text(name, place, NAME)
