"""The map of a report: a square for each model and task, coloured by what can be and is learned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from statetrack.errors import SettingsError
from statetrack.figures import INK
from statetrack.pictures.canvas import text_width
from statetrack.pictures.looks import Look, save_figure
from statetrack.pictures.sketch import CaptionedFigure, Choice, name_cells, short
from statetrack.report import STANDINGS, LearnedMap, MapCell, Report, Standing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Shade(NamedTuple):
    """How cells of one standing look; hatches tell them apart in grey."""

    colour: str
    ink: str = INK
    hatch: str = ""


SHADES: dict[Standing, Shade] = {
    "learned": Shade("#0072b2", "white"),
    "not held": Shade("#9fd3f2"),
    "not learned": Shade("#e69f00"),
    "too small": Shade("#f7dfae", hatch="...."),
    "cannot": Shade("#e4e4e4"),
    "open, learned": Shade("#009e73", "white"),
    "open": Shade("#c9e8dd", hatch="////"),
    "DISAGREES": Shade("#b3006b", "white"),
    "tests nothing": Shade("#ffffff", hatch="xxxx"),
}

_ACROSS, _DOWN = 2.3, 1.5
"""The width and the height of a cell, in units of its letters."""


def map_figure(report: Report, choice: Choice, look: Look) -> CaptionedFigure:
    """The map of a report.

    Raises `SettingsError` where no run was evaluated on words longer than those of training.
    """
    found = LearnedMap.of(map(MapCell.of_entry, report.entries))
    left_out = len(report.entries) - len(found.cells)
    if not found.cells:
        raise SettingsError(
            "nothing to draw as a map: no run was evaluated on words longer than those of training"
        )
    return CaptionedFigure(
        draw_map(found, look.titled(report.title), look), map_caption(found, left_out)
    )


def draw_learned(found: LearnedMap, path: Path, look: Look) -> None:
    """Draw a map into a file; raises `SettingsError` as `save_figure`."""
    save_figure(lambda: draw_map(found, look.titled(""), look), path, look)


def map_caption(found: LearnedMap, left_out: int = 0) -> tuple[str, ...]:
    """What a caption of a map has to say; so many runs have no square."""
    replicas = sorted({cell.replicas for cell in found.cells})
    said = " to ".join(f"{number}" for number in dict.fromkeys((replicas[0], replicas[-1])))
    said += " replica" if replicas == [1] else " replicas"
    runs = f"{left_out:,} run{'s' if left_out > 1 else ''}"
    return (
        f"{len(found.cells):,} cells, {said} in each; numbers: in cells that are right, "
        "the replicas with every word of every longer length right; in others, the longest tested "
        "length up to which the best replica has every word right",
        "columns: tasks, from what most rows can do by theory to what fewest can; rows: from those "
        "that can do fewest to those that can do most",
        *([f"not drawn: {runs} not evaluated on words longer than training's"] if left_out else []),
    )


def draw_map(found: LearnedMap, title: str, look: Look) -> Figure:
    """The figure of a map; of a width that is asked for, cells and letters are as small as need."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    size = float(rcParams["font.size"])
    beside = max(text_width(name, size) for name in found.rows) + size
    above = max(text_width(name, size) for name in found.columns) + size
    told = _told(found) if look.legend else {}
    legend = 1.7 * size * (len(told) + 1) if told else 0.0
    natural = beside + _ACROSS * size * len(found.columns) + size
    longest = max((text_width(text, 0.9 * size) for text in told.values()), default=0.0)
    least = max(text_width(title, 1.1 * size), 4 * size + longest if told else 0.0) + 2 * size
    width = look.width * 72 if look.width else max(natural, least)
    letters = min(size, size * width / natural)
    beside, above = beside * letters / size, above * letters / size
    across = min(_ACROSS * letters, (width - beside - letters) / len(found.columns))
    head = 2.4 * size if title else 0.0
    height = head + above + _DOWN * letters * len(found.rows) + legend + letters
    height = look.height * 72 if look.height else height
    down = (height - head - above - legend - letters) / len(found.rows)
    figure = Figure(figsize=(width / 72, height / 72), facecolor="white")
    box = (beside, legend + letters, across * len(found.columns), down * len(found.rows))
    axes = figure.add_axes(
        (box[0] / width, box[1] / height, box[2] / width, box[3] / height),
        xlim=(0, len(found.columns)),
        ylim=(len(found.rows), 0),
    )
    places = {
        (row, column): (x, y)
        for y, row in enumerate(found.rows)
        for x, column in enumerate(found.columns)
    }
    for cell in found.cells:
        _draw_cell(axes, places[cell.row, cell.column], cell, 0.72 * letters)
    name_cells(axes, found.rows, found.columns, turn=90, labelsize=letters, pad=2)
    if title:
        figure.text(
            0.5 * size / width, 1 - 0.5 * size / height, title, va="top", size=1.1 * size, color=INK
        ).set_parse_math(False)
    if told:
        _draw_legend(figure, told, size, min(1.0, (width - 4 * size) / longest), (width, height))
    return figure


def _draw_cell(axes: Any, place: tuple[int, int], cell: MapCell, letters: float) -> None:
    x, y = place
    shade = SHADES[cell.standing]
    _draw_square(axes, (x, y, 1, 1), shade)
    told = str(cell.right) if cell.right else short(cell.holds_to) if cell.holds_to else ""
    if told and cell.standing != "tests nothing":
        behind = {"facecolor": shade.colour, "edgecolor": "none", "pad": 0.6}
        style: dict[str, Any] = {"ha": "center", "va": "center", "size": letters}
        style["bbox"] = behind if shade.hatch else None
        axes.text(x + 0.5, y + 0.52, told, color=shade.ink, **style)


def _draw_square(axes: Any, box: tuple[float, float, float, float], shade: Shade) -> None:
    """A square of colour, under it the lines of its hatch."""
    from matplotlib.patches import Rectangle

    x, y, width, height = box
    axes.add_patch(
        Rectangle((x, y), width, height, facecolor=shade.colour, edgecolor="white", linewidth=0.8)
    )
    if shade.hatch:
        lines: dict[str, Any] = {"hatch": shade.hatch, "edgecolor": "#8c8c8c", "linewidth": 0}
        axes.add_patch(Rectangle((x, y), width, height, fill=False, **lines))


def _draw_legend(
    figure: Figure,
    told: Mapping[Standing, str],
    size: float,
    fitting: float,
    whole: tuple[float, float],
) -> None:
    """A line for each standing that there is: its square and its words, as small as they fit."""
    width, height = whole
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    style: dict[str, Any] = {"va": "center", "size": 0.9 * size * fitting, "color": INK}
    for number, (standing, text) in enumerate(told.items()):
        low = 1.7 * size * (len(told) - number - 0.5)
        _draw_square(axes, (0.5 * size, low, 2.3 * size, 1.4 * size), SHADES[standing])
        axes.text(3.4 * size, low + 0.7 * size, text, **style)


def _told(found: LearnedMap) -> dict[Standing, str]:
    """What the legend says of each standing that there is."""
    return {
        standing: f"{standing}: {STANDINGS[standing]} ({cells:,})"
        for standing, cells in found.counts().items()
    }
