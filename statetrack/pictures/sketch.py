"""What figures of reports have in common: which scores they show, panels, lines, ticks, legends.

Matplotlib is an optional dependency, imported when something is drawn. Lines differ in dashes and
markers as well as in colour, so that figures can be read in grey.
"""

from __future__ import annotations

import math
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from statetrack.errors import SettingsError
from statetrack.figures import INK, NOTE, PALETTE
from statetrack.pictures.canvas import text_width
from statetrack.pictures.looks import Look
from statetrack.report import Entry, Report
from statetrack.runs import EvaluationRow
from statetrack.scoring import ratio, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Of = Literal["selected", "median"]
"""What a figure shows of several replicas: the one that validation selected, or their median."""

Measure = Literal["accuracy", "scaled", "prefix", "success"]
"""What can be drawn; reports know horizons too, which are no shares."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is to be drawn of a report.

    `length` is by default that of the report. `axis` is the setting along which data efficiency is
    drawn. `published` writes published numbers into heat maps.
    """

    of: Of = "selected"
    length: int | None = None
    axis: str | None = None
    measure: Measure | None = None
    published: bool = False


class IntervalPoint(NamedTuple):
    """A value with the interval about it."""

    value: float
    low: float
    high: float


def shown_entries(report: Report) -> list[Entry]:
    """The entries with scores.

    Raises `SettingsError` where there are none.
    """
    found = [entry for entry in report.entries if entry.rows]
    if not found:
        states = Counter(entry.state for entry in report.entries)
        said = ", ".join(f"{number} {state}" for state, number in states.items()) or "no run"
        raise SettingsError(
            f"nothing to draw: of {report.title} no run was evaluated ({said}): `statetrack "
            f"{f'reproduce {report.suite}' if report.suite else 'eval RUN'}` does that"
        )
    return found


def entries_at(report: Report, choice: Choice) -> tuple[int, list[Entry]]:
    """The length to show, and the entries that were evaluated there.

    Raises `SettingsError` where there are none.
    """
    found = shown_entries(report)
    length = choice.length or report.length
    there = [entry for entry in found if entry.at(length)]
    if not there:
        every = sorted({each for entry in found for each in entry.lengths})
        known = ", ".join(f"{each:,}" for each in every[:8]) + (", ..." if len(every) > 8 else "")
        raise SettingsError(
            f"nothing to draw: no run was evaluated at length {length:,}; there are {known}"
        )
    return length, there


def measure_of(report: Report, choice: Choice) -> Measure:
    """What is to be drawn: what was asked for, else the report's measure, else accuracy."""
    if choice.measure is not None:
        return choice.measure
    known = {"scaled": "scaled", "prefix": "prefix", "success": "success"}
    return cast(Measure, known.get(report.measure, "accuracy"))


def seeds_of(entry: Entry, rows: Sequence[EvaluationRow]) -> list[EvaluationRow]:
    """Of rows at one length, those with the learning rate of the selected replica.

    Validation selected it, on words of the training lengths.
    """
    rates = {row.lr for row in entry.rows if row.selected}
    return [row for row in rows if row.lr in rates] if rates else list(rows)


def point_at(
    entry: Entry, length: int, of: Of, measure: Measure = "accuracy"
) -> IntervalPoint | None:
    """What an entry reached at a length; None where nothing is known of it.

    Of the selected replica, with its 95 % Wilson interval; of the seeds at its learning rate the
    median, with their range; the share of replicas right on every word, with its Wilson interval.
    As in a table of the report, a replica that diverged counts as 0, and nothing is known of
    several where some were not evaluated.
    """
    rows = entry.at(length)
    if measure == "success":
        counted = num_right(entry, length)
        return None if counted is None else IntervalPoint(ratio(*counted), *wilson(*counted))
    if of == "selected":
        row = next((row for row in rows if row.selected), None)
        return None if row is None else _scored(row, measure)
    seeds = seeds_of(entry, rows)
    same = [one for one in entry.outcomes if one.lr in {row.lr for row in seeds}]
    gone = sum(one.diverged for one in same)
    if not seeds or len(seeds) + gone < len(same):
        return None
    values = [*(_scored(row, measure).value for row in seeds), *[0.0] * gone]
    return IntervalPoint(statistics.median(values), min(values), max(values))


def _scored(row: EvaluationRow, measure: Measure) -> IntervalPoint:
    if measure == "scaled" and row.chance < 1:
        values = [(v - row.chance) / (1 - row.chance) for v in (row.accuracy, row.low, row.high)]
        return IntervalPoint(*values)
    if measure == "prefix":
        right = round(row.prefix_accuracy * row.sequences)
        return IntervalPoint(row.prefix_accuracy, *wilson(right, row.sequences))
    return IntervalPoint(row.accuracy, row.low, row.high)


def num_right(entry: Entry, length: int) -> tuple[int, int] | None:
    """How many replicas are right on every word of a length, of how many.

    None where one that did not diverge was not evaluated.
    """
    rows = entry.at(length)
    if not rows or len(rows) + entry.diverged < entry.replicas:
        return None
    return sum(row.all_right for row in rows), max(entry.replicas, len(rows))


def said_of_untested(
    entries: Sequence[Entry], lengths: Sequence[int], choice: Choice, *, counted: bool
) -> tuple[str, ...]:
    """How many runs lack what is said of several replicas: a median, or which are right.

    Empty where none does. The latter is said where it is `counted`.
    """

    def lacks(entry: Entry, length: int) -> bool:
        uncounted = counted and num_right(entry, length) is None
        return uncounted or (choice.of == "median" and point_at(entry, length, "median") is None)

    partly = [
        entry
        for entry in entries
        if any(lacks(entry, length) for length in lengths if entry.at(length))
    ]
    if not partly:
        return ()
    runs = "1 run" if len(partly) == 1 else f"{len(partly)} runs"
    return (f"only some replicas of {runs} were evaluated (`statetrack eval RUN --all`)",)


def said_of(of: Of) -> str:
    """What lines and their bands are, for captions."""
    if of == "selected":
        return "the replica that validation selected, with its 95 % interval (Wilson)"
    return (
        "the median over seeds at the selected learning rate, with their range, one that diverged "
        "counted as 0"
    )


BANDS: dict[Of, str] = {"selected": "95 % interval", "median": "range over seeds"}


def said_of_words(entries: Sequence[Entry], lengths: Sequence[int] = ()) -> str:
    """How many words the scores are over, in words."""
    wanted = set(lengths)
    rows = [row for entry in entries for row in entry.rows]
    words = {row.sequences for row in rows if not wanted or row.length in wanted}
    low, high = min(words), max(words)
    return f"{high:,} words" if low == high else f"{low:,} to {high:,} words"


def said_of_seeds(entries: Sequence[Entry]) -> str:
    """How many seeds and learning rates the runs have."""
    seeds, rates = set(), set()
    for entry in entries:
        replicas = entry.outcomes or entry.rows
        seeds.add(len({each.seed for each in replicas}))
        rates.add(len({each.lr for each in replicas}))
    return f"{_range(seeds, 'seed')} and {_range(rates, 'learning rate')} per run"


def _range(numbers: set[int], what: str) -> str:
    low, high = min(numbers), max(numbers)
    said = f"{high}" if low == high else f"{low} to {high}"
    return f"{said} {what}" + ("" if high == 1 else "s")


def said_of_missing(report: Report, shown: Sequence[Entry]) -> tuple[str, ...]:
    """What is not drawn, in words; empty where all is."""
    missing = [entry for entry in report.entries if not any(entry is other for other in shown)]
    if not missing:
        said: tuple[str, ...] = ()
    else:
        states = Counter(
            "finished, without such scores" if entry.state == "finished" else entry.state
            for entry in missing
        )
        named = "; ".join(f"{number} {state}" for state, number in states.items())
        said = (f"not drawn: {len(missing)} of {len(report.entries)} runs ({named})",)
    partly = [entry for entry in shown if entry.state == "unfinished"]
    if partly:
        said += (f"{len(partly)} of the runs drawn have not finished training",)
    return said


def names_of(report: Report, entries: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """The rows and the columns of entries, in the order of the report."""
    rows, columns = {entry.row for entry in entries}, {entry.column for entry in entries}
    ordered = [name for name in report.row_names if name in rows]
    beside = [name for name in report.column_names if name in columns]
    return (
        ordered + sorted(rows - set(ordered)),
        beside + sorted(columns - set(beside)),
    )


COLOURS = (*PALETTE, INK)
"""Colours of lines."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
MARKERS = "osD^vXP<>*p"

WIDE_RANGE = 10
"""The ratio of greatest to least value from which an axis is logarithmic."""

SHADE, PALE = "#ececec", "#bfbfbf"
"""The colours of the training range, and of grids."""

BESIDE = 3
"""The most panels side by side."""

LETTERS = 0.58
"""The mean width of a letter, in units of its size."""

_HANDLE = 4.5
"""The width of a line's sample in a legend with the space around it, in units of the letters."""


class CaptionedFigure(NamedTuple):
    """A figure, and what its caption is to say."""

    figure: Figure
    caption: tuple[str, ...]


@dataclass(frozen=True)
class Stroke:
    """How one line is drawn: hollow markers of falling size let lines beneath be seen."""

    colour: str
    dashes: Any
    marker: str
    scale: float

    def of_line(self) -> dict[str, Any]:
        """The arguments of matplotlib."""
        from matplotlib import rcParams

        return {
            "color": self.colour,
            "linestyle": self.dashes,
            "marker": self.marker,
            "markersize": self.scale * rcParams["lines.markersize"],
            "markerfacecolor": "none",
            "markeredgewidth": 0.7 * rcParams["lines.linewidth"],
        }


def strokes_of(names: Sequence[str]) -> dict[str, Stroke]:
    """A stroke for each name; up to 28 names differ in colour or dashes."""
    most = max(len(names) - 1, 1)
    return {
        name: Stroke(
            COLOURS[number % len(COLOURS)],
            DASHES[number % len(DASHES)],
            MARKERS[number % len(MARKERS)],
            1.0 if len(names) == 1 else 1.6 - 0.9 * number / most,
        )
        for number, name in enumerate(names)
    }


NARROWEST = 80.0
"""The least width of a panel beside another one, in points: its name and its axis's have room."""


@dataclass(frozen=True)
class Sketch:
    """The parts of a figure to be: panels side by side, a title above and a legend below."""

    panels: Sequence[str]
    labels: Sequence[str]
    title: str
    look: Look
    wide: float = 1.35
    """The width of a panel, in units of its height."""
    left: float = 40.0
    """What the names left of the panels take of the width, in points."""

    @property
    def beside(self) -> int:
        """How many panels stand side by side."""
        most = 2 if self.width < 5 else BESIDE
        most = max(1, min(most, int((72 * self.width - self.left) / NARROWEST)))
        number = len(self.panels)
        return min(number, most, 2 if number == 4 else most)

    @property
    def width(self) -> float:
        """The width of the figure, in inches."""
        if self.look.width is not None:
            return self.look.width
        return 4.6 if len(self.panels) == 1 else 6.75

    @property
    def legend_columns(self) -> int:
        """How many labels stand side by side in the legend."""
        size = _small(self.look)
        widest = max((text_width(label, size) for label in self.labels), default=0.0)
        return max(1, min(len(self.labels), int(self.width * 72 / (widest + _HANDLE * size))))

    def make(self) -> tuple[Figure, list[Axes]]:
        """The figure with its empty panels; one axis of accuracy and one below for all."""
        from matplotlib import rcParams
        from matplotlib.figure import Figure

        down = -(-len(self.panels) // self.beside)
        size = float(rcParams["font.size"])
        line = size / 72
        height = self.look.height
        if height is None:
            height = down * min(3.2, self.width / self.beside / self.wide)
            height += down * 1.5 * line
            height += 2.0 * line if self.title else 0.0
            if self.look.legend and self.labels:
                height += 1.35 * line * -(-len(self.labels) // self.legend_columns)
        figure = Figure(figsize=(self.width, height), layout="constrained", facecolor="white")
        grid = figure.subplots(down, self.beside, squeeze=False, sharey=True, sharex=True)
        axes = list(grid.ravel())
        for spare in axes[len(self.panels) :]:
            spare.remove()
        axes = axes[: len(self.panels)]
        for number, (panel, name) in enumerate(zip(axes, self.panels, strict=True)):
            panel.tick_params(colors=INK, labelbottom=number + self.beside >= len(axes))
            wide = 0.92 * (72 * self.width - self.left) / self.beside
            panel.set_title(folded(name, int(wide / size / LETTERS)), parse_math=False)
        if self.title:
            letters = 72 * self.width / size / LETTERS / 1.2
            figure.suptitle(
                folded(self.title, int(letters)),
                x=0.01,
                horizontalalignment="left",
                color=INK,
                parse_math=False,
            )
        return figure, axes

    def name_axes(self, panels: Sequence[Axes], along: str, up: str = "") -> None:
        """Name the axes of the outer panels."""
        for number, panel in enumerate(panels):
            if number + self.beside >= len(panels):
                panel.set_xlabel(along)
            if number % self.beside == 0 and up:
                panel.set_ylabel(up)

    def add_legend(self, figure: Figure, handles: Mapping[str, Any]) -> None:
        """The marks by their labels, below all panels."""
        if not self.look.legend or not handles:
            return
        legend = figure.legend(
            list(handles.values()),
            list(handles),
            ncols=self.legend_columns,
            loc="outside lower center",
            handlelength=2.6,
            columnspacing=1.2,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def _small(look: Look) -> float:
    """The size of letters in legends."""
    from matplotlib import rcParams

    return 0.833 * float(look.font or rcParams["font.size"])


def name_cells(
    axes: Axes, rows: Sequence[str], columns: Sequence[str], *, turn: float, **ticks: Any
) -> None:
    """Write the names of the cells of a table beside and above it; `ticks` are their looks."""
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, colors=INK, **ticks)
    axes.xaxis.tick_top()
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns, rotation=turn)
    axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)


def folded(text: str, letters: int) -> str:
    """Text in at most two lines of so many letters."""
    lines = textwrap.wrap(text, max(letters, 8)) or [""]
    if len(lines) > 2:
        lines = [lines[0], lines[1][: max(letters, 8) - 2] + " …"]
    return "\n".join(lines)


def scale_along(axes: Axes, values: Iterable[float], *, room: float = 1.25) -> bool:
    """Set the horizontal axis of numbers from 1, logarithmic where they reach far.

    Ticks are whole numbers. Returns whether it is logarithmic.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min(values := list(values)), max(values)
    wide = low > 0 and high / low >= WIDE_RANGE
    if wide:
        axes.set_xscale("log")
        axes.set_xlim(low / room, high * room)
        axes.xaxis.set_major_locator(FixedLocator(log_ticks(low, high)))
        axes.xaxis.set_minor_locator(FixedLocator(_between(low, high)))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    else:
        spare = 0.04 * (high - low) or max(1.0, 0.1 * abs(high))
        axes.set_xlim(low - spare, high + spare)
        if len(set(values)) <= 6:
            axes.xaxis.set_major_locator(FixedLocator(sorted(set(values))))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    return wide


def log_ticks(low: float, high: float) -> list[float]:
    """The powers of ten of a range; with 2 and 5 times them, where they are fewer than three."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [10.0**power for power in powers if low <= 10.0**power <= high]
    if len(ticks) >= 3:
        every = -(-len(ticks) // 7)
        return ticks[::every]
    every_one = [times * 10.0**power for power in powers for times in (1, 2, 5)]
    return [tick for tick in every_one if low <= tick <= high]


def _between(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [times * 10.0**power for power in powers for times in range(2, 10)]
    return [tick for tick in ticks if low <= tick <= high]


def short(value: float) -> str:
    """A number for an axis: `500`, `20k`, `1M`, `0.01`."""
    for unit, letter in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= unit:
            return f"{value / (1e3 if letter == 'k' else unit):g}{letter}"
    return f"{value:g}"


def accuracy_axis(axes: Axes) -> None:
    """The vertical axis of a share between 0 and 1."""
    axes.set_ylim(-0.05, 1.06)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    axes.grid(axis="y", color=PALE, linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def floor_handle(name: str) -> Any:
    """The mark of a floor, or of chance, in a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **FLOORS[name])


FLOORS: Mapping[str, Mapping[str, Any]] = {
    "floor": {"color": NOTE, "linestyle": ":", "linewidth": 1.1},
    "chance": {"color": NOTE, "linestyle": (0, (8, 2, 1, 2)), "linewidth": 0.7},
}
"""How the floor and chance are drawn."""
