"""What figures of reports have in common: panels side by side, lines told apart, ticks, legends.

Matplotlib is an optional dependency, imported when something is drawn. Lines differ in dashes and
markers as well as in colour, so that figures can be read in grey.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from statetrack.pictures._canvas import INK, NOTE, PALETTE, _width
from statetrack.pictures.looks import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


class Drawn(NamedTuple):
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
        number = len(self.panels)
        return min(number, 2 if number == 4 else most)

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
        widest = max((_width(label, size) for label in self.labels), default=0.0)
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
            height += 0.3 * line if len(self.panels) == 1 else down * 1.5 * line
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
            if len(self.panels) > 1:
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
