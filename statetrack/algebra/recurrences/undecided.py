"""Recurrences for which there is no rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction
from statetrack.algebra.recurrences.base import OWN, LinearRecurrence, Recurrence, robustness

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra

UNKNOWN = Prediction("unknown", "no rule for this recurrence", OWN)


@dataclass(frozen=True, kw_only=True)
class Undecided(Recurrence):
    """A recurrence that is not linear in the state, or attention (`state=False`)."""

    state: bool = True

    @property
    def has_state(self) -> bool:
        """As it was said."""
        return self.state

    def predict(self, algebra: Algebra) -> Prediction:
        """Unknown."""
        return UNKNOWN


@dataclass(frozen=True, kw_only=True)
class UndecidedLinear(LinearRecurrence):
    """A recurrence that is linear in the state, with any transition."""

    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """Unknown, but for robustness."""
        return replace(UNKNOWN, robust=robustness(algebra))
