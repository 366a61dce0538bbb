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
ever forgotten.

*Order.* Let every coordinate of every layer's state be a non-decreasing function of its own last
value, for given inputs: h_t = phi_t(h_{t-1}), such as a h + b with a >= 0, or a clamp. phi_t may
depend on the layer's inputs at t and at a few positions before, by arithmetic, roots, exp and erf,
of which all norms, gates and MLPs here are made. Read u w^n v for growing n, and take every number
of the network at a fixed place of the word, counted from its end, as a sequence in n.
Claim: of two of them, one is the larger from some n on, or they are equal from some n on. So the
label that is answered after u w^n v is the same from some n on. Proof. All these functions are
definable in one o-minimal structure (Wilkie 1999, doi:10.1007/s000290050052). There a condition on
one number holds on finitely many intervals, whose ends are definable from the parameters. So if the
claim holds for all sequences definable from some, and h can be compared with each of them, it holds
for all that are definable from these and h. The inputs of the first layer at a fixed place of w are
constants. Let h(n + 1) = phi_n(h(n)) over one period, phi_n being definable from sequences found
before, and f be one of these. The sign of phi_n(f(n)) - f(n + 1) is constant from some n on. If it
is not negative, h >= f at one such n implies phi_n(h(n)) >= phi_n(f(n)) >= f(n + 1), so h >= f from
there on, or h < f for all of them; likewise if it is negative. So coordinates can be added one by
one, layer by layer. This needs no bound on states, no margin and no rounding. If some a is
negative, two periods have a factor of a(n + 1) a(n) >= 0: a layer of real gains can double the
period of the answers, and no more.

*Contraction.* Let the operator of a word have no eigenvalue of modulus 1 other than 1, and let the
terms that are added leave out its eigenvectors of 1. Then along w^n the states of a layer
converge exponentially, if its inputs do, and outputs are Lipschitz functions of them, since norms
have an epsilon. By induction over the layers, the logits after u w^n v converge, which labels that
differ by a margin cannot.

*Counting under a fixed operator.* Let one layer's state be h_t = L h_{t-1} + B u_t with the same
diagonal L at every position, |L| <= 1, and the answer definable from h_t and the last symbols. Take
two words of one length, a word e that acts as the identity on some states and a word g that
permutes them, of order m > 1. Read k times g among many e, then a word that tells states apart.
Far apart, coordinates with |L| < 1 forget all but the last words. Where L = 1, h = t b + k v + c
with t the number of words; where |L| = 1 otherwise, let the positions of g be such that L to their
power is near 1: h is k v' + eta with a small eta, which other positions near these move through a
set that is dense in some open set, the same for every k from some k on. For every k and all eta
outside a set without interior, the answer is the same from some t on, for all eta near it
(o-minimality again); there is one eta that is outside for all k (Baire). With that eta, the answer
as a function of k is the same from some k on, while the label has period m. In the same way the
answer to two words a and b that are read far apart among many e does not depend on which is first:
h and eta are those of their numbers.

*One layer of gains that depend on the input* tracks no group that is not abelian. Let x and y be
words with x y and y x different in the group, each begun and ended by as many symbols as a
convolution spans, so that gains do not depend on what is next to them. Gains commute: the operators
of x y and of y x have the same diagonal L. Let N be the order of the group. The words
x y (y x)^(N - 1) and (y x)^N have the same length and the same diagonal L^N; the second acts as the
identity and the first does not. So *Counting under a fixed operator* holds for them.

No module here imports numpy or torch: a model's settings name their class at no cost.
"""

from statetrack.algebra.prediction import Size
from statetrack.algebra.recurrences.affine import Affine
from statetrack.algebra.recurrences.base import LinearRecurrence, Recurrence
from statetrack.algebra.recurrences.free import Blocks, Dense, Factored
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
from statetrack.algebra.recurrences.one_hot import OneHotTimesDiagonal
from statetrack.algebra.recurrences.rank_one import (
    DiagonalMinusRankOne,
    Heads,
    Householder,
    HouseholderProduct,
)
from statetrack.algebra.recurrences.undecided import Undecided, UndecidedLinear
from statetrack.algebra.recurrences.unit_vectors import TransitionMatrices

__all__ = [
    "Affine",
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
