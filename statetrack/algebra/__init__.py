"""The algebra of a task, and what it predicts of models before any training."""

from statetrack.algebra.analysing import Algebra, Irreducibles, MonoidFacts, analyse
from statetrack.algebra.complexity import Complexity
from statetrack.algebra.monoid import Budget
from statetrack.algebra.prediction import Prediction
from statetrack.algebra.recurrences import LinearRecurrence, Recurrence, Size
from statetrack.algebra.subgroups import Subgroup

__all__ = [
    "Algebra",
    "Budget",
    "Complexity",
    "Irreducibles",
    "LinearRecurrence",
    "MonoidFacts",
    "Prediction",
    "Recurrence",
    "Size",
    "Subgroup",
    "analyse",
]
