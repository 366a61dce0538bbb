"""What a drawing is made of: a canvas, in points, with nodes, lines between them, and their key.

A figure has the size of its content. Matplotlib is an optional dependency, imported when something
is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from statetrack.figures import FILL, INK, NOTE
from statetrack.pictures.looks import Look
from statetrack.sources import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FINE = np.linspace(0, 1, 201)
"""Parameters at which a curve is evaluated."""


@dataclass(frozen=True, eq=False)
class Bezier:
    """A curve with control points `[n, 2]`: 2 of them make a line, 3 and 4 a bend."""

    points: Floats

    def at(self, where: Floats) -> Floats:
        """Points `[N, 2]` at parameters `[N]` from 0 to 1."""
        from matplotlib.bezier import BezierSegment

        found: Floats = BezierSegment(self.points)(where)
        return found

    def between(self, start: float, end: float) -> Bezier:
        """The part between two parameters."""
        from matplotlib.bezier import split_de_casteljau

        before, _ = split_de_casteljau(self.points, end)
        return Bezier(np.array(split_de_casteljau(before, start / end)[1]))

    def outside(self, gaps: Callable[[Floats], Floats]) -> Bezier:
        """The part outside two outlines: `gaps` tells how far points `[N, 2]` are from them."""
        kept = np.flatnonzero(gaps(self.at(FINE)) > 0)
        assert len(kept) > 1, "the curve lies within its ends"
        return self.between(float(FINE[kept[0]]), float(FINE[kept[-1]]))


DASHES: tuple[Any, ...] = (
    "solid",
    (0, (5, 2)),
    (0, (1.2, 1.4)),
    (0, (6, 2, 1.2, 2)),
    (0, (2.5, 1.5)),
    (0, (7, 2, 1.2, 1.4, 1.2, 2)),
)
"""Styles of lines, one for each colour, so that lines can be told apart in grey."""

MARGIN = 8.0
TITLE, CAPTION = 9.0, 8.0
HEAD = 6.5
"""The margin, the font sizes of title and caption, and the length of an arrow's head."""

UNIT, PEN = 9.0, 1.4
"""The size of letters and the width of lines for which all lengths are given, those of the style
`plain`; a look with others scales them."""

LEAST_TEXT = 220.0
"""The width at which a title and a caption are wrapped where the drawing is narrower."""

SMALLEST = 5.9
"""Letters of fewer points than this cannot be read."""


@dataclass(frozen=True)
class Shape:
    """The outline of a node: a circle, drawn out to the sides by `half` where a name is long."""

    half: float
    radius: float

    @property
    def wide(self) -> float:
        """Half its width."""
        return self.half + self.radius

    def gaps(self, points: Floats, centres: Floats) -> Floats:
        """Distances `[P, C]` of points from nodes at some centres; negative within."""
        off = points[:, None] - centres[None]
        aside = np.maximum(np.abs(off[..., 0]) - self.half, 0)
        found: Floats = np.hypot(aside, off[..., 1]) - self.radius
        return found

    def step(self, places: Floats, gap: float) -> float:
        """The least scale of a layout at which no two nodes are closer than a gap."""
        first, second = np.triu_indices(len(places), 1)
        if not len(first):
            return 1.0
        off = np.abs(places[first] - places[second])
        low, high = np.zeros(len(off)), np.full(len(off), 1e4)
        for _ in range(40):
            middle = (low + high) / 2
            aside = np.maximum(middle * off[:, 0] - 2 * self.half, 0)
            enough = np.hypot(aside, middle * off[:, 1]) >= 2 * self.radius + gap
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return float(high.max())


@dataclass(frozen=True)
class Room:
    """How large a drawing may become, in points; `filled` if it is to become as large as that."""

    width: float = 486.0
    height: float = 600.0
    filled: bool = False


class Canvas:
    """A drawing in points, x to the right and y up; its figure has the size of its content."""

    def __init__(self) -> None:
        self._artists: list[Any] = []
        self._images: list[tuple[Any, tuple[float, float, float, float]]] = []
        self._low = np.array([np.inf, np.inf])
        self._high = -self._low
        self._caption: list[str] = []
        self._letters: set[float] = set()

    @property
    def box(self) -> tuple[float, float, float, float]:
        """What is drawn reaches from the first two coordinates to the last two."""
        (left, low), (right, high) = self._low, self._high
        return float(left), float(low), float(right), float(high)

    def size(self, text: str, letters: float) -> tuple[float, float]:
        """Width and height of text, which may have several lines."""
        lines = text.split("\n")
        return max(text_width(line, letters) for line in lines), letters * 1.2 * len(lines)

    def node(
        self, centre: Floats, shape: Shape, *, dashed: bool = False, inset: float = 0.0
    ) -> None:
        """The filled outline of a node; an inset one makes a double ring."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        radius = shape.radius - inset
        corner = centre - np.array([shape.half + radius, radius])
        aside = np.array([shape.half, 0.0])
        right, left = Path.arc(-90, 90), Path.arc(90, 270)
        points = [
            *(radius * np.array(right.vertices) + centre + aside),
            *(radius * np.array(left.vertices) + centre - aside),
        ]
        points.append(points[0])
        joined = np.array(left.codes)
        joined[0] = Path.LINETO
        outline = Path(points, [*np.array(right.codes), *joined, Path.CLOSEPOLY])
        style: Any = (0, (3, 2)) if dashed else "solid"
        self._artists.append(
            PathPatch(
                outline,
                facecolor=FILL,
                edgecolor=INK,
                linewidth=1.0,
                linestyle=style,
                zorder=3,
            )
        )
        self._reach(corner, 2 * centre - corner)

    def line(self, curve: Bezier, colour: str, style: Any = "solid", heads: int = 0) -> None:
        """A curve with a head at none of its ends, at its last, or at both."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        if heads:
            end = self._head(curve, colour)
            start = 1 - self._head(Bezier(curve.points[::-1]), colour) if heads == 2 else 0.0
            curve = curve.between(start, max(end, start + 0.01))
        codes = {2: Path.LINETO, 3: Path.CURVE3, 4: Path.CURVE4}
        num_points = len(curve.points)
        path = Path(curve.points, [Path.MOVETO, *[codes[num_points]] * (num_points - 1)])
        self._artists.append(
            PathPatch(
                path,
                facecolor="none",
                edgecolor=colour,
                linewidth=1.2,
                linestyle=style,
                capstyle="butt",
                zorder=1,
            )
        )
        places = curve.at(np.linspace(0, 1, 33))
        self._reach(places.min(axis=0), places.max(axis=0))

    def _head(self, curve: Bezier, colour: str) -> float:
        """The head at the end of a curve; where on the curve it begins."""
        from matplotlib.patches import Polygon

        places = curve.at(np.linspace(0, 1, 201))
        far = np.linalg.norm(places - places[-1], axis=1) > HEAD
        neck = int(np.flatnonzero(far)[-1]) if far.any() else 0
        ahead = places[-1] - places[neck]
        aside = np.array([-ahead[1], ahead[0]]) * 0.36
        corners = [places[-1], places[neck] + aside, places[neck] - aside]
        self._artists.append(
            Polygon(corners, closed=True, facecolor=colour, edgecolor="none", zorder=2)
        )
        return max(neck + 1, 1) / 200

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

        self._letters.add(letters)
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

        self._letters.add(letters)
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
                edgecolors="#bfbfbf",
                linewidths=0.5,
                zorder=1,
            )
        )
        self._reach(corners.min(axis=0), corners.max(axis=0) + size)

    def outline(self, corners: Floats) -> None:
        """The outline of a polygon with corners `[N, 2]`."""
        from matplotlib.patches import Polygon

        self._artists.append(
            Polygon(corners, closed=True, facecolor="none", edgecolor=NOTE, linewidth=0.6, zorder=2)
        )
        self._reach(corners.min(axis=0), corners.max(axis=0))

    def image(self, colours: Floats, low: Floats, high: Floats) -> None:
        """A picture of dots `[rows, columns, 3]` that fills a rectangle."""
        self._images.append(
            (colours, (float(low[0]), float(high[0]), float(low[1]), float(high[1])))
        )
        self._reach(low, high)

    def write_caption(self, lines: Sequence[str]) -> None:
        """A caption below the drawing; lines that are too long for it are wrapped."""
        self._caption = [*lines]

    def figure(self, look: Look, title: str) -> tuple[Figure, float]:
        """All of it as a figure of its own size or that of a look; its smallest letters, in points.

        What is larger than the look's size is made smaller, letters as well.
        """
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.text import Text

        scale = float(matplotlib.rcParams["font.size"]) / UNIT
        pen = float(matplotlib.rcParams["lines.linewidth"]) / PEN / scale
        low, high = self._low.copy(), self._high.copy()
        within = 72 * look.width / scale - 2 * MARGIN if look.width else LEAST_TEXT
        text = max(within, float(high[0] - low[0]))
        above = "\n".join(_wrapped(title, TITLE, text)) if title else ""
        lines = [piece for line in self._caption for piece in _wrapped(line, CAPTION, text)]
        below = "\n".join(lines)
        texts = [(above, TITLE, INK)] * bool(above) + [(below, CAPTION, NOTE)] * bool(below)
        sizes = [self.size(each, letters) for each, letters, _ in texts]
        widest = max([float(high[0] - low[0]), *(width for width, _ in sizes)])
        spare = (widest - float(high[0] - low[0])) / 2
        low[0], high[0] = low[0] - spare - MARGIN, high[0] + spare + MARGIN
        if above:
            high[1] += sizes[0][1] + MARGIN
        if below:
            low[1] -= sizes[-1][1] + MARGIN
        low[1], high[1] = low[1] - MARGIN, high[1] + MARGIN
        extent = (high - low) * scale
        wanted = np.array([72 * (look.width or 0), 72 * (look.height or 0)])
        smaller = float(min([1.0, *(w / e for w, e in zip(wanted, extent, strict=True) if w)]))
        scale *= smaller
        pad = np.maximum(wanted / scale - (high - low), 0) / 2
        figure = Figure(figsize=tuple((high - low + 2 * pad) * scale / 72), facecolor="white")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        for colours, extent_of_it in self._images:
            axes.imshow(colours, extent=extent_of_it, interpolation="none", aspect="auto", zorder=1)
        axes.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
        for artist in self._artists:
            if isinstance(artist, Text):
                artist.set_fontsize(float(artist.get_fontsize()) * scale)
            else:
                artist.set_linewidth(np.multiply(artist.get_linewidth(), scale * pen))
            axes.add_artist(artist)
        middle = float(low[0] + high[0]) / 2
        for each, letters, colour in texts:
            is_title = each == above and letters == TITLE
            axes.text(
                middle,
                float(high[1]) - MARGIN if is_title else float(low[1]) + MARGIN,
                each,
                fontsize=letters * scale,
                color=colour,
                ha="center",
                va="top" if is_title else "bottom",
                linespacing=1.2,
                parse_math=False,
            )
        letters_used = self._letters | {letters for _, letters, _ in texts}
        return figure, min(letters_used, default=UNIT) * scale

    def _reach(self, low: Floats, high: Floats) -> None:
        self._low = np.minimum(self._low, low)
        self._high = np.maximum(self._high, high)


def _wrapped(line: str, letters: float, width: float) -> list[str]:
    """A line in as many lines as a width needs, of about equal length, broken between words."""
    found = _broken(line, letters, width)
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        if len(narrower := _broken(line, letters, share * width)) == len(found) > 1:
            return narrower
    return found


def _broken(line: str, letters: float, width: float) -> list[str]:
    found = [""]
    for word in line.split(" "):
        longer = f"{found[-1]} {word}" if found[-1] else word
        if found[-1] and text_width(longer, letters) > width:
            found.append(word)
        else:
            found[-1] = longer
    return found


@cache
def text_width(line: str, letters: float) -> float:
    """The width of one line of text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=letters)
    return float(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0])


LONGEST = 110.0
"""The width in points of the longest name that is written into a node."""


class Names(NamedTuple):
    """What stands in the nodes, and the shape that it needs."""

    texts: Sequence[str]
    shape: Shape
    key: bool
    """Whether the texts are numbers, to be explained."""


def ways_to_name(canvas: Canvas, names: Sequence[str], letters: float) -> Iterator[Names]:
    """Names in circles or, where they are long, in circles drawn out to the sides; then numbers."""
    widest = max(canvas.size(name, letters)[0] for name in names)
    lines = max(name.count("\n") for name in names)
    round_one = Shape(0.0, max(9.0 + 4 * lines, widest / 2 + 4))
    if round_one.radius <= 14 + 4 * lines:
        yield Names(names, round_one, key=False)
    elif widest <= LONGEST:
        radius = 9.0 + 5.5 * lines
        yield Names(names, Shape(widest / 2 + 5 - radius * 0.8, radius), key=False)
    numbers = [str(number) for number in range(len(names))]
    radius = max(7.5, canvas.size(numbers[-1], letters)[0] / 2 + 2.5)
    yield Names(numbers, Shape(0.0, radius), key=True)


def fitting_step(
    places: Floats, shape: Shape, steps: Sequence[float], room: Room
) -> tuple[float, bool]:
    """The scale of a layout, and whether the drawing then has room.

    Of three steps, the least, the usual and the greatest: the usual one if that has room, in a room
    that is to be filled up to the greatest, and the least where that has no room either.
    """
    least, usual, most = steps
    span = np.ptp(places, axis=0)
    margins = np.array([2 * shape.wide, 2 * shape.radius]) + 20
    free = np.array([room.width, room.height]) - margins
    fits = float(min([1e4, *(f / s for f, s in zip(free, span, strict=True) if s > 1e-6)]))
    if fits < least:
        return least, False
    return min(fits, most if room.filled else max(usual, least)), True


def line_between(
    places: Floats, source: int, target: int, shape: Shape, bends: Sequence[float], enough: float
) -> Bezier:
    """The line from one node to another, bent as far as is needed to pass others at a distance.

    It is the part outside of both nodes.
    """
    ends = places[[source, target]]
    others = np.delete(places, [source, target], axis=0)
    a, b = ends
    right = np.array([b[1] - a[1], a[0] - b[0]])
    best, clear = None, -np.inf
    for bend in bends:
        curve = Bezier(np.array([a, (a + b) / 2 + bend * right, b]))
        gap = float(shape.gaps(curve.at(FINE[::4]), others).min(initial=np.inf))
        if min(round(gap, 6), enough) > clear:
            best, clear = curve, min(round(gap, 6), enough)
    assert best is not None
    return best.outside(lambda points: np.asarray(shape.gaps(points, ends).min(axis=1)))


LEGEND, KEY = 8.5, 7.5
"""The font sizes of a legend and of a key."""

MOST_LETTERS = 48
"""The most letters of a name beside or below a drawing."""

SAMPLE = 26.0
"""The length of a sample of a line."""


class Sample(NamedTuple):
    """A line and what it means; heads at none of its ends, at one, or at both."""

    text: str
    colour: str
    style: Any
    heads: int


def write_legend(canvas: Canvas, samples: Sequence[Sample], room: Room) -> None:
    """Samples below what is drawn, as many in a row as have room."""
    widths = [SAMPLE + 6 + canvas.size(each.text, LEGEND)[0] + 18 for each in samples]
    left, low, right, _ = canvas.box
    wide = max(right - left, min(room.width, 260.0))
    rows: list[list[int]] = [[]]
    for number, width in enumerate(widths):
        if rows[-1] and sum(widths[each] for each in rows[-1]) + width - 18 > wide:
            rows.append([])
        rows[-1].append(number)
    for row in rows:
        low -= 17
        at = (left + right) / 2 - (sum(widths[each] for each in row) - 18) / 2
        for number in row:
            text, colour, style, heads = samples[number]
            line = Bezier(np.array([[at, low], [at + SAMPLE, low]]))
            canvas.line(line, colour, style, heads)
            width = canvas.size(text, LEGEND)[0]
            canvas.text(text, np.array([at + SAMPLE + 6 + width / 2, low]), LEGEND)
            at += widths[number]


def short(name: str) -> str:
    """A name cut to a length that has room beside a drawing."""
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def write_key(canvas: Canvas, entries: Sequence[tuple[str, str]], room: Room) -> None:
    """Short marks with the names that they stand for, in columns below what is drawn."""
    entries = [(mark, short(name)) for mark, name in entries]
    left, low, right, _ = canvas.box
    marks = max(canvas.size(mark, KEY)[0] for mark, _ in entries) + 6
    names = max(canvas.size(name, KEY)[0] for _, name in entries) + 16
    wide = max(right - left, min(room.width, 330.0))
    columns = max(1, min(len(entries), int(wide // (marks + names))))
    rows = -(-len(entries) // columns)
    columns = -(-len(entries) // rows)
    first = (left + right) / 2 - (columns * (marks + names) - 16) / 2
    for number, (mark, name) in enumerate(entries):
        column, row = divmod(number, rows)
        at = first + column * (marks + names)
        height = low - 16 - 10.5 * row
        wide_mark, wide_name = canvas.size(mark, KEY)[0], canvas.size(name, KEY)[0]
        canvas.text(mark, np.array([at + marks - 6 - wide_mark / 2, height]), KEY)
        canvas.text(name, np.array([at + marks + wide_name / 2, height]), KEY)
