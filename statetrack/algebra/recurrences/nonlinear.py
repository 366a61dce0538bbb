"""Recurrences that are not linear in the state, and attention, which is no recurrence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import (
    CASCADE,
    OWN,
    Recurrence,
    cascade,
    is_trivial,
    settling,
    within_tc0,
)

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra

SATURATION = "Omlin and Giles 1996, doi:10.1145/235809.235811"


@dataclass(frozen=True, kw_only=True)
class Saturating(Recurrence):
    """Units with a saturating activation, such as tanh.

    `units` is None where no setting alone gives the number of such units.
    """

    units: Size | None = None

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton: a unit for each state and action, and one for the first position."""
        enough = algebra.num_states * len(algebra.machine.actions) + 1
        return Prediction(
            "yes",
            "one unit for each pair of a state and a symbol's action, saturated where that symbol "
            "was just read in that state; saturation removes small errors",
            SATURATION,
            () if self.units is None else (self.units.at_least(enough),),
            robust="yes",
        )


@dataclass(frozen=True, kw_only=True)
class Clamped(Recurrence):
    """A stack of layers whose coordinates are each clamped between two bounds (MinMax).

    The maps of one coordinate are the identity, constants, and h -> max(min(r, h), s). They are
    closed under composition, and each equals its own square. So for every word w, the states of a
    layer after w, w w, w w w, ... are equal from the second on, as soon as its inputs repeat
    themselves; by induction over the layers, those of the stack settle. Every transition monoid is
    aperiodic: a stack computes star-free languages only. A coordinate whose bounds are equal is
    reset, one whose bounds are far apart is unchanged; by Krohn and Rhodes (1965), a cascade of
    resets does every aperiodic monoid.
    """

    layers: Size

    def predict(self, algebra: Algebra) -> Prediction:
        """Aperiodic monoids."""
        return settling(
            algebra,
            "a map that clamps coordinates equals its own square, so the states after the powers "
            "of any word settle",
            OWN,
        ) or cascade(algebra, self.layers, is_trivial, "trivial", CASCADE)


@dataclass(frozen=True, kw_only=True)
class Attention(Recurrence):
    """Softmax attention of constant depth and logarithmic precision: there is no recurrent state.

    What such a model remembers grows with the word.
    """

    def predict(self, algebra: Algebra) -> Prediction:
        """Tasks in TC0 at most."""
        return within_tc0(algebra)
