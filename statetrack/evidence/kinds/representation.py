"""The linear representation that a model learned, of which its operators are the symbols."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statetrack.evidence.records import (
    EVIDENCE,
    Drawing,
    Evidence,
    Facts,
    Grid,
    Line,
    Named,
    number_of,
)
from statetrack.figures import (
    BLUE,
    INK,
    NOTE,
    ORANGE,
    PALE,
    PALETTE,
    entitled,
    new_figure,
    with_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_PLANES = 12
"""The most planes that are shown."""

NOT_READ = 1e-3
"""Planes with a smaller share of the squared logits are counted and not shown."""

NOT_LEARNED = 0.05
"""Irreducibles with a smaller multiplicity are named and not shown."""

SHOWN_GROUPS = 3
"""The most groups that are shown."""

MOST_NAMES = 16
"""The most classes or irreducibles that are named on an axis."""

MARKERS = "osD^vP*X"
"""Marks of symbols in the figure of angles."""

MOST_DRAWN = 40
"""The most planes in a figure: those that are read most."""

Complexes = tuple[tuple[float, float], ...]
"""Complex numbers as pairs of their real and imaginary part."""


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """The eigenvalues of one symbol's operator: in the used subspace, and all of them."""

    symbol: str
    used: Complexes
    every: Complexes


@dataclass(frozen=True, kw_only=True)
class Plane:
    """What every symbol does to one plane, or to one line, that all of them keep.

    `angles` are in radians, in (-pi, pi], turned so that the symbol that counts 1 has none below 0;
    None where an operator is no rotation of the plane, up to its length and a change of basis.
    `weight` is the share of the squared logits that is read from the plane.
    """

    dimension: int
    weight: float
    angles: tuple[float | None, ...]
    moduli: tuple[float, ...]
    harmonic: float | None
    """The angle of the symbol that counts 1, over 2 pi / m; None where the task does not count."""
    integer: int | None
    """The whole number nearest to what all symbols' angles say."""
    deviation: float | None
    """How far an angle is from that of the whole number, in radians, at most."""

    @property
    def counted(self) -> tuple[str, str]:
        """The harmonic and how far it is off, as cells of a table."""
        harmonic = "-" if self.harmonic is None else f"{self.harmonic:z.4f}"
        return harmonic, "-" if self.deviation is None else f"{self.deviation:.1e}"

    @property
    def turned(self) -> str:
        """The first angles, as a cell of a table."""
        shown = ["-" if angle is None else f"{angle:z.3f}" for angle in self.angles[:6]]
        return " ".join(shown) + (" ..." if len(self.angles) > len(shown) else "")


@dataclass(frozen=True, kw_only=True)
class Commutators:
    """Spectral norms of A_x A_y - A_y A_x in the used subspace, over pairs of symbols.

    `relative` is the largest as a part of `|A_x| |A_y|`. `largest_of_commuting` is over pairs whose
    maps of the automaton's states commute (0 in an exact representation), `smallest_of_others` over
    the rest; None where there are none.
    """

    pairs: int
    largest: float
    relative: float
    largest_of_commuting: float | None
    smallest_of_others: float | None
    complete: bool


@dataclass(frozen=True, kw_only=True)
class Homomorphism:
    """How far words that do the same are from being the same operator, on the used subspace.

    For every map g of the states that words make, with a shortest word w for it, and every symbol
    x: the spectral norm of A_x A_w - A_v, with v the shortest word for what w x does, in the norm
    of the used subspace, in which an exact operator of a group has norm 1. What leaves the
    subspace counts too. `mean` is the root of the mean square over pairs and directions.
    """

    elements: int
    pairs: int
    largest: float
    mean: float
    complete: bool
    """Whether these are all maps that words make."""


@dataclass(frozen=True, kw_only=True)
class Irreducible:
    """One irreducible representation over the reals, and how often it was learned.

    `multiplicity` is the inner product of characters, as it comes out; `weight` the share of the
    squared logits that is read from it, in the states that the group permutes. `character` has a
    value for each conjugacy class.
    """

    name: str
    dimension: int
    type: str
    faithful: bool
    multiplicity: float
    weight: float
    character: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class LearnedGroup:
    """The representation of one group among the maps of the states, by its character.

    Of a task whose symbols permute the states it is the whole group; else one maximal subgroup of
    the transition monoid, on the image of its identity. `dimension` is the trace of the identity's
    operator; the multiplicities times the dimensions of the irreducibles add up to it. `accounted`
    is that sum with whole multiplicities, `residue` how far one is from a whole number.
    """

    name: str
    order: int
    dimension: float
    irreducibles: tuple[Irreducible, ...]
    accounted: int
    residue: float
    class_sizes: tuple[int, ...]
    class_orders: tuple[int, ...]
    class_words: tuple[str, ...]
    """A shortest word of a member of each class; empty for the identity of the group."""
    character: tuple[float, ...]
    """The mean trace over each class."""
    spread: float
    """How far the trace of an element is from the mean of its class, at most."""

    def lines(self) -> list[Line]:
        """Its irreducibles, those that were learned in a table."""
        learned = [each for each in self.irreducibles if abs(each.multiplicity) >= NOT_LEARNED]
        absent = [each.name for each in self.irreducibles if abs(each.multiplicity) < NOT_LEARNED]
        total = f"{self.dimension:.4f}".rstrip("0").rstrip(".")
        title = (
            f"{self.name} ({number_of(self.order, 'element')}) acts on {total} dimensions; "
            f"the parts add up to {self.accounted} (residue {self.residue:.1e})"
        )
        number = ("dimension", "multiplicity", "read")
        rows = [
            (
                each.name + (", faithful" if each.faithful else ""),
                str(each.dimension),
                each.type,
                f"{each.multiplicity:z.5f}",
                f"{100 * each.weight:.1f} %",
            )
            for each in learned
        ]
        lines: list[Line] = [title]
        if learned:
            headings = ("irreducible", "dimension", "type", "multiplicity", "read")
            lines.append(Grid(headings, rows, right=number))
        if absent:
            lines.append(f"not learned: {', '.join(absent)}")
        return lines

    def figure(self, of: str) -> Figure:
        """How often each irreducible was learned, and the character beside a whole one."""
        import numpy as np

        figure, (left, right) = new_figure(7.2, 4.0, 2, side_by_side=True)
        parts = self.irreducibles
        places = np.arange(len(parts))
        left.bar(places, [each.multiplicity for each in parts], color=BLUE, width=0.6)
        named = len(parts) <= MOST_NAMES
        names = [each.name.removeprefix("harmonic ") for each in parts]
        if named:
            left.set_xticks(places, names)
        most = max(1, round(max(each.multiplicity for each in parts)))
        left.set_yticks(range(0, most + 1, max(1, -(-most // 6))))
        left.grid(axis="y", color=PALE, linewidth=0.6)
        left.set_axisbelow(True)
        harmonics = any(each.name.startswith("harmonic") for each in parts)
        named_by = "harmonic" if harmonics else "irreducible (dimension)"
        left.set(ylabel="multiplicity", xlabel=named_by)
        whole = sum(round(each.multiplicity) * np.array(each.character) for each in parts)
        classes = np.arange(len(self.character))
        hollow: dict[str, Any] = {"mfc": "none", "mec": ORANGE, "ms": 10, "mew": 1.4}
        right.plot(classes, whole, "s", label="whole parts", **hollow)
        right.plot(classes, self.character, "o", color=INK, ms=4.5, label="learned")
        right.axhline(0, color=PALE, linewidth=0.6, zorder=0)
        if len(classes) <= MOST_NAMES:
            labels = [
                f"{size} of\norder {order}"
                for size, order in zip(self.class_sizes, self.class_orders, strict=True)
            ]
            crowded = len(classes) > 6
            labels = [str(order) for order in self.class_orders] if crowded else labels
            right.set_xticks(classes, labels)
            right.set_xlabel("conjugacy class" + ": order of its elements" * crowded)
        else:
            right.set_xlabel("conjugacy class")
        right.set_ylabel("trace of the operator")
        right.set_xlim(-0.6, len(classes) - 0.4)
        with_legend(figure, right, 2)
        dimensions = f"{self.dimension:.3f}".rstrip("0").rstrip(".")
        about = f"they add up to {self.accounted} of {dimensions} dimensions"
        title = f"Irreducible representations of {self.name} in {of}"
        entitled(figure, title, f"{about}; residue {self.residue:.1e}")
        return figure


@EVIDENCE.register("representation")
@dataclass(frozen=True, kw_only=True)
class Representation(Evidence):
    """The linear representation that a model with one operator per symbol has learned.

    Everything is said of the used subspace: what mean hidden states of the automaton's states span,
    as far as it is read (`statetrack.evidence.linear_maps`). `growth` is by which factor every
    symbol's operator makes the mean states longer, in least squares; where answers do not depend on
    the size of states, operators are divided by it for characters and defects.
    """

    kind = "representation"
    commands = ("probe",)
    place = 5.0
    share = 0.4
    found_by = "statetrack.evidence.learned_operators:find_representation"

    symbols: tuple[str, ...]
    width: int
    affine: bool
    """Whether something is added at every step: then states have a further coordinate, always 1."""
    read: bool
    """Whether the readout is linear in the state, so that what it does not read is left out."""
    dimension: int
    strengths: tuple[float, ...]
    """Root mean square of the mean states along the directions of the subspace, largest first."""
    spread: float
    """The largest spread of one state's hidden states along these, as a part of the strength."""
    next_strength: float
    """The strength of the strongest direction that was left out."""
    growth: tuple[float, ...]
    spectra: tuple[Spectrum, ...]
    planes: tuple[Plane, ...]
    planes_are: str
    """What the planes are, or why there are none."""
    modulus: int | None
    """m, where the task's group is cyclic of that order."""
    unit: int | None
    """The first symbol that generates it: the one that counts 1."""
    commutators: Commutators | None
    homomorphism: Homomorphism | None
    groups: tuple[LearnedGroup, ...]
    groups_are: str
    """Empty, or why there are no groups."""

    def lines(self, names: Named) -> list[Line]:
        """Facts, the irreducibles of its groups, and planes that operators keep."""
        lines: list[Line] = [Facts(self._facts())]
        for group in self.groups[:SHOWN_GROUPS]:
            lines += ["", *group.lines()]
        if len(self.groups) > SHOWN_GROUPS:
            lines.append(f"and {len(self.groups) - SHOWN_GROUPS} smaller groups")
        if self.planes:
            lines += ["", *self._plane_lines()]
        return lines

    def _facts(self) -> list[tuple[str, str]]:
        told = [("dimensions", self._dimensions())]
        if self.dimension:
            low, high = min(self.growth), max(self.growth)
            if (low, high) != (1.0, 1.0):
                told.append(
                    ("growth", f"{low - 1:+.1e} to {high - 1:+.1e} per symbol, divided out")
                )
            told.append(("eigenvalues", self._moduli()))
        if self.commutators is not None:
            norms = self.commutators
            same, others = norms.largest_of_commuting, norms.smallest_of_others
            parts = [] if same is None else [f"at most {same:.1e} where maps commute"]
            parts += [] if others is None else [f"at least {others:.2g} where not"]
            pairs = number_of(self.commutators.pairs, "pair")
            told.append(("commutators", f"{', '.join(parts)} ({pairs} of symbols)"))
        if self.homomorphism is not None:
            defect = self.homomorphism
            over = f"{number_of(defect.pairs, 'pair')}, {number_of(defect.elements, 'map')}"
            over += "" if defect.complete else ", not all"
            differ = f"by {defect.largest:.1e} at most, {defect.mean:.1e} in the mean ({over})"
            told.append(("homomorphism", f"words that do the same differ {differ}"))
        if self.groups_are:
            told.append(("groups", f"none: {self.groups_are}"))
        if not self.planes:
            told.append(("planes", self.planes_are))
        return told

    def _dimensions(self) -> str:
        constant = " and a constant" if self.affine else ""
        text = f"{self.dimension} of {self.width}{constant} keep the state"
        if not self.read:
            text += " (the readout is not linear: read or not)"
        if self.dimension:
            text += f"; spread within a state {self.spread:.1e} of its distance"
        return text

    def _moduli(self) -> str:
        used = [math.hypot(*each) for spectrum in self.spectra for each in spectrum.used]
        every = [math.hypot(*each) for spectrum in self.spectra for each in spectrum.every]
        text = f"moduli {_range(min(used), max(used))} where the state is kept"
        if every:
            text += f", at most {max(every):.5f} in all"
        if len(self.spectra) < len(self.symbols):
            text += f" (of {len(self.spectra)} of {len(self.symbols)} symbols)"
        return text

    def _plane_lines(self) -> list[Line]:
        read = [plane for plane in self.planes if plane.weight >= NOT_READ]
        counting = self.modulus is not None
        if counting and self.unit is not None:
            about = (
                f"harmonic: the angle of symbol {self.symbols[self.unit]}, over 2 pi / "
                f"{self.modulus}; off: the largest angle between a symbol and the whole harmonic"
            )
        else:
            about = "angles: of each symbol, in radians"
            if any(None in plane.angles for plane in read):
                about += "; -: it does not rotate the plane"
        own = ("harmonic", "off") if counting else ("angles",)
        rows = [
            (
                str(plane.dimension),
                f"{100 * plane.weight:.1f} %",
                _range(min(plane.moduli), max(plane.moduli)),
                *(plane.counted if counting else (plane.turned,)),
            )
            for plane in read[:MOST_PLANES]
        ]
        numbers = ("dimension", "read", "modulus", "harmonic", "off")
        table = Grid(("dimension", "read", "modulus", *own), rows, right=numbers)
        lines: list[Line] = [f"planes: {self.planes_are}", about, table]
        if len(read) > MOST_PLANES:
            lines.append(f"and {len(read) - MOST_PLANES} more")
        if left := len(self.planes) - len(read):
            lines.append(f"{number_of(left, 'plane')} hardly read (below {100 * NOT_READ:g} %)")
        return lines

    def figures(self, of: str) -> Iterator[Drawing]:
        """Eigenvalues, harmonics or angles, and the characters of the largest group."""
        if any(each.every or each.used for each in self.spectra):
            yield "eigenvalues", lambda: self.eigenvalue_figure(of)
        if self.planes:
            yield "harmonics" if self.modulus else "angles", lambda: self.plane_figure(of)
        if self.groups:
            yield "characters", lambda: self.groups[0].figure(of)

    def eigenvalue_figure(self, of: str) -> Figure:
        """The eigenvalues of all listed operators in the complex plane, beside the unit circle."""
        import numpy as np

        figure, (axes,) = new_figure(5.0, 5.6, 1)
        turn = np.linspace(0, 2 * np.pi, 361)
        axes.plot(np.cos(turn), np.sin(turn), color=NOTE, linewidth=0.8, zorder=1)
        axes.axhline(0, color=PALE, linewidth=0.6, zorder=0)
        axes.axvline(0, color=PALE, linewidth=0.6, zorder=0)
        every = np.array([pair for each in self.spectra for pair in each.every]).reshape(-1, 2)
        used = np.array([pair for each in self.spectra for pair in each.used]).reshape(-1, 2)
        axes.plot(*every.T, "o", mfc="none", mec=NOTE, ms=4, mew=0.7, zorder=2, label="all")
        kept = "where the state is kept"
        axes.plot(*used.T, "D", mfc=BLUE, mec="white", mew=0.4, ms=5, zorder=3, label=kept)
        reach = max(1.1, 1.05 * float(np.abs([*every.ravel(), *used.ravel(), 1.0]).max()))
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="real part", ylabel="imaginary")
        axes.set_aspect("equal")
        number = len(self.spectra)
        first = "" if number == len(self.symbols) else "the first "
        about = f"the operators of {first}{number} symbols; the circle has radius 1"
        entitled(figure, f"Eigenvalues of {of}", about)
        with_legend(figure, axes, 2)
        return figure

    def plane_figure(self, of: str) -> Figure:
        """Harmonics, or angles, of the planes that are read most; and how much each is read."""
        import numpy as np

        planes = self.planes[:MOST_DRAWN]
        if self.modulus is None or self.unit is None:
            planes = tuple(plane for plane in planes if plane.weight >= NOT_READ) or planes[:1]
        figure, (above, below) = new_figure(6.4, 5.2, 2, heights=(3, 1))
        places = np.arange(1, len(planes) + 1)
        modulus = self.modulus
        read = np.array([plane.weight for plane in planes])
        if modulus is not None and self.unit is not None:
            half = modulus // 2
            for harmonic in range(half + 1):
                above.axhline(harmonic, color=PALE, linewidth=0.6, zorder=0)
            _harmonics(above, planes, places)
            unit = self.symbols[self.unit]
            above.set(ylim=(-0.4, half + 0.6), ylabel=f"harmonic: angle of symbol {unit} / (2π/m)")
            step = max(1, -(-(half + 1) // 12))
            above.set_yticks(range(0, half + 1, step))
            what, about = "Harmonics", f"m = {modulus}; whole numbers are exact"
        else:
            symbols = list(range(min(len(self.symbols), len(MARKERS))))
            for symbol in symbols:
                angles = [plane.angles[symbol] for plane in planes]
                aside = 0.6 * ((symbol + 0.5) / len(symbols) - 0.5)  # so that no mark hides another
                pairs = zip(places, angles, strict=True)
                above.plot(
                    [place + aside for place, angle in pairs if angle is not None],
                    [angle for angle in angles if angle is not None],
                    MARKERS[symbol],
                    mfc=PALETTE[symbol % len(PALETTE)],
                    mec=INK,
                    mew=0.4,
                    ms=6,
                    label=self.symbols[symbol],
                )
            above.set(ylim=(-3.5, 3.5), ylabel="angle")
            turns = np.pi / 2 * np.arange(-2, 3)
            above.set_yticks(turns, ["-π", "-π/2", "0", "π/2", "π"])
            above.grid(axis="y", color=PALE, linewidth=0.6)
            what = "Angles"
            about = "no mark: the operator does not turn that plane as a rotation does"
        below.bar(places, read, color=NOTE, width=0.7)
        below.set(xlabel="plane or line, most read first", ylabel="share read")
        below.set_ylim(0, 1.15 * max(float(read.max()), 1e-9))
        for axes in (above, below):
            axes.set_xlim(0.3, len(planes) + 0.7)
            axes.set_xticks(range(1, len(planes) + 1, max(1, -(-len(planes) // 20))))
        entitled(figure, f"{what} of {of}", about)
        with_legend(figure, above, 6)
        return figure


def _harmonics(axes: Axes, planes: Sequence[Plane], places: Any) -> None:
    """Filled where a plane is read, hollow where it hardly is."""
    for is_read, face, label in ((True, BLUE, "read"), (False, "none", "hardly read")):
        chosen = [
            (place, plane.harmonic)
            for place, plane in zip(places, planes, strict=True)
            if plane.harmonic is not None and (plane.weight >= NOT_READ) == is_read
        ]
        if chosen:
            mark = "o" if is_read else "s"
            colour = BLUE if is_read else NOTE
            axes.plot(*zip(*chosen, strict=True), mark, mfc=face, mec=colour, ms=6, label=label)


def _range(least: float, most: float) -> str:
    """Two moduli, as one where they look the same."""
    ends = (f"{least:.5f}", f"{most:.5f}")
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
