"""A transition table as a grid: a row for every state, a column for every symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statetrack.pictures._canvas import INK, Canvas
from statetrack.pictures.drawn import Drawn
from statetrack.sources.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, CELL = 8.0, 7.0
LEAST_CELL = 11.0
WRITTEN = 26
"""The most states for which the state that is reached is written into its cell."""

BRIGHT = 0.18
"""Above this luminance of a cell, dark text has more contrast than white."""


def transition_table(drawn: Drawn) -> Figure:
    """The grid: a cell has the colour of the state that is reached, and its name where it fits."""
    canvas = Canvas()
    num_states = len(drawn.delta)
    written = num_states <= WRITTEN
    widths = [canvas.size(name, CELL)[0] for name in drawn.states]
    heads = [canvas.size(name, NAME)[0] for name in drawn.symbols]
    upright = written and max(heads) <= max(widths) + 10
    width = max(LEAST_CELL, max(widths) + 6 if written else 0, max(heads) + 6 if upright else 0)
    height = LEAST_CELL + (4 if written else 0)
    colours = _colours(num_states)
    size = np.array([width, height])
    rows, columns = np.nonzero(drawn.delta >= 0)
    targets = drawn.delta[rows, columns]
    corners = np.stack([width * columns, -height * (rows + 1)], axis=1)
    canvas.rectangles(corners, size, [_hex(colour) for colour in colours[targets]])
    if written:
        for corner, target in zip(corners, targets, strict=True):
            ink = INK if _luminance(colours[target]) > BRIGHT else "white"
            canvas.text(drawn.states[target], corner + size / 2, CELL, colour=ink)
    for state in range(num_states):
        _write_row_name(canvas, drawn, state, -height * (state + 0.5))
    for symbol, name in enumerate(drawn.symbols):
        canvas.heading(name, np.array([width * (symbol + 0.5), 4.0]), NAME, upright=upright)
    caption = [drawn.title, "row: state; column: symbol; colour: state reached"]
    if drawn.labels is not None:
        caption.append(
            "in brackets: the label" + ("" if drawn.asked.all() else ", - if not scored")
        )
    if drawn.leaves_out:
        caption.append("empty: never occurs")
    canvas.write_caption(caption)
    return canvas.figure()


def _write_row_name(canvas: Canvas, drawn: Drawn, state: int, height: float) -> None:
    name = ("→ " if state == drawn.start else "") + drawn.states[state]
    if (notes := drawn.notes) is not None:
        name += f"  [{notes[state]}]"
    canvas.text(name, np.array([-6 - canvas.size(name, NAME)[0] / 2, height]), NAME)


def _colours(count: int) -> Floats:
    """Colours of states, `[S, 3]`, in equal steps of brightness, for colour-blind readers too."""
    import matplotlib

    return np.array(matplotlib.colormaps["cividis"](np.linspace(0, 1, count)))[:, :3]


def _luminance(colour: Floats) -> float:
    """The relative luminance of an sRGB colour, from 0 to 1."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def _hex(colour: Floats) -> str:
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in colour)
