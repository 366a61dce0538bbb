"""Classes of recurrence: what one layer's transition is, and the rule of what it can track.

Three arguments carry most of the rules.

*Averaging.* Let a linear model track a group, let all products of its operators be bounded, and
let its readout be right by a margin. The closure of the set of products is a compact group.
Averaging over its elements that represent the identity of the tracked group turns model and
readout into a representation of that group, with blocks no larger and with rank(I - A(x)) no
larger. So a bound on the representations of the group is a bound on every such model, and a
representation that meets the bound is a construction.

*Commuting.* If all operators commute, two words with the same number of each symbol lead to the
same state.

*Powers.* Some power of an orthogonal operator is arbitrarily close to the identity, so no state is
ever forgotten. A sum of powers of positive gains changes its sign a bounded number of times, so
along one repeated symbol the labels are constant from some position on.

No module here imports numpy or torch: a model's settings name their class at no cost.
"""

from statetrack.algebra.prediction import Size
from statetrack.algebra.recurrences.base import LinearRecurrence, Recurrence
from statetrack.algebra.recurrences.free import Blocks, Dense, Factored, OneHotTimesDiagonal
from statetrack.algebra.recurrences.gains import (
    ComplexLayers,
    Diagonal,
    PositiveLayers,
    SignedLayers,
    TimeInvariantLayers,
    UnitLayers,
)
from statetrack.algebra.recurrences.nonlinear import Attention, Clamped, Saturating
from statetrack.algebra.recurrences.rank_one import (
    DiagonalMinusRankOne,
    Householder,
    HouseholderProduct,
)
from statetrack.algebra.recurrences.undecided import Undecided, UndecidedLinear

__all__ = [
    "Attention",
    "Blocks",
    "Clamped",
    "ComplexLayers",
    "Dense",
    "Diagonal",
    "DiagonalMinusRankOne",
    "Factored",
    "Householder",
    "HouseholderProduct",
    "LinearRecurrence",
    "OneHotTimesDiagonal",
    "PositiveLayers",
    "Recurrence",
    "Saturating",
    "SignedLayers",
    "Size",
    "TimeInvariantLayers",
    "Undecided",
    "UndecidedLinear",
    "UnitLayers",
]
