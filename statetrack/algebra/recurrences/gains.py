"""Diagonal recurrences: one gain for each coordinate, in one layer or in a stack of layers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import (
    BILINEAR,
    CASCADE,
    CONSTANT_DEPTH,
    NEGATIVE,
    OWN,
    Additive,
    LinearRecurrence,
    beyond_tc0,
    cascade,
    granted,
    is_trivial,
    occurrences,
    only_resets,
    refused,
    robustness,
    settling,
    undecided,
    visible_groups,
)

if TYPE_CHECKING:
    from statetrack.algebra.analysis import Algebra
    from statetrack.algebra.monoid_facts import Subgroup

Gains = Literal["positive", "real", "complex", "unit"]
"""Between 0 and 1; real; complex; complex of modulus 1, which are rotations of planes."""
GAINS: dict[Gains, tuple[str, str]] = {
    "positive": ("diagonal", "(0, 1)"),
    "real": ("diagonal", "(-inf, inf)"),
    "complex": ("complex diagonal", "any"),
    "unit": ("rotations of planes", "modulus 1"),
}
"""What multiplies the state, and where its eigenvalues lie."""

POSITIVE_GATES = "Sarrof, Veitsman and Hahn 2024, arXiv:2405.17394"
DIAGONAL_LAYERS = "Shakerinava et al. 2026, arXiv:2603.01959"
PARITY = "Khavari et al. 2025, arXiv:2508.07395"
LENGTHS_COUNTED = "Barrington, Compton, Straubing and Therien 1992, J. Comput. Syst. Sci. 44"

IN_ORDER = (
    "a coordinate with a gain of 0 or more keeps the order of its values, so along the powers of a "
    "word the answers settle"
)
"""The argument *Order* of `statetrack.algebra.recurrences`."""


# --- one layer, with gains that are free parameters ---


@dataclass(frozen=True, kw_only=True)
class Diagonal(LinearRecurrence):
    """One layer of gains for every symbol. They commute, so without additive terms they count.

    Positive gains count up to a threshold; real ones also modulo 2; complex ones also modulo any
    number. Gains of modulus 1 count modulo any number, and up to no threshold.
    """

    equation: ClassVar[str] = "h_t = g(x_t) * h_{t-1}, coordinate by coordinate, in one layer"
    rule: ClassVar[str] = (
        "what depends on how often each symbol was read: up to a threshold (positive gains), "
        "modulo 2 too (real), modulo any number (complex), without a threshold (modulus 1)"
    )

    gains: Gains
    size: Size
    additive: Additive = "none"
    readout_bias: bool = False

    @property
    def structure(self) -> str:
        """What multiplies the state."""
        return GAINS[self.gains][0]

    @property
    def eigenvalues(self) -> str:
        """The range of the gains."""
        return GAINS[self.gains][1]

    def predict(self, algebra: Algebra) -> Prediction:
        """Whether labels depend on counts of symbols that such gains represent."""
        no = self._refused(algebra)
        if no:
            return no
        if self._counts(algebra):
            return self._counting(algebra)
        if self.additive == "input" and self.gains != "unit" and only_resets(algebra):
            why = (
                "every symbol acts as the identity or as a reset: a gain of 1, or a gain of 0 and "
                "an added state"
            )
            source = f"Dankowiakowski and Ronca 2025; {OWN}"
            size = algebra.num_states + algebra.num_states % self._each
            return granted(algebra, why, source, self.size.at_least(size))
        return undecided(algebra)

    @property
    def _each(self) -> int:
        """How many numbers one gain multiplies."""
        return 2 if self.gains in ("complex", "unit") else 1

    def _refused(self, algebra: Algebra) -> Prediction | None:
        """No, where labels show a group that such gains do not represent, or an order of symbols.

        Without added terms, gains of modulus 1 forget nothing.
        """
        if self.gains == "positive":
            source = f"{OWN}; at finite precision Theorem 1 of {NEGATIVE}"
            if no := settling(algebra, IN_ORDER, source):
                return no
        for group in () if self.gains == "positive" else visible_groups(algebra):
            if not group.abelian:
                why = f"the group {group.name} is not abelian, and gains commute"
                source = f"Proposition 2 of {BILINEAR}; {OWN}"
                return refused(algebra, why, source, algebra.witnesses.group(group))
            if self.gains == "real" and group.exponent is not None and group.exponent > 2:
                why = (
                    f"the group {group.name} has an element of order greater than 2; real gains "
                    "realise only orders 1 and 2"
                )
                source = f"Theorem 2 of {NEGATIVE}"
                return refused(algebra, why, source, algebra.witnesses.powers(2))
        if self.additive != "none":
            return None
        if algebra.order_matters:
            why = "the label depends on the order of symbols, and gains commute"
            source = f"Proposition 2 of {BILINEAR}"
            return refused(algebra, why, source, algebra.witnesses.order)
        if self.gains == "unit" and algebra.machine.complete and not algebra.is_group:
            why = (
                "a symbol merges states, and the powers of a rotation come arbitrarily close to "
                "the identity"
            )
            return refused(algebra, why, OWN, algebra.witnesses.merge)
        return None

    def _counts(self, algebra: Algebra) -> bool:
        """Whether labels depend on counts of symbols alone, in a way that such gains represent."""
        monoid = algebra.monoid
        if monoid is None or not monoid.commutative:
            return False
        if self.gains == "unit":
            return algebra.is_group
        if self.gains == "positive":
            return monoid.aperiodic
        exponents = [group.exponent for group in monoid.subgroups]
        return self.gains == "complex" or all(each is not None and each <= 2 for each in exponents)

    def _counting(self, algebra: Algebra) -> Prediction:
        """Yes: characters of an abelian group; otherwise sums of powers of different gains."""
        if algebra.space is None:
            why = (
                "labels depend on how often each symbol was read, up to a threshold and modulo a "
                "period: sums of powers of gains distinguish such counts"
            )
            return granted(algebra, why, OWN)
        each = self._each
        costs = [each] * len(algebra.space.parts)
        choice = algebra.space.with_smallest_sum(costs)
        if choice is None:
            choice = algebra.space.with_smallest_largest(algebra.space.dimensions)
            assert choice is not None, "all parts together read every label"
            choice = replace(choice, cost=each * len(choice.parts), smallest=False)
        plain = self.additive == "none" and not self.readout_bias
        number = len(choice.parts)
        why = f"characters of the abelian group that together distinguish the states: {number}"
        need = self.size.at_least(choice.cost, choice.smallest and plain)
        return granted(algebra, why, BILINEAR, need, margin=choice.readout.margin)


# --- stacks of layers, with gains and additive terms that depend on the input ---


@dataclass(frozen=True, kw_only=True)
class PositiveLayers(LinearRecurrence):
    """Layers of gains in [0, 1] that depend on the input (Mamba, GLA, mLSTM).

    *Order* says that they track no group, for any number of layers. A gain of 0 and an added term
    reset a coordinate, a gain of 1 keeps it, so a cascade of layers does every aperiodic monoid.
    """

    equation: ClassVar[str] = "h_t = g(x_t) * h_{t-1} + b(x_t), with gains in [0, 1]"
    rule: ClassVar[str] = (
        "star-free tasks, all of them in some number of layers; no group, in any number"
    )

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "(0, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """The star-free languages."""
        source = f"{OWN}; at finite precision {POSITIVE_GATES}, {NEGATIVE}"
        return settling(algebra, IN_ORDER, source) or cascade(
            algebra, self.layers, is_trivial, "trivial (star-free)", POSITIVE_GATES
        )


@dataclass(frozen=True, kw_only=True)
class FixedPositiveLayers(LinearRecurrence):
    """Layers of sums under gains in [0, 1] that do not depend on the input, read as averages.

    RWKV-4 and linear attention: weights of what is added depend on the input, and an average is a
    sum of weighted values over the sum of weights. *Order* holds for them as for gains that depend
    on the input.

    With a gain near 0 (`decays`) an average over the positions with a weight that is not 0 is the
    value of the last of them: a write over the last one. So a cascade does aperiodic monoids.

    With a gain of 1 (linear attention) the answer of one layer that reads symbols one by one
    (`sees_one`) depends on how often each symbol was read, and on the last one. More layers say
    what has occurred, where the blocks have MLPs (`has_mlp`).
    """

    equation: ClassVar[str] = (
        "h_t = g * h_{t-1} + w(x_t) v(x_t), with gains in [0, 1] that do not depend on the "
        "input, read as an average"
    )
    rule: ClassVar[str] = (
        "no group; with gains below 1 all star-free tasks, with gains of 1 what has occurred "
        "and in which order"
    )

    layers: Size
    decays: bool
    has_mlp: bool = False
    sees_one: bool = False
    structure: str = "fixed diagonal"
    eigenvalues: str = "(0, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """No group; aperiodic monoids, or what depends on which symbols came before which."""
        if no := settling(algebra, IN_ORDER, OWN):
            return no
        if self.decays:
            return cascade(algebra, self.layers, is_trivial, "trivial (star-free)", OWN)
        robust = robustness(algebra)
        occurred = occurrences(algebra, self.layers) if self.has_mlp else None
        if self.sees_one and algebra.last_but_one_matters:
            if occurred:
                needs = (self.layers.at_least(None, least=2),)
                return replace(occurred, needs=needs, robust=robust)
            if self.layers.value == 1:
                why = (
                    "one layer: labels depend on the order of symbols before the last one, and "
                    "sums do not"
                )
                return refused(algebra, why, OWN, algebra.witnesses.order_of_symbols)
        return replace(occurred or undecided(algebra), robust=robust)


@dataclass(frozen=True, kw_only=True)
class FixedPhaseLayers(LinearRecurrence):
    """Layers of complex gains whose modulus depends on the input, and whose phase does not (HGRN).

    With phases 0 they are layers of gains in [0, 1]. With phases of 2 pi / n, and a first write
    that a layer below tells from later ones, a coordinate is a clock: the position modulo n.
    Languages whose syntactic monoid is quasi-aperiodic are star-free over pairs of a symbol and
    such a position. All of it is in TC0. One layer does not count one word among others of its
    length (docs/proofs.md, *Fixed phases*).
    """

    equation: ClassVar[str] = (
        "h_t = r(x_t) e^{i theta} * h_{t-1} + b(x_t), with a phase that does not depend on "
        "the input"
    )
    rule: ClassVar[str] = (
        "star-free tasks, also over the position modulo a number; one layer counts no word "
        "among others of its length"
    )

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Aperiodic monoids, and quasi-aperiodic ones."""
        found = cascade(algebra, self.layers, is_trivial, "trivial (star-free)", POSITIVE_GATES)
        if found.can == "yes":
            return found
        if self.layers.value == 1 and algebra.monoid and algebra.monoid.counting_seen:
            why = (
                "one layer: labels count a word among others of its length, modulo a number, while "
                "a modulus of 1 keeps what is there and adds nothing, and less forgets"
            )
            return refused(algebra, why, OWN, algebra.witnesses.count)
        if no := beyond_tc0(algebra):
            return replace(no, robust=robustness(algebra))
        if algebra.monoid and algebra.monoid.quasi_aperiodic:
            return replace(
                found,
                can="yes",
                theorem="star-free over pairs of a symbol and its position modulo a number: fixed "
                "phases are clocks, in a cascade with resets",
                source=f"{LENGTHS_COUNTED}; {POSITIVE_GATES}; {CASCADE}",
                needs=(self.layers.at_least(None),),
            )
        return found


@dataclass(frozen=True, kw_only=True)
class SignedLayers(LinearRecurrence):
    """Layers of gains in [-1, 1] that depend on the input: every period is a power of 2.

    By *Order*, a layer of real gains can double the period of the answers along the powers of a
    word, and no more. So L layers track no element of odd prime order, and none of order above 2^L.
    """

    equation: ClassVar[str] = "h_t = g(x_t) * h_{t-1} + b(x_t), with gains in [-1, 1]"
    rule: ClassVar[str] = (
        "tasks whose groups have orders that are powers of 2, of order 2^L of an element at "
        "most in L layers"
    )

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "(-1, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """Monoids whose groups are 2-groups."""
        groups = visible_groups(algebra)
        for group in groups:
            if not is_two_group(group):
                why = (
                    f"the group {group.name} has an element of odd prime order; a layer of gains "
                    "in [-1, 1] can double the period of the answers along the powers of a word, "
                    "and no more"
                )
                return refused(algebra, why, OWN, algebra.witnesses.powers(None))
        doublings = [group.exponent.bit_length() - 1 for group in groups if group.exponent]
        least = max(doublings, default=None)
        if algebra.is_group and algebra.monoid and algebra.monoid.subgroups[0].squares_length:
            enough = algebra.monoid.subgroups[0].squares_length
            why = (
                "a subnormal series whose factors are elementary abelian 2-groups, one for each "
                "layer"
            )
            source = f"{DIAGONAL_LAYERS}; {OWN}"
            return granted(algebra, why, source, self.layers.at_least(enough, least=least))
        return cascade(algebra, self.layers, is_two_group, "2-groups", CASCADE, least=least)


@dataclass(frozen=True, kw_only=True)
class ComplexLayers(LinearRecurrence):
    """Layers of complex gains that depend on the input (Mamba-3).

    `slowest` is the least decay for a turn by pi: a gain that turns by theta has at most the
    modulus exp(-slowest |theta| / pi), and is 1 only where it neither turns nor adds. If it is not
    0, *Contraction* holds: over a period a coordinate either shrinks or is left alone. A difference
    of two states then lasts for about 1 / slowest half turns.
    """

    equation: ClassVar[str] = (
        "h_t = g(x_t) * h_{t-1} + b(x_t), with complex gains of modulus 1 or less"
    )
    rule: ClassVar[str] = (
        "tasks whose groups are solvable; star-free ones alone, where every turn decays"
    )

    layers: Size
    slowest: float = 0.0
    structure: str = "complex diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Monoids whose groups are solvable; without groups, if every turn decays."""
        if self.slowest == 0:
            least = _fewest_layers_of_gains(algebra)
            return _abelian_series(algebra, self.layers) or cascade(
                algebra, self.layers, lambda group: group.solvable, "solvable", CASCADE, least=least
            )
        half = round(math.log(2) / self.slowest)
        why = (
            f"every turn by pi shrinks a state by exp(-{self.slowest:g}): half is left after "
            f"{half:,} such turns, so answers settle (with a slowest rate of 0 they need not)"
        )
        return settling(algebra, why, OWN) or cascade(
            algebra, self.layers, is_trivial, "trivial (star-free)", POSITIVE_GATES
        )


@dataclass(frozen=True, kw_only=True)
class UnitLayers(LinearRecurrence):
    """Layers of complex gains of modulus 1 that depend on the input (AUSSM)."""

    equation: ClassVar[str] = "h_t = e^{i phi(x_t)} * h_{t-1} + b(x_t)"
    rule: ClassVar[str] = "solvable groups, with a layer for each abelian factor of a series"

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "modulus 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Solvable groups."""
        return _abelian_series(algebra, self.layers) or undecided(algebra)


@dataclass(frozen=True, kw_only=True)
class TimeInvariantLayers(LinearRecurrence):
    """Layers of complex gains that do not depend on the input (S4D, LRU).

    Such gains count positions, as clocks do. One layer does not count one word among others of its
    length: *Counting under a fixed operator*. For several, Khavari et al. (2025, arXiv:2508.07395)
    show it of parity without normalisation between the layers, which these models have.
    """

    equation: ClassVar[str] = (
        "h_t = g * h_{t-1} + b(x_t), with complex gains that do not depend on the input"
    )
    rule: ClassVar[str] = (
        "one layer counts no word among others of its length, and tells no order of words "
        "read far apart; no layers do what is not solvable, unless TC0 = NC1"
    )

    layers: Size
    structure: str = "fixed diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """No counting of one word among others of its length, in one layer."""
        one = self.layers.value == 1
        if one and algebra.monoid and algebra.monoid.counting_seen:
            why = (
                "one layer: labels count a word among others of its length, modulo a number, while "
                "under an operator that is always the same the answers settle as the count grows"
            )
            source = f"{OWN}; for parity {PARITY}"
            return refused(algebra, why, source, algebra.witnesses.count)
        if one and algebra.local_order_matters:
            why = (
                "one layer: labels depend on the order of words of one length that are read far "
                "apart, among words that change nothing; under an operator that is always the same "
                "answers depend on their numbers"
            )
            return refused(algebra, why, OWN, algebra.witnesses.far_order)
        unknown = Prediction(
            "unknown",
            "no rule decides it; the model is in TC0 at its constant depth and logarithmic "
            "precision",
            CONSTANT_DEPTH,
        )
        return replace(beyond_tc0(algebra) or unknown, robust=robustness(algebra))


# --- what the rules share ---


def _abelian_series(algebra: Algebra, layers: Size) -> Prediction | None:
    """What the derived length decides: yes for solvable groups, no where one is not solvable.

    That no fewer layers do, and none for groups that are not solvable, is shown at finite
    precision; that one layer does only abelian groups, in exact arithmetic too.
    """
    for group in visible_groups(algebra):
        if not group.solvable:
            why = (
                f"the group {group.name} is not solvable: it has no subnormal series with abelian "
                "factors, so no number of layers tracks it at finite precision"
            )
            return refused(algebra, why, DIAGONAL_LAYERS, algebra.witnesses.group(group))
    if not algebra.is_group or algebra.monoid is None or algebra.monoid.derived_length is None:
        return None
    enough = max(algebra.monoid.derived_length, 1)
    least = 1 if enough == 1 else _fewest_layers_of_gains(algebra)
    why = (
        "a subnormal series with abelian factors, one for each layer; at finite precision no fewer "
        "layers do"
    )
    source = f"{DIAGONAL_LAYERS}; {OWN}"
    return granted(algebra, why, source, layers.at_least(enough, least=least))


def _fewest_layers_of_gains(algebra: Algebra) -> int | None:
    """Two, where labels show a group that is not abelian; None where nothing is known."""
    return 2 if any(not group.abelian for group in visible_groups(algebra)) else None


def is_two_group(group: Subgroup) -> bool:
    """Whether the number of a group's elements is a power of 2."""
    return group.order & (group.order - 1) == 0
