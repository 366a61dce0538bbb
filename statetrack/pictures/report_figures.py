"""Figures of a report for papers: by length, heat map, along a setting, ablation, angles."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statetrack.errors import SettingsError, nearest
from statetrack.evidence import Evidence, Representation
from statetrack.figures import INK, NOTE
from statetrack.pictures.canvas import text_width
from statetrack.pictures.heat_map import MEASURED, heat_figure
from statetrack.pictures.learned_map import map_figure
from statetrack.pictures.looks import Look, save_figure
from statetrack.pictures.sketch import (
    BANDS,
    BESIDE,
    FLOORS,
    SHADE,
    CaptionedFigure,
    Choice,
    IntervalPoint,
    Measure,
    Sketch,
    Stroke,
    accuracy_axis,
    entries_at,
    floor_handle,
    measure_of,
    names_of,
    point_at,
    said_of,
    said_of_missing,
    said_of_seeds,
    said_of_untested,
    said_of_words,
    scale_along,
    seeds_of,
    short,
    shown_entries,
    strokes_of,
)
from statetrack.report import Entry, Report
from statetrack.text import as_argument

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


APART = 1e-3
"""The least difference of floor and chance for which both are drawn."""


def length_figure(report: Report, choice: Choice, look: Look) -> CaptionedFigure:
    """Accuracy by length on a logarithmic axis, with intervals, floor, chance and training range.

    Raises `SettingsError` where no run was evaluated at two lengths or more.
    """
    entries = shown_entries(report)
    if all(len(entry.lengths) < 2 for entry in entries):
        raise SettingsError(
            "nothing to draw by length: every run was evaluated at one length only: "
            "`statetrack eval RUN --length 10-10000:x10` adds others"
        )
    rows, columns = names_of(report, entries)
    strokes = strokes_of(rows)
    lengths = sorted({length for entry in entries for length in entry.lengths})
    longest_trained = [entry.trained_to for entry in entries if entry.trained_to]
    chance = any(_chance_is_apart(entry) for entry in entries)
    band = f"band: {BANDS[choice.of]}"
    marks = [*rows, "floor", *(["chance"] if chance else []), band]
    marks += ["training lengths"] if longest_trained else []
    sketch = Sketch(columns, marks, look.titled(report.title), look)
    figure, panels = sketch.make()
    handles: dict[str, Any] = {}
    for axes, column in zip(panels, columns, strict=True):
        own = [entry for entry in entries if entry.column == column]
        own.sort(key=lambda entry: rows.index(entry.row))
        _draw_floors(axes, own, lengths)
        for entry in own:
            line = _draw_line(axes, entry, choice, strokes[entry.row])
            if line is not None:
                handles.setdefault(entry.row, line)
        accuracy_axis(axes)
    for axes, column in zip(panels, columns, strict=True):
        scale_along(axes, [*lengths, *longest_trained])
        trained = {e.trained_to for e in entries if e.column == column and e.trained_to}
        left = axes.get_xlim()[0]
        for longest in sorted({min(trained), max(trained)}) if trained else ():
            axes.axvspan(left, longest, color=SHADE, alpha=0.8, linewidth=0, zorder=0)
    sketch.name_axes(panels, "length", "accuracy")
    ordered = {name: handles[name] for name in rows if name in handles}
    sketch.add_legend(figure, ordered | _marks(marks[len(rows) :]))
    return CaptionedFigure(figure, _caption(report, entries, choice, chance))


def _draw_line(axes: Axes, entry: Entry, choice: Choice, stroke: Stroke) -> Any:
    """The accuracies of an entry; None where it has none to show."""
    reached = [(length, point_at(entry, length, choice.of)) for length in entry.lengths]
    points = [(length, point) for length, point in reached if point is not None]
    if not points:
        return None
    places = [length for length, _ in points]
    lows, highs = ([point[n] for _, point in points] for n in (1, 2))
    axes.fill_between(places, lows, highs, color=stroke.colour, alpha=0.16, linewidth=0)
    values = [point.value for _, point in points]
    (line,) = axes.plot(places, values, **stroke.of_line(), label=entry.row)
    return line


def _draw_floors(axes: Axes, entries: Sequence[Entry], lengths: Sequence[int]) -> None:
    """The floor of a task by length, and chance where that is another."""
    floors: dict[int, float] = {}
    for entry in entries:
        for row in entry.rows:
            floors.setdefault(row.length, row.floor)
    rising = sorted(floors)
    values = [floors[length] for length in rising]
    if len(rising) == 1:
        axes.axhline(values[0], **FLOORS["floor"])
    else:
        axes.plot(rising, values, **FLOORS["floor"])
    if any(_chance_is_apart(entry) for entry in entries):
        axes.axhline(entries[0].rows[0].chance, **FLOORS["chance"])


def _chance_is_apart(entry: Entry) -> bool:
    return any(abs(row.floor - row.chance) > APART for row in entry.rows)


def _marks(labels: Sequence[str]) -> dict[str, Any]:
    """What stands for floor, chance, bands and the training range in the legend."""
    from matplotlib.patches import Patch

    marks: dict[str, Any] = {}
    for label in labels:
        if label in FLOORS:
            marks[label] = floor_handle(label)
        else:
            light = label.startswith("training")
            marks[label] = Patch(facecolor=SHADE if light else "#b0b0b0", alpha=0.9)
    return marks


def _caption(
    report: Report, entries: Sequence[Entry], choice: Choice, chance: bool
) -> tuple[str, ...]:
    lengths = {length for entry in entries for length in entry.lengths}
    trained = sorted({entry.trained_to for entry in entries if entry.trained_to})
    said = [
        "accuracy at the last position by length of the words, "
        f"{min(lengths):,} to {max(lengths):,}, of {said_of(choice.of)}",
        f"{said_of_words(entries)} at each length; {said_of_seeds(entries)}",
        "dotted: the best constant answer at each length (floor)"
        + ("; dashes and dots: chance" if chance else ""),
    ]
    if trained:
        reach = f"{trained[0]:,}" if len(trained) == 1 else f"{trained[0]:,} to {trained[-1]:,}"
        said.append(f"shaded: lengths up to the longest of training ({reach})")
    said += said_of_untested(entries, sorted(lengths), choice, counted=False)
    return (*said, *said_of_missing(report, entries))


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


def axis_figure(report: Report, choice: Choice, look: Look) -> CaptionedFigure:
    """Accuracy, or the share of replicas right on every word, along an axis: a line for each row.

    Raises `SettingsError` for an axis that the runs do not have, or do not differ in.
    """
    length, entries = entries_at(report, choice)
    axis = choice.axis or _usual(entries)
    placed = [(entry, value) for entry in entries if (value := _value(entry, axis)) is not None]
    if not placed:
        known = list(dict.fromkeys([*ATTRIBUTES, *(name for e in entries for name in e.settings)]))
        raise SettingsError(f"axis '{axis}': no run has such a setting.{nearest(axis, known)}")
    values = sorted({value for _, value in placed})
    if len(values) < 2:
        raise SettingsError(f"nothing to draw along '{axis}': all runs have {short(values[0])}")
    measure = measure_of(report, choice)
    unlimited = axis == UNLIMITED and values[0] == 0
    end = values[-1] * (values[-1] / max(values[unlimited], 1)) ** 0.25 * 2 if unlimited else 0.0
    lines: dict[tuple[str, str], list[tuple[float, IntervalPoint]]] = defaultdict(list)
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
    drawn = {row: handles[row] for row in rows if row in handles}
    floors = {"floor": floor_handle("floor")} if measure == "accuracy" else {}
    sketch.add_legend(figure, drawn | floors)
    what = MEASURED[measure]
    of = "" if measure == "success" else f" of {said_of(choice.of)}"
    caption: tuple[str, ...] = (
        f"{what} at length {length:,} by {NAMES.get(axis, axis)}{of}; bars: {band}",
        f"{said_of_words(entries, [length])} per replica; {said_of_seeds(entries)}",
    )
    if unlimited:
        caption += ("∞: new words at every step",)
    shown = [entry for entry, _ in placed]
    caption += said_of_untested(shown, [length], choice, counted=measure == "success")
    return CaptionedFigure(figure, (*caption, *said_of_missing(report, shown)))


def _draw(axes: Any, points: Sequence[tuple[float, IntervalPoint]], stroke: Any) -> Any:
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


def _without(entry: Entry, axis: str) -> str:
    """The name of a row without what it says of the axis."""
    name = re.sub(rf", {re.escape(axis)}=[^,]*", "", entry.row)
    return re.sub(rf"^{re.escape(axis)}=[^,]*, ", "", name)


def _in_order(report: Report, entries: Sequence[Entry]) -> list[Entry]:
    places = {name: number for number, name in enumerate(report.row_names)}
    return sorted(entries, key=lambda entry: places.get(entry.row, len(places)))


BAR, LINE = "#c9d8e6", 1.55
"""The colour of bars, and the height of a row in units of the letters."""


def ablation_figure(report: Report, choice: Choice, look: Look) -> CaptionedFigure:
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
    names = max(text_width(name, 0.833 * letters) for name in rows) + letters
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
                selected = any(row.selected for row in entry.at(length))
                _say(axes, y, "not all tested" if selected else "diverged")
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
        *said_of_untested(entries, [length], choice, counted=False),
    )
    return CaptionedFigure(figure, (*caption, *said_of_missing(report, entries)))


def _say(axes: Axes, y: int, text: str) -> None:
    """What stands in place of a bar."""
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.text(0.02, y, text, va="center", size="x-small", color=NOTE, bbox=behind)


def angle_figure(report: Report, choice: Choice, look: Look) -> CaptionedFigure:
    """The angles, or harmonics, of the planes that a run turns, of which `probe` found some.

    Raises `SettingsError` for several runs, and where nothing was found.
    """
    if len(report.entries) != 1:
        raise SettingsError(
            f"angles are those of one run, and {len(report.entries)} are given: name one run folder"
        )
    entry = report.entries[0]
    found = next((each for each in entry.evidence if isinstance(each, Representation)), None)
    if found is None or not found.planes:
        raise SettingsError(
            f"{entry.run}: no angles of it are known: `statetrack probe "
            f"{as_argument(entry.run)} --only representation` finds those of a linear model"
        )
    figure = found.plane_figure(f"{entry.model} on {entry.task}")
    if look.width or look.height:
        width, height = figure.get_size_inches()
        figure.set_size_inches(
            look.width or width, look.height or height * (look.width or width) / width
        )
    return CaptionedFigure(figure, (f"the planes that the selected replica of {entry.run} turns",))


KINDS: Mapping[str, Callable[[Report, Choice, Look], CaptionedFigure]] = {
    "length": length_figure,
    "heat": heat_figure,
    "map": map_figure,
    "data": axis_figure,
    "ablation": ablation_figure,
    "angles": angle_figure,
}
"""The kinds of figures, and what draws them."""


def usual_kind(report: Report, choice: Choice) -> str:
    """The kind that suits a report: along an axis if one is named, by length if there are several.

    The tables of runs that were evaluated at one length are heat maps.
    """
    if choice.axis is not None:
        return "data"
    return "length" if any(len(entry.lengths) > 1 for entry in report.entries) else "heat"


def draw_report(
    report: Report, kind: str, path: Path, choice: Choice, look: Look
) -> tuple[str, ...]:
    """Draw a figure of a report into a file; what its caption is to say.

    The same report gives the same bytes. Raises `SettingsError` where there is nothing to draw, for
    an ending that names no type of file, and without matplotlib.
    """
    caption: tuple[str, ...] = ()

    def draw() -> Figure:
        nonlocal caption
        figure, caption = KINDS[kind](report, choice, look)
        return figure

    save_figure(draw, path, look)
    return caption


def draw_evidence(found: Iterable[Evidence], folder: Path, ending: str, of: str) -> list[Path]:
    """Draw the figures of some evidence into a folder, one file each; `of` ends the titles.

    `ending` is that of the files: .svg, .png or .pdf. Raises `SettingsError` for another, without
    matplotlib, and where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SettingsError(f"{folder}: cannot be made: {problem.strerror}") from None
    written = []
    for name, draw in (drawing for each in found for drawing in each.figures(of)):
        path = folder / f"{name}{ending}"
        save_figure(draw, path)
        written.append(path)
    return written
