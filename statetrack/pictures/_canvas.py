"""The canvas of figures: coordinates in points, and a figure of the size of its content.

Matplotlib is an optional dependency, imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from statetrack.pictures._bezier import Bezier
from statetrack.sources.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, NOTE, FILL = "#1a1a1a", "#595959", "#f2f2f2"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours that colour-blind readers can distinguish (Okabe and Ito 2008)."""

MARGIN = 8.0
CAPTION = 8.0
HEAD = 7.0
"""The margin, the font size of the caption, and the length of an arrow's head."""


class Canvas:
    """A drawing in points, x to the right and y up; its figure has the size of its content."""

    def __init__(self) -> None:
        self._artists: list[Any] = []
        self._low = np.array([np.inf, np.inf])
        self._high = -self._low
        self._caption = ""

    def size(self, text: str, letters: float) -> tuple[float, float]:
        """Width and height of text, which may have several lines."""
        lines = text.split("\n")
        return max(_width(line, letters) for line in lines), letters * 1.2 * len(lines)

    def circle(self, centre: Floats, radius: float, *, dashed: bool = False) -> None:
        """A filled circle."""
        from matplotlib.patches import Circle

        style: Any = (0, (3, 2)) if dashed else "solid"
        self._artists.append(
            Circle(
                (float(centre[0]), float(centre[1])),
                radius,
                facecolor=FILL,
                edgecolor=INK,
                linewidth=1.0,
                linestyle=style,
                zorder=3,
            )
        )
        self._reach(centre - radius, centre + radius)

    def line(self, curve: Bezier, colour: str) -> None:
        """A curve."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        codes = {2: Path.LINETO, 3: Path.CURVE3, 4: Path.CURVE4}
        num_points = len(curve.points)
        path = Path(curve.points, [Path.MOVETO, *[codes[num_points]] * (num_points - 1)])
        self._artists.append(
            PathPatch(path, facecolor="none", edgecolor=colour, linewidth=1.1, zorder=1)
        )
        places = curve.at(np.linspace(0, 1, 33))
        self._reach(places.min(axis=0), places.max(axis=0))

    def arrow(self, curve: Bezier, colour: str) -> None:
        """A curve with a head at its end."""
        from matplotlib.patches import Polygon

        places = curve.at(np.linspace(0, 1, 201))
        far = np.linalg.norm(places - places[-1], axis=1) > HEAD
        neck = int(np.flatnonzero(far)[-1]) if far.any() else 0
        ahead = places[-1] - places[neck]
        aside = np.array([-ahead[1], ahead[0]]) * 0.36
        self.line(curve.between(0.0, max(neck + 1, 1) / 200), colour)
        corners = [places[-1], places[neck] + aside, places[neck] - aside]
        self._artists.append(
            Polygon(corners, closed=True, facecolor=colour, edgecolor="none", zorder=2)
        )

    def text(
        self,
        text: str,
        centre: Floats,
        letters: float,
        *,
        colour: str = INK,
        box: tuple[float, float] | None = None,
    ) -> None:
        """Text about a point; a white box of a size behind it keeps lines away."""
        from matplotlib.patches import Rectangle
        from matplotlib.text import Text

        if box is not None:
            corner = (float(centre[0] - box[0] / 2), float(centre[1] - box[1] / 2))
            self._artists.append(
                Rectangle(corner, box[0], box[1], facecolor="white", edgecolor="none", zorder=4)
            )
        self._artists.append(
            Text(
                float(centre[0]),
                float(centre[1]),
                text,
                fontsize=letters,
                color=colour,
                ha="center",
                va="center",
                zorder=5,
                linespacing=1.1,
                parse_math=False,
            )
        )
        half = np.array(self.size(text, letters)) / 2
        self._reach(centre - half, centre + half)

    def heading(self, text: str, foot: Floats, letters: float, *, upright: bool) -> None:
        """Text above a point: horizontal or, where it is too long for its column, vertical."""
        from matplotlib.text import Text

        width, height = self.size(text, letters)
        extent = np.array([width, height] if upright else [height, width])
        self._artists.append(
            Text(
                float(foot[0]),
                float(foot[1]),
                text,
                fontsize=letters,
                color=INK,
                ha="center",
                va="bottom",
                rotation=0 if upright else 90,
                parse_math=False,
            )
        )
        aside, up = np.array([extent[0] / 2, 0.0]), np.array([0.0, extent[1]])
        self._reach(foot - aside, foot + aside + up)

    def rectangles(self, corners: Floats, size: Floats, colours: Sequence[str]) -> None:
        """Filled rectangles of one size from their lower left corners `[N, 2]`, drawn as one."""
        from matplotlib.collections import PolyCollection

        around = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * size
        self._artists.append(
            PolyCollection(
                list(corners[:, None] + around),
                facecolors=list(colours),
                edgecolors="white",
                linewidths=0.5,
                zorder=1,
            )
        )
        self._reach(corners.min(axis=0), corners.max(axis=0) + size)

    def write_caption(self, lines: Sequence[str]) -> None:
        """A caption below the drawing."""
        self._caption = "\n".join(lines)

    def figure(self) -> Figure:
        """All of it as a figure of its own size."""
        from matplotlib.figure import Figure

        low, high = self._low - MARGIN, self._high + MARGIN
        width, height = self.size(self._caption, CAPTION) if self._caption else (0.0, 0.0)
        low[1] -= height + (MARGIN if self._caption else 0)
        spare = max(0.0, width + 2 * MARGIN - float(high[0] - low[0]))
        low[0], high[0] = low[0] - spare / 2, high[0] + spare / 2
        extent = high - low
        figure = Figure(figsize=tuple(extent / 72), facecolor="white")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set_axis_off()
        for artist in self._artists:
            axes.add_artist(artist)
        if self._caption:
            middle = float(low[0] + high[0]) / 2
            axes.text(
                middle,
                float(low[1]) + MARGIN,
                self._caption,
                fontsize=CAPTION,
                color=NOTE,
                ha="center",
                va="bottom",
                linespacing=1.2,
                parse_math=False,
            )
        return figure

    def _reach(self, low: Floats, high: Floats) -> None:
        self._low = np.minimum(self._low, low)
        self._high = np.maximum(self._high, high)


@cache
def _width(line: str, letters: float) -> float:
    from matplotlib.textpath import TextPath

    plain = line.replace("$", r"\$")  # two dollars would make it a formula
    return float(TextPath((0, 0), plain, letters).get_extents().width)
