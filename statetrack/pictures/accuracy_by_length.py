"""A figure of accuracy by length: a panel for each task, a line for each row of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from statetrack.errors import SettingsError
from statetrack.pictures._chosen import (
    BANDS,
    Choice,
    names_of,
    point_at,
    said_of,
    said_of_missing,
    said_of_seeds,
    said_of_words,
    shown_entries,
)
from statetrack.pictures._panels import (
    FLOORS,
    SHADE,
    Drawn,
    Sketch,
    Stroke,
    accuracy_axis,
    floor_handle,
    scale_along,
    strokes_of,
)
from statetrack.pictures.looks import Look
from statetrack.report import Entry, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

APART = 1e-3
"""The least difference of floor and chance for which both are drawn."""


def length_figure(report: Report, choice: Choice, look: Look) -> Drawn:
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
        _shade(axes, [e.trained_to for e in entries if e.column == column and e.trained_to])
    sketch.name_axes(panels, "length", "accuracy")
    ordered = {name: handles[name] for name in rows if name in handles}
    sketch.add_legend(figure, ordered | _marks(marks[len(rows) :]))
    return Drawn(figure, _caption(report, entries, choice, chance))


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


def _shade(axes: Axes, trained: Sequence[int]) -> None:
    """The lengths of training; where runs differ in them, those of all and those of any."""
    left = axes.get_xlim()[0]
    for longest in sorted(set(trained))[:1] + sorted(set(trained))[1:][-1:]:
        axes.axvspan(left, longest, color=SHADE, alpha=0.8, linewidth=0, zorder=0)


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
    return (*said, *said_of_missing(report, entries))
