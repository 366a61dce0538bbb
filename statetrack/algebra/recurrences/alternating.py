"""Stacks of recurrent layers and of softmax attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from statetrack.algebra.prediction import Need, Prediction, Size
from statetrack.algebra.recurrences.base import (
    FIXED_PRECISION,
    OWN,
    Recurrence,
    beyond_tc0,
    settling,
    visible_groups,
)
from statetrack.algebra.recurrences.gains import (
    ComplexLayers,
    FixedPhaseLayers,
    FixedPositiveLayers,
    PositiveLayers,
    SignedLayers,
    TimeInvariantLayers,
    UnitLayers,
    is_two_group,
)
from statetrack.algebra.recurrences.nonlinear import Attention, Clamped

if TYPE_CHECKING:
    from statetrack.algebra.analysis import Algebra

GAINS_BY_LAYER = (
    PositiveLayers,
    FixedPositiveLayers,
    FixedPhaseLayers,
    SignedLayers,
    ComplexLayers,
    UnitLayers,
    TimeInvariantLayers,
)
"""Layers whose products of operators are products of numbers, which are in TC0."""
KEEPING_ORDER = (PositiveLayers, FixedPositiveLayers, Clamped)
"""Layers in which every coordinate is a non-decreasing function of its own last value."""
SHARED = ("width", "mlp")
"""Settings that both kinds of layers have in common, beside the number of layers."""


@dataclass(frozen=True, kw_only=True)
class Alternating(Recurrence):
    """Layers of a recurrence and of softmax attention, in a pattern that repeats.

    Layers that write nothing into a residual stream (`passes`) are passed over. So a stack can do
    what its recurrent layers can do alone, and what its layers of attention can.

    At fixed precision attention without positions only says which values have occurred, up to a
    threshold: a star-free function of the vectors below. So no group comes from it, and the groups
    of a stack are made of those of its recurrent layers (docs/proofs.md, *Attention between
    recurrent layers*). Where products of the recurrent layers' operators are in TC0, so is the
    stack. What attention with positions adds to a recurrence is not known otherwise.
    """

    equation: ClassVar[str] = (
        "x = x + y_l(x) in layer l, where y_l is a recurrence or softmax attention, by a pattern"
    )
    rule: ClassVar[str] = (
        "what its recurrent layers do alone, and what its attention does alone; no group that "
        "gains cannot track, where attention has no positions; no group that is not solvable with "
        "gains, unless TC0 = NC1"
    )

    layers: Size
    pattern: str
    """The kinds of layers in order, R for the recurrence and A for attention; it repeats."""
    recurrent: Recurrence
    attention: Attention
    passes: bool = True
    """Whether layers are added to their input, and can be passed over."""

    @property
    def has_state(self) -> bool:
        """No: attention's grows with the word."""
        return False

    def predict(self, algebra: Algebra) -> Prediction:
        """What one kind of layers does, or what both together cannot."""
        alone = self._alone(algebra) if self.passes else []
        for each in alone:
            if each.can == "yes":
                return each
        return (
            self._refused(algebra)
            or next(iter(alone), None)
            or Prediction("unknown", "no rule decides it for attention and a recurrence", OWN)
        )

    def _alone(self, algebra: Algebra) -> list[Prediction]:
        """Yes, by one kind of layers; or unknown, for want of a size."""
        found = []
        own = self.recurrent.predict(algebra)
        if own.can == "yes":
            found.append(self._by_recurrence(own))
        by_attention = self.attention.predict(algebra)
        if by_attention.can == "yes":
            needs = (self.layers.at_least(None),)
            theorem = f"its layers of attention alone: {by_attention.theorem}"
            found.append(Prediction("yes", theorem, by_attention.source, needs))
        return found

    def _by_recurrence(self, own: Prediction) -> Prediction:
        """What the recurrent layers do alone, with as many layers as hold enough of them."""
        others = [need for need in own.needs if need.setting not in ("layers", *SHARED)]
        bos = self.attention.bos
        for need in others:
            if need.met != "yes" or (bos and need.value):
                return Prediction(
                    "unknown",
                    f"its recurrent layers alone would with {need.bounds}"
                    f"{', and more for the token before the word' if bos else ''}: {own.theorem}",
                    own.source,
                )
        needs = [self._whole(need) for need in own.needs if need not in others]
        return Prediction(
            "yes", f"its recurrent layers alone: {own.theorem}", own.source, tuple(needs)
        )

    def _whole(self, need: Need) -> Need:
        """A need for a number of recurrent layers as one for layers; others as they are.

        No number is known below which none does: attention may take the place of some. A token
        before the word is one more symbol, for which some constructions need more.
        """
        if need.setting != "layers":
            known = None if self.attention.bos else need.value
            return replace(need, value=known, smallest=False, least=None)
        if need.value is None:
            return self.layers.at_least(None)
        places = [place for place, letter in enumerate(self.pattern, 1) if letter == "R"]
        rounds, left = divmod(max(need.value, 1) - 1, len(places))
        both = max(self.pattern.index(letter) for letter in "RA") + 1
        return self.layers.at_least(max(both, rounds * len(self.pattern) + places[left]))

    def _refused(self, algebra: Algebra) -> Prediction | None:
        if isinstance(self.recurrent, GAINS_BY_LAYER) and (no := beyond_tc0(algebra)):
            return no
        if self.attention.positions != "none":
            return None
        beside = (
            ", and attention without positions adds no group: at fixed precision it only says what "
            "has occurred"
        )
        source = f"{OWN}; {FIXED_PRECISION}"
        if isinstance(self.recurrent, KEEPING_ORDER):
            why = f"every coordinate of a recurrent layer keeps the order of its values{beside}"
            no = settling(algebra, why, source)
            return no and replace(no, robust="unknown")
        if isinstance(self.recurrent, SignedLayers):
            for group in visible_groups(algebra):
                if not is_two_group(group):
                    return Prediction(
                        "no",
                        f"the group {group.name} has an element of odd prime order; a layer of "
                        f"gains in [-1, 1] has groups of 2 elements alone{beside}",
                        source,
                        witness=algebra.witnesses.powers(None),
                    )
        return None
