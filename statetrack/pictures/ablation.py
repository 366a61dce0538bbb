"""A figure of rows beside each other: a bar for each, with its seeds as points, by task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from statetrack.pictures._canvas import INK, NOTE, _width
from statetrack.pictures._chosen import (
    BANDS,
    Choice,
    entries_at,
    names_of,
    point_at,
    said_of,
    said_of_missing,
    said_of_seeds,
    said_of_words,
    seeds_of,
)
from statetrack.pictures._panels import BESIDE, FLOORS, Drawn, Sketch, floor_handle
from statetrack.pictures.looks import Look
from statetrack.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR, LINE = "#c9d8e6", 1.55
"""The colour of bars, and the height of a row in units of the letters."""


def ablation_figure(report: Report, choice: Choice, look: Look) -> Drawn:
    """Bars of accuracy at one length, a panel for each task; points are seeds.

    Raises `SettingsError` where no run was evaluated at the length.
    """
    from matplotlib import rcParams
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    length, entries = entries_at(report, choice)
    rows, columns = names_of(report, entries)
    marks = ["selected" if choice.of == "selected" else "median", BANDS[choice.of], "seed", "floor"]
    letters = float(look.font or rcParams["font.size"])
    title = look.titled(f"{report.title}: accuracy at length {length:,}")
    names = max(_width(name, 0.833 * letters) for name in rows) + letters
    sketch = Sketch(columns, marks, title, look, left=names)
    down = -(-len(columns) // min(sketch.beside, BESIDE))
    if look.height is None:
        tall = down * (len(rows) * LINE + 4.2) + 4.5 + (2.2 if sketch.title else 0.0)
        wide = look.width or min(12.0, (names + 150 * sketch.beside) / 72)
        sized = replace(look, width=wide, height=max(1.5, tall * letters / 72))
        sketch = Sketch(columns, marks, title, sized, left=names)
    figure, panels = sketch.make()
    dots: dict[str, Any] = {"color": INK, "markerfacecolor": "white", "markeredgewidth": 0.8}
    dots["markersize"] = 0.7 * rcParams["lines.markersize"]
    for axes, column in zip(panels, columns, strict=True):
        for y, row in enumerate(rows):
            entry = next((e for e in entries if (e.row, e.column) == (row, column)), None)
            if entry is None:
                _say(axes, y, "not tested")
                continue
            point = point_at(entry, length, choice.of)
            if point is None:
                _say(axes, y, "diverged")
            else:
                axes.barh(y, point.value, height=0.72, color=BAR, edgecolor=NOTE, linewidth=0.5)
                axes.plot([point.low, point.high], [y, y], color=NOTE, linewidth=1.0)
            seeds = seeds_of(entry, entry.at(length))
            for place, each in enumerate(seeds):
                aside = 0.0 if len(seeds) == 1 else 0.5 * (place / (len(seeds) - 1) - 0.5)
                axes.plot(
                    each.accuracy,
                    y + aside,
                    "o",
                    **dots,
                    clip_on=False,
                    zorder=4,
                )
        floor = next(r.floor for e in entries if e.column == column for r in e.at(length))
        axes.axvline(floor, **FLOORS["floor"])
        axes.set_xlim(0, 1.02)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), rows)
        for label in axes.get_yticklabels():
            label.set_parse_math(False)
        axes.tick_params(axis="y", length=0)
    sketch.name_axes(panels, "accuracy")
    handles = {
        marks[0]: Patch(facecolor=BAR, edgecolor=NOTE, linewidth=0.5),
        marks[1]: Line2D([], [], color=NOTE, linewidth=1.0),
        marks[2]: Line2D([], [], linestyle="none", marker="o", **dots),
        marks[3]: floor_handle("floor"),
    }
    sketch.add_legend(figure, handles)
    caption = (
        f"accuracy at the last position at length {length:,}; bars: {said_of(choice.of)}; points: "
        "the seeds at the selected learning rate",
        f"{said_of_words(entries, [length])} per replica; {said_of_seeds(entries)}",
        "dotted: the best constant answer (floor)",
    )
    return Drawn(figure, (*caption, *said_of_missing(report, entries)))


def _say(axes: Axes, y: int, text: str) -> None:
    """What stands in place of a bar."""
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.text(0.02, y, text, va="center", size="x-small", color=NOTE, bbox=behind)
