"""Diagonal recurrences: one gain for each coordinate, in one layer or in a stack of layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import (
    BILINEAR,
    CASCADE,
    NEGATIVE,
    OWN,
    Additive,
    LinearRecurrence,
    cascade,
    is_trivial,
    only_resets,
    robustness,
    visible_groups,
    within_tc0,
)

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra
    from statetrack.algebra.subgroups import Subgroup

Gains = Literal["positive", "real", "complex", "unit"]
"""Between 0 and 1; real; complex; complex of modulus 1, which are rotations of planes."""

POSITIVE_GATES = "Sarrof, Veitsman and Hahn 2024, arXiv:2405.17394"
DIAGONAL_LAYERS = "Shakerinava et al. 2026, arXiv:2603.01959"


# --- one layer, with gains that are free parameters ---


@dataclass(frozen=True, kw_only=True)
class Diagonal(LinearRecurrence):
    """One layer of gains for every symbol. They commute, so without additive terms they count.

    Positive gains count up to a threshold; real ones also modulo 2; complex ones also modulo any
    number. Gains of modulus 1 count modulo any number, and up to no threshold.
    """

    gains: Gains
    size: Size
    additive: Additive = "none"
    readout_bias: bool = False

    @property
    def structure(self) -> str:
        """What multiplies the state."""
        return {
            "positive": "diagonal",
            "real": "diagonal",
            "complex": "complex diagonal",
            "unit": "rotations of planes",
        }[self.gains]

    @property
    def eigenvalues(self) -> str:
        """The range of the gains."""
        return {
            "positive": "(0, 1)",
            "real": "(-inf, inf)",
            "complex": "any",
            "unit": "modulus 1",
        }[self.gains]

    def predict(self, algebra: Algebra) -> Prediction:
        """Whether labels depend on counts of symbols that such gains represent."""
        robust = robustness(algebra)
        refused = _refused_group(algebra, self.gains) or (
            self._refused_without_terms(algebra) if self.additive == "none" else None
        )
        if refused:
            return replace(refused, robust=robust)
        if self._counts(algebra):
            return replace(self._counting(algebra), robust=robust)
        if self.additive == "input" and self.gains != "unit" and only_resets(algebra):
            return Prediction(
                "yes",
                "every symbol acts as the identity or as a reset: a gain of 1, or a gain of 0 and "
                "an added state",
                f"Dankowiakowski and Ronca 2025; {OWN}",
                (self.size.at_least(algebra.num_states),),
                robust=robust,
            )
        return Prediction("unknown", "no rule decides it", OWN, robust=robust)

    def _refused_without_terms(self, algebra: Algebra) -> Prediction | None:
        """No, where the order of symbols matters, or gains of modulus 1 would have to forget."""
        if algebra.order_matters:
            return Prediction(
                "no",
                "the label depends on the order of symbols, and gains commute",
                f"Proposition 2 of {BILINEAR}",
            )
        if self.gains == "unit" and algebra.machine.complete and not algebra.is_group:
            return Prediction(
                "no",
                "a symbol merges states, and the powers of a rotation come arbitrarily close to "
                "the identity",
                OWN,
            )
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
            return Prediction(
                "yes",
                "labels depend on how often each symbol was read, up to a threshold and modulo a "
                "period: sums of powers of gains distinguish such counts",
                OWN,
            )
        each = 2 if self.gains in ("complex", "unit") else 1
        costs = [each] * len(algebra.space.parts)
        choice = algebra.space.with_smallest_sum(costs)
        if choice is None:
            choice = algebra.space.with_smallest_largest(algebra.space.dimensions)
            assert choice is not None, "all parts together read every label"
            choice = replace(choice, cost=each * len(choice.parts), smallest=False)
        plain = self.additive == "none" and not self.readout_bias
        return Prediction(
            "yes",
            f"characters of the abelian group that together distinguish the states: "
            f"{len(choice.parts)}",
            BILINEAR,
            (self.size.at_least(choice.cost, choice.smallest and plain),),
            margin=choice.readout.margin,
        )


# --- stacks of layers, with gains and additive terms that depend on the input ---


@dataclass(frozen=True, kw_only=True)
class PositiveLayers(LinearRecurrence):
    """Layers of gains in [0, 1] that depend on the input (Mamba, GLA, mLSTM)."""

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "(0, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """The star-free languages."""
        refused = _refused_group(algebra, "positive")
        if refused:
            source = f"{POSITIVE_GATES}; {refused.source}"
            return replace(refused, robust=robustness(algebra), source=source)
        return cascade(algebra, self.layers, is_trivial, "trivial (star-free)", POSITIVE_GATES)


@dataclass(frozen=True, kw_only=True)
class SignedLayers(LinearRecurrence):
    """Layers of gains in [-1, 1] that depend on the input: every period is a power of 2."""

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "(-1, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """Monoids whose groups are 2-groups."""
        for group in visible_groups(algebra):
            if not _is_two_group(group):
                return Prediction(
                    "no",
                    f"the group {group.name} has an element of odd prime order; a layer of gains "
                    "in [-1, 1] can only double a period",
                    f"{NEGATIVE}; {OWN}",
                    robust=robustness(algebra),
                )
        if algebra.is_group and algebra.monoid and algebra.monoid.subgroups[0].squares_length:
            return Prediction(
                "yes",
                "a subnormal series whose factors are elementary abelian 2-groups, one for each "
                "layer",
                f"{DIAGONAL_LAYERS}; {OWN}",
                (self.layers.at_least(algebra.monoid.subgroups[0].squares_length),),
                robust=robustness(algebra),
            )
        return cascade(algebra, self.layers, _is_two_group, "2-groups", CASCADE)


@dataclass(frozen=True, kw_only=True)
class ComplexLayers(LinearRecurrence):
    """Layers of complex gains that depend on the input (Mamba-3)."""

    layers: Size
    structure: str = "complex diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Monoids whose groups are solvable."""
        return _abelian_series(algebra, self.layers) or cascade(
            algebra, self.layers, lambda group: group.solvable, "solvable", CASCADE
        )


@dataclass(frozen=True, kw_only=True)
class UnitLayers(LinearRecurrence):
    """Layers of complex gains of modulus 1 that depend on the input (AUSSM)."""

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "modulus 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Solvable groups."""
        unknown = Prediction("unknown", "no rule decides it", OWN, robust=robustness(algebra))
        return _abelian_series(algebra, self.layers) or unknown


@dataclass(frozen=True, kw_only=True)
class TimeInvariantLayers(LinearRecurrence):
    """Layers of gains that do not depend on the input (S4D, LRU, linear attention)."""

    structure: str = "fixed diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Tasks in TC0 at most."""
        return replace(within_tc0(algebra), robust=robustness(algebra))


# --- what the rules share ---


def _refused_group(algebra: Algebra, gains: Gains) -> Prediction | None:
    """No, where labels distinguish the elements of a group that such gains do not represent."""
    for group in visible_groups(algebra):
        if gains == "positive":
            return Prediction(
                "no",
                f"the group {group.name} acts on the states; positive gains cannot realise an "
                "element of order 2 or more",
                f"Theorem 1 of {NEGATIVE}",
            )
        if not group.abelian:
            return Prediction(
                "no",
                f"the group {group.name} is not abelian, and gains commute",
                f"Proposition 2 of {BILINEAR}",
            )
        if gains == "real" and group.exponent is not None and group.exponent > 2:
            return Prediction(
                "no",
                f"the group {group.name} has an element of order greater than 2; real gains "
                "realise only orders 1 and 2",
                f"Theorem 2 of {NEGATIVE}",
            )
    if gains == "positive" and algebra.machine.a_symbol_cycles:
        return Prediction(
            "no",
            "a symbol cycles through states with different labels; positive gains cannot realise "
            "it",
            f"Theorem 1 of {NEGATIVE}",
        )
    return None


def _abelian_series(algebra: Algebra, layers: Size) -> Prediction | None:
    """What the derived length decides: yes for solvable groups, no where one is not solvable."""
    robust = robustness(algebra)
    for group in visible_groups(algebra):
        if not group.solvable:
            return Prediction(
                "no",
                f"the group {group.name} is not solvable: it has no subnormal series with abelian "
                "factors, for any number of layers",
                DIAGONAL_LAYERS,
                robust=robust,
            )
    if not algebra.is_group or algebra.monoid is None:
        return None
    all_seen = all(group.seen for group in algebra.monoid.subgroups)
    return Prediction(
        "yes",
        "a subnormal series with abelian factors, one for each layer",
        DIAGONAL_LAYERS,
        (layers.at_least(max(algebra.monoid.derived_length or 0, 1), all_seen),),
        robust=robust,
    )


def _is_two_group(group: Subgroup) -> bool:
    return group.order & (group.order - 1) == 0
