"""A figure of accuracy along a setting, such as the number of training words (data efficiency)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from statetrack.errors import SettingsError, nearest
from statetrack.pictures._chosen import (
    BANDS,
    Choice,
    Measure,
    Point,
    entries_at,
    measure_of,
    point_at,
    said_of,
    said_of_missing,
    said_of_seeds,
    said_of_words,
)
from statetrack.pictures._panels import (
    FLOORS,
    Drawn,
    Sketch,
    accuracy_axis,
    floor_handle,
    scale_along,
    short,
    strokes_of,
)
from statetrack.pictures.heat_map import MEASURED
from statetrack.pictures.looks import Look
from statetrack.report import Entry, Report

ATTRIBUTES = ("words", "parameters", "dimensions", "steps", "seconds")
"""What is measured of a run, and can be an axis as a setting can."""

NAMES = {
    "train_samples": "training words",
    "words": "words trained on",
    "seconds": "seconds of training",
    "dimensions": "numbers in the state",
    "parameters": "weights of one replica",
}
"""What axes are called where the name of the setting says less."""

UP: dict[Measure, str] = {
    "accuracy": "accuracy",
    "scaled": "accuracy, chance at 0",
    "prefix": "words right at every position",
    "success": "success",
}
"""What the vertical axis is called."""

UNLIMITED = "train_samples"
"""The setting whose 0 stands for ever new words: it is drawn behind the greatest number."""


def axis_figure(report: Report, choice: Choice, look: Look) -> Drawn:
    """Accuracy, or the share of replicas right on every word, along an axis: a line for each row.

    Raises `SettingsError` for an axis that the runs do not have, or do not differ in.
    """
    length, entries = entries_at(report, choice)
    axis = choice.axis or _usual(entries)
    placed = [(entry, value) for entry in entries if (value := _value(entry, axis)) is not None]
    if not placed:
        raise _unknown(axis, entries)
    values = sorted({value for _, value in placed})
    if len(values) < 2:
        raise SettingsError(f"nothing to draw along '{axis}': all runs have {short(values[0])}")
    measure = measure_of(report, choice)
    unlimited = axis == UNLIMITED and values[0] == 0
    end = values[-1] * (values[-1] / max(values[unlimited], 1)) ** 0.25 * 2 if unlimited else 0.0
    lines: dict[tuple[str, str], list[tuple[float, Point]]] = defaultdict(list)
    for entry, value in placed:
        point = point_at(entry, length, choice.of, measure)
        if point is not None:
            where = end if unlimited and value == 0 else value
            lines[entry.column, _without(entry, axis)].append((where, point))
    columns = [name for name in report.column_names if any(name == c for c, _ in lines)]
    rows = list(dict.fromkeys(_without(e, axis) for e in _in_order(report, entries)))
    rows = [row for row in rows if any(row == name for _, name in lines)]
    strokes = strokes_of(rows)
    band = "95 % interval" if measure == "success" else BANDS[choice.of]
    marks = [*rows, *(["floor"] if measure == "accuracy" else [])]
    sketch = Sketch(columns, marks, look.titled(report.title), look)
    figure, panels = sketch.make()
    handles: dict[str, Any] = {}
    for axes, column in zip(panels, columns, strict=True):
        if measure == "accuracy":
            floor = next(row.floor for e, _ in placed if e.column == column for row in e.at(length))
            axes.axhline(floor, **FLOORS["floor"])
        for row in rows:
            points = sorted(lines.get((column, row), []))
            if points:
                handles.setdefault(row, _draw(axes, points, strokes[row]))
        accuracy_axis(axes)
    places = [value for value in values if value or not unlimited]
    for axes in panels:
        wide = scale_along(axes, [*places, *([end] if unlimited else [])])
        if unlimited:
            _mark_unlimited(axes, end, places, wide)
    up = UP[measure]
    sketch.name_axes(panels, NAMES.get(axis, axis.replace("_", " ")), up)
    shown = {row: handles[row] for row in rows if row in handles}
    floors = {"floor": floor_handle("floor")} if measure == "accuracy" else {}
    sketch.add_legend(figure, shown | floors)
    what = MEASURED[measure]
    of = "" if measure == "success" else f" of {said_of(choice.of)}"
    caption: tuple[str, ...] = (
        f"{what} at length {length:,} by {NAMES.get(axis, axis)}{of}; bars: {band}",
        f"{said_of_words(entries, [length])} per replica; {said_of_seeds(entries)}",
    )
    if unlimited:
        caption += ("∞: new words at every step",)
    return Drawn(figure, (*caption, *said_of_missing(report, [entry for entry, _ in placed])))


def _draw(axes: Any, points: Sequence[tuple[float, Point]], stroke: Any) -> Any:
    places = [place for place, _ in points]
    values = [point.value for _, point in points]
    below = [max(0.0, point.value - point.low) for _, point in points]
    above = [max(0.0, point.high - point.value) for _, point in points]
    axes.errorbar(
        places, values, yerr=[below, above], fmt="none", ecolor=stroke.colour, elinewidth=0.8
    )
    (line,) = axes.plot(places, values, **stroke.of_line())
    return line


def _mark_unlimited(axes: Any, end: float, places: Sequence[float], wide: bool) -> None:
    """A tick for words without limit, behind those of the numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    ticks = [tick for tick in axes.get_xticks() if tick <= max(places)]
    axes.xaxis.set_major_locator(FixedLocator([*ticks, end]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: "∞" if v == end else short(v)))
    if wide:
        minor = [tick for tick in axes.get_xticks(minor=True) if tick <= max(places)]
        axes.xaxis.set_minor_locator(FixedLocator(minor))


def _usual(entries: Sequence[Entry]) -> str:
    """The numbers of training words, or what the runs are varied in, or the words trained on."""
    varied = [name for entry in entries for name in entry.axes]
    for name in ("train_samples", *varied):
        if len({_value(entry, name) for entry in entries} - {None}) > 1:
            return name
    return "words"


def _value(entry: Entry, axis: str) -> float | None:
    """The number of an entry on an axis; None where it has none.

    Raises `SettingsError` for a value that is no number.
    """
    if axis in entry.axes:
        value = entry.axes[axis]
    elif axis in entry.settings:
        value = entry.settings[axis]
    else:
        value = getattr(entry, axis) if axis in ATTRIBUTES else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(
            f"axis '{axis}': {value!r} of {entry.row} is no number: such runs are drawn by "
            "the kind 'ablation'"
        )
    return float(value)


def _unknown(axis: str, entries: Sequence[Entry]) -> SettingsError:
    known = list(dict.fromkeys([*ATTRIBUTES, *(name for e in entries for name in e.settings)]))
    return SettingsError(f"axis '{axis}': no run has such a setting.{nearest(axis, known)}")


def _without(entry: Entry, axis: str) -> str:
    """The name of a row without what it says of the axis."""
    name = re.sub(rf", {re.escape(axis)}=[^,]*", "", entry.row)
    return re.sub(rf"^{re.escape(axis)}=[^,]*, ", "", name)


def _in_order(report: Report, entries: Sequence[Entry]) -> list[Entry]:
    places = {name: number for number, name in enumerate(report.row_names)}
    return sorted(entries, key=lambda entry: places.get(entry.row, len(places)))
