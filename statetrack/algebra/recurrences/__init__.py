"""Classes of recurrence: what one layer's transition is, and the rule of what it can track.

These arguments carry most of the rules; docs/proofs.md has them in full.

*Averaging.* Let a linear model track a group, let all products of its operators be bounded, and
let its readout be right by a margin. Averaging over limits of products that represent the identity
of the group makes it a representation of the group, with blocks and rank(I - A(x)) no larger. So a
bound on the representations of the group is a bound on every such model, and a representation that
meets the bound is a construction.

*Commuting.* If all operators commute, two words with the same number of each symbol lead to the
same state.

*Powers.* Some power of an orthogonal operator is arbitrarily close to the identity, so no state is
ever forgotten.

*Order.* Let every coordinate of every layer's state be a non-decreasing function of its own last
value, for given inputs, such as a h + b with a >= 0, or a clamp. Then the label that is answered
after u w^n v is the same from some n on, without any bound on states, margin or rounding
(o-minimality: Wilkie 1999, doi:10.1007/s000290050052). A layer of real gains can double the period
of the answers, and no more.

*Contraction.* Let the operator of a word have no eigenvalue of modulus 1 other than 1, and let the
terms that are added leave out its eigenvectors of 1. Then along w^n the logits after u w^n v
converge, which labels that differ by a margin cannot.

*Counting under a fixed operator.* One layer under the same diagonal at every position does not
count one word among others of its length, nor tell the order of two that are read far apart.

*One layer of gains that depend on the input* tracks no group that is not abelian.

No module here imports numpy or torch: a model's settings name their class at no cost.
"""

from statetrack.algebra.prediction import Size
from statetrack.algebra.recurrences.alternating import Alternating
from statetrack.algebra.recurrences.base import (
    LinearRecurrence,
    Recurrence,
    Undecided,
    UndecidedLinear,
)
from statetrack.algebra.recurrences.free import (
    Affine,
    Blocks,
    Dense,
    Factored,
    OneHotTimesDiagonal,
    TransitionMatrices,
)
from statetrack.algebra.recurrences.gains import (
    ComplexLayers,
    Diagonal,
    FixedPhaseLayers,
    FixedPositiveLayers,
    PositiveLayers,
    SignedLayers,
    TimeInvariantLayers,
    UnitLayers,
)
from statetrack.algebra.recurrences.nonlinear import Attention, Clamped, Saturating
from statetrack.algebra.recurrences.rank_one import (
    DiagonalMinusRankOne,
    Heads,
    Householder,
    HouseholderProduct,
)

__all__ = [
    "Affine",
    "Alternating",
    "Attention",
    "Blocks",
    "Clamped",
    "ComplexLayers",
    "Dense",
    "Diagonal",
    "DiagonalMinusRankOne",
    "Factored",
    "FixedPhaseLayers",
    "FixedPositiveLayers",
    "Heads",
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
    "TransitionMatrices",
    "Undecided",
    "UndecidedLinear",
    "UnitLayers",
]
