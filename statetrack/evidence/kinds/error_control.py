"""Error control: how errors of a model's state grow along words, and where its decoder fails."""

from __future__ import annotations

from collections.abc import Iterator
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
    GREEN,
    INK,
    NOTE,
    ORANGE,
    TEXT,
    entitled,
    new_figure,
    with_legend,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_ROWS = 10
"""The most positions that are shown."""

FARTHER = 30
"""A predicted failure is drawn up to so many times the longest length that was read."""

FLOOR = 1e-9
"""Ratios up to this are rounding, and not drawn."""

LEGEND = (
    "R: how far hidden states of one automaton state are apart; M: the smallest distance of two "
    "automaton states' means; displacement: how far logits have moved from early means, over M"
)
"""What the columns of the table by position are."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far hidden states of one automaton state are apart at one position of random words.

    `spread` R is the root mean square distance of hidden states from the mean of their automaton
    state's at this position; `separation` M the smallest distance of two such means; `ratio` is
    R / M. The same in the projection that the decoder sees, the logits less their mean, with M over
    pairs of states of different labels (`output_...`). `displacement` is the root mean square
    distance there from the *reference* means, those at `ErrorControl.reference`, over their M: it
    also sees what moves all hidden states of one automaton state alike. None where fewer than two
    states, or none twice, were met. `wrong` is the share of wrong answers.
    """

    position: int
    spread: float | None
    separation: float | None
    ratio: float | None
    output_ratio: float | None
    displacement: float | None
    wrong: float


@dataclass(frozen=True, kw_only=True)
class NoiseRow:
    """Words read with Gaussian noise on all numbers of the state after every symbol.

    `size` is the expected length of what is added to a word's state, as a part of the state's.
    `first_error` is the position of the first wrong answer to any word, None where `length` symbols
    brought none. `predicted` is the position where three standard deviations of it reach the
    margin, if operators keep lengths; None where there is no margin.
    """

    size: float
    words: int
    length: int
    first_error: int | None
    predicted: float | None

    def __str__(self) -> str:
        text = (
            f"no error within {number_of(self.length, 'symbol')}"
            if self.first_error is None
            else f"first error at symbol {self.first_error:,}"
        )
        expected = "" if self.predicted is None else f"; the margin says {self.predicted:,.0f}"
        return f"{text} ({self.words} words){expected}"


@dataclass(frozen=True, kw_only=True)
class PrecisionRow:
    """The same words read in one precision: weights, states and arithmetic.

    In bfloat16 the weights are rounded to it, and the state after every symbol, with arithmetic in
    float32 in between.

    `first_difference` is the first position where an answer is not that of float64, `first_wrong`
    the first where it is wrong; None where `length` symbols brought none. `reason` is why the type
    cannot be used, or empty.
    """

    precision: str
    words: int
    length: int
    first_difference: int | None
    first_wrong: int | None
    reason: str

    def __str__(self) -> str:
        if self.reason:
            return f"cannot be used: {self.reason}"
        wrong = (
            f"right on {self.words} words of {number_of(self.length, 'symbol')}"
            if self.first_wrong is None
            else f"first error at symbol {self.first_wrong:,}"
        )
        if self.precision == "float64" or self.first_difference is None:
            return wrong
        return f"{wrong}, differs from float64 from {self.first_difference:,}"


@EVIDENCE.register("error-control")
@dataclass(frozen=True, kw_only=True)
class ErrorControl(Evidence):
    """How errors of the state grow with length, and where the decoder fails by them.

    After Chung, Choi and Kim (2026, arXiv:2605.07755), whose R and M the source leaves open: here
    they are those of `Spread`. Hidden states are divided by their length first, and logits by
    theirs, where answers do not depend on it.

    `threshold` is the displacement at which 1 % of answers are wrong, measured with noise on the
    hidden states of short words; None where no noise has that effect. `drift` is the growth of the
    displacement per symbol, in least squares over positions up to `drift_to`. `predicted` is their
    quotient, `T_cross = tau M / |W eta|` of Corollary 1, from where the line is; None without
    growth. `exponent` is that of a power law through the same positions, and `predicted_by_growth`
    where that crosses. `observed` is the first position at which 1 % of the answers are wrong,
    `first_error` that of the first wrong answer of all `words`, read to `length`.

    `margin` is the smallest distance of a reference mean from the boundary of its label, over the
    length of the longest; `horizons` are the symbols for which rounding, at worst, stays within it
    if operators keep lengths, by precision. None where the readout is not linear in the state.
    """

    kind = "error-control"
    commands = ("probe",)
    place = 7.0
    found_by = "statetrack.evidence.error_growth:find_error_control"

    states: int
    words: int
    length: int
    reference: tuple[int, int]
    """The first and the last position that reference means are taken from."""
    spreads: tuple[Spread, ...]
    threshold: float | None
    drift: float | None
    drift_to: int
    exponent: float | None
    predicted: int | None
    predicted_by_growth: int | None
    observed: int | None
    first_error: int | None
    noise: tuple[NoiseRow, ...]
    precisions: tuple[PrecisionRow, ...]
    fails_first: str | None
    """The precision with the earliest wrong answer, float64 where others are not earlier.

    Then it is not rounding that fails. None where none is wrong.
    """
    margin: float | None
    horizons: tuple[tuple[str, int], ...]

    @property
    def cell(self) -> str:
        """The precision that fails first, in a cell of a table: `bfloat16 (at 14)`."""
        for row in self.precisions:
            if row.precision == self.fails_first and row.first_wrong is not None:
                return f"{row.precision} (at {row.first_wrong:,})"
        lengths = [row.length for row in self.precisions if not row.reason]
        return f"none to {min(lengths):,}" if lengths else "-"

    def lines(self, names: Named) -> list[Line]:
        """The spread by position, thresholds and predictions, noise, precisions."""
        return [LEGEND, self._by_position(), Facts(self._facts())]

    def _by_position(self) -> Grid:
        kept = [each for each in self.spreads if each.position & (each.position - 1) == 0]
        if self.spreads and self.spreads[-1] not in kept:
            kept.append(self.spreads[-1])
        step = max(1, -(-len(kept) // MOST_ROWS))
        rows = [
            (
                f"{each.position:,}",
                *map(_small, (each.ratio, each.output_ratio, each.displacement)),
                f"{100 * each.wrong:.1f} %",
            )
            for each in kept[(len(kept) - 1) % step :: step]
        ]
        headings = ("position", "R/M of states", "R/M of logits", "displacement", "wrong")
        return Grid(headings, rows, right=headings)

    def _facts(self) -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []
        words = f"{self.words:,} random words of {number_of(self.length, 'symbol')}"
        if self.first_error is None:
            told.append(("errors", f"none on {words}"))
        else:
            many = "" if self.observed is None else f", 1 % of the answers from {self.observed:,}"
            told.append(("errors", f"the first at symbol {self.first_error:,}{many} ({words})"))
        if self.threshold is not None:
            at = f"at a displacement of {self.threshold:.2f}"
            told.append(("threshold", f"{at}, noise makes 1 % of the answers wrong"))
        if self.drift is not None:
            ends = []
            if self.predicted is not None:
                ends.append(f"{self.predicted:,} by a line")
            if self.predicted_by_growth is not None:
                ends.append(f"{self.predicted_by_growth:,} by a power of {self.exponent:.2f}")
            crosses = f"; crosses at {', '.join(ends)}" if ends else "; does not cross"
            grows = f"{self.drift:+.1e} per symbol up to {self.drift_to:,}"
            told.append(("drift", f"{grows}{crosses}"))
        if self.margin is not None:
            rounded = ", ".join(f"{number:,} in {name}" for name, number in self.horizons)
            told.append(("margin", f"{self.margin:.3f} of the state; rounding at worst: {rounded}"))
        told += [(f"noise {row.size:g}", str(row)) for row in self.noise]
        told += [(row.precision, str(row)) for row in self.precisions]
        if self.fails_first is not None:
            why = "" if self.fails_first != "float64" else ": no rounding, but the model itself"
            told.append(("fails first", f"{self.fails_first}{why}"))
        if not self.complete:
            told.append(("note", "time ran out: not all lengths were read"))
        return told

    def figures(self, of: str) -> Iterator[Drawing]:
        """One, where more than one position was read."""
        if len(self.spreads) > 1:
            yield "error-control", lambda: self.figure(of)

    def figure(self, of: str) -> Figure:
        """The spread of hidden states along words, the threshold, and where it fails."""
        figure, (axes,) = new_figure(6.4, 4.6, 1)
        lines = (
            ("ratio", "R/M of states", "s", NOTE, ":"),
            ("output_ratio", "R/M of logits", "o", BLUE, "-"),
            ("displacement", "displacement", "D", ORANGE, "--"),
        )
        for field, label, mark, colour, style in lines:
            values = [(each.position, getattr(each, field)) for each in self.spreads]
            points = [point for point in values if point[1] is not None and point[1] > FLOOR]
            if points:
                look: dict[str, Any] = {"marker": mark, "color": colour, "ls": style, "ms": 4}
                axes.plot(*zip(*points, strict=True), label=label, linewidth=1.2, **look)
        axes.set_xscale("log")
        axes.set_yscale("log")
        if self.threshold:
            axes.set_ylim(top=max(axes.get_ylim()[1], 3 * self.threshold))
            axes.axhline(self.threshold, color=INK, linewidth=1.0, linestyle="--")
            axes.annotate(
                f"threshold {self.threshold:.2f}",
                (self.spreads[0].position, self.threshold),
                xytext=(2, 3),
                textcoords="offset points",
                fontsize=TEXT - 1,
            )
        last = self.spreads[-1].position
        if self.predicted is not None and self.predicted <= FARTHER * last:
            axes.axvline(self.predicted, color=GREEN, ls=":", lw=1.6, label="predicted failure")
        failed = self.observed or self.first_error
        if failed is not None:
            axes.axvline(failed, color=GREEN, lw=1.2, label="observed failure")
        axes.set(xlabel="position in the word", ylabel="over the separation M")
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        if self.first_error is None:
            errors = f"no error on {self.words:,} random words of {self.length:,} symbols"
        else:
            errors = f"first error at symbol {self.first_error:,} of {self.words:,} random words"
        entitled(figure, f"Errors of the state of {of}", errors)
        with_legend(figure, axes, 3)
        return figure


def _small(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
