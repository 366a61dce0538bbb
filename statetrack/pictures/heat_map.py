"""A heat map of a report: rows and columns of its table, a shade and numbers in each cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from statetrack.figures import INK, NOTE
from statetrack.pictures.canvas import text_width
from statetrack.pictures.looks import Look
from statetrack.pictures.sketch import (
    CaptionedFigure,
    Choice,
    Measure,
    entries_at,
    folded,
    measure_of,
    name_cells,
    num_right,
    point_at,
    said_of_missing,
    said_of_seeds,
    said_of_untested,
    said_of_words,
)
from statetrack.report import Entry, Report
from statetrack.scoring import rounded_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = "cividis"
"""A map of colours whose lightness rises all along, so that it can be read in grey."""

MEASURED: dict[Measure, str] = {
    "accuracy": "accuracy",
    "scaled": "accuracy with chance at 0",
    "prefix": "share of words right at every position",
    "success": "share of replicas right on every word",
}

_LONGEST = 28
"""The most letters in a line of the name of a row or a column."""

_DOWN, _ACROSS = 3.1, 5.4
"""The height and the least width of a cell, in units of the letters."""


def heat_figure(report: Report, choice: Choice, look: Look) -> CaptionedFigure:
    """The table of a report: the selected replica's accuracy, and how many replicas are right.

    Raises `SettingsError` where no run was evaluated at the length.
    """
    from matplotlib import colormaps, rcParams
    from matplotlib.figure import Figure

    length, shown = entries_at(report, choice)
    measure = measure_of(report, choice)
    rows, columns = _names(report)
    size = float(rcParams["font.size"])
    beside, above_them = ([folded(n, _LONGEST) for n in names] for names in (rows, columns))
    wide = max([_ACROSS * size, *(_wide(name, size) + 0.6 * size for name in above_them)])
    upright = wide <= 2 * _ACROSS * size
    wide = wide if upright else _ACROSS * size
    names = max(_wide(name, size) for name in beside) + size
    lines = max(name.count("\n") for name in above_them) + 1
    above = (0.4 + 1.2 * lines) * size
    if not upright:
        above = max(_wide(name, size) for name in above_them) + size
    title = look.titled(f"{report.title}: {MEASURED[measure]} at length {length:,}")
    bar = 6.2 * size if look.legend else 0.0
    width = look.width * 72 if look.width else names + wide * len(columns) + bar + size
    letters = size
    if look.width and names + bar + 0.8 * wide * len(columns) > width:
        # a table too wide for what was asked for has smaller letters and cells
        letters = size * width / (names + bar + 0.8 * wide * len(columns))
        names, above = names * letters / size, above * letters / size
    wide = (width - names - bar - letters) / len(columns)
    head = 0.0
    if title:
        title = folded(title, int(width / size / 0.6))
        head = 1.5 * size * (title.count("\n") + 1) + 0.6 * size
    down = _DOWN * letters
    height = look.height * 72 if look.height else head + above + down * len(rows) + letters
    down = (height - head - above - letters) / len(rows)
    figure = Figure(figsize=(width / 72, height / 72), facecolor="white")
    box = (names / width, letters / height, wide * len(columns) / width, down * len(rows) / height)
    axes = figure.add_axes(box)
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    shades = colormaps[SHADES]
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            entry = report.find(row, column)
            _draw_cell(axes, (x, y), entry, length, measure, choice, letters, shades)
    name_cells(axes, beside, above_them, turn=0 if upright else 90, labelsize=letters)
    if title:
        figure.text(
            0.5 * size / width, 1 - 0.4 * size / height, title, va="top", size=1.1 * size, color=INK
        ).set_parse_math(False)
    if look.legend:
        _draw_bar(
            figure, (width - 4.8 * size) / width, box, size / width, shades, MEASURED[measure]
        )
    return CaptionedFigure(figure, _caption(report, shown, length, measure, choice))


def _wide(name: str, size: float) -> float:
    """The width of a name that may have two lines, in points."""
    return max(text_width(line, size) for line in name.split("\n"))


def _names(report: Report) -> tuple[list[str], list[str]]:
    """The rows and columns of the table that any entry is in."""
    rows = [n for n in report.row_names if any(entry.row == n for entry in report.entries)]
    columns = [n for n in report.column_names if any(e.column == n for e in report.entries)]
    return rows, columns


def _draw_cell(
    axes: Axes,
    place: tuple[int, int],
    entry: Entry | None,
    length: int,
    measure: Measure,
    choice: Choice,
    letters: float,
    shades: Any,
) -> None:
    from matplotlib.patches import Rectangle

    x, y = place
    point = None if entry is None else point_at(entry, length, choice.of, measure)
    if entry is None:
        return
    lines = _lines(entry, length, choice)
    if point is None and not lines:
        lines = ["not all", "tested"]
    if point is None:
        colour: Any = "#f4f4f4"
        ink, hatch = NOTE, "////"
    else:
        red, green, blue, _ = shades(min(1.0, max(0.0, point.value)))
        colour, hatch = (red, green, blue), ""
        ink = _ink_on(red, green, blue)
        lines = [rounded_down(point.value), *lines]
    axes.add_patch(
        Rectangle(
            (x, y), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.0, hatch=hatch or None
        )
    )
    axes.text(
        x + 0.5,
        y + 0.5,
        "\n".join(lines),
        ha="center",
        va="center",
        size=letters * (1.0 if len(lines) < 3 else 0.8),
        color=ink,
        linespacing=1.15,
        parse_math=False,
        bbox=None if point else {"facecolor": colour, "edgecolor": "none", "pad": 1.0},
    )


def _ink_on(*colour: float) -> str:
    """White or dark letters, whichever has the greater contrast (WCAG 2, relative luminance)."""
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    light = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
    dark = 0.0103  # the luminance of INK
    return "white" if 1.05 / (light + 0.05) > (light + 0.05) / (dark + 0.05) else INK


def _lines(entry: Entry, length: int, choice: Choice) -> list[str]:
    """What a cell says below its value; in place of it, where there is none."""
    lines = []
    if entry.at(length):
        counted = num_right(entry, length)
        diverged = not any(row.selected for row in entry.at(length)) and entry.state == "finished"
        lines += ["diverged"] if diverged else []
        lines += [] if counted is None else ["{}/{}".format(*counted)]
    elif entry.state == "finished":
        lines.append("diverged" if entry.replicas == entry.diverged else "not tested")
    else:
        lines.append(entry.state)
    if choice.published and entry.compared:
        lines.append(f"[{entry.compared[0].published:.2f}]")
    return lines


def _draw_bar(
    figure: Figure, left: float, box: Sequence[float], width: float, shades: Any, label: str
) -> None:
    """The scale of shades, from 0 to 1, right of the table, and what it is of."""
    import numpy as np

    axes = figure.add_axes((left, box[1], width, box[3]))
    axes.imshow(
        np.linspace(0, 1, 128)[:, None],
        cmap=shades,
        aspect="auto",
        origin="lower",
        extent=(0, 1, 0, 1),
    )
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.yaxis.set_label_position("right")
    tall = 72 * float(figure.get_figheight()) * box[3]
    axes.set_ylabel(folded(label, max(8, int(tall / 6))), color=INK)
    for side in axes.spines.values():
        side.set_visible(False)


def _caption(
    report: Report, shown: Sequence[Entry], length: int, measure: Measure, choice: Choice
) -> tuple[str, ...]:
    of = "the selected replica" if choice.of == "selected" else "seeds, their median"
    first = f"{MEASURED[measure]} at length {length:,}"
    first += "" if measure == "success" else f" of {of}, rounded down"
    below = "below it: replicas with every answer right, of all"
    published = [each for entry in shown for each in entry.compared[:1]]
    if choice.published and published:
        sources = dict.fromkeys(
            f"{each.source}{f', {each.reference}' if each.reference else ''} ({each.trust})"
            for each in published
        )
        below += f"; in brackets: published, {'; '.join(sources)}"
    said = f"{said_of_words(shown, [length])} per replica; {said_of_seeds(shown)}"
    untested = said_of_untested(shown, [length], choice, counted=True)
    return (first, below, said, *untested, *said_of_missing(report, shown))
