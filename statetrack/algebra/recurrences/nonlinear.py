"""Recurrences that are not linear in the state, and attention, which is no recurrence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import Recurrence, within_tc0

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
            None if self.units is None else enough,
            self.units,
            robust="yes",
        )


@dataclass(frozen=True, kw_only=True)
class Clamped(Recurrence):
    """A state clamped between bounds that the input gives (MinMax)."""

    def predict(self, algebra: Algebra) -> Prediction:
        """Every regular language."""
        return Prediction(
            "yes",
            "every regular language, by the construction of its paper",
            "Ronca 2026, arXiv:2605.06384",
        )


@dataclass(frozen=True, kw_only=True)
class Attention(Recurrence):
    """Softmax attention of constant depth and logarithmic precision: there is no recurrent state.

    What such a model remembers grows with the word.
    """

    def predict(self, algebra: Algebra) -> Prediction:
        """Tasks in TC0 at most."""
        return within_tc0(algebra)
