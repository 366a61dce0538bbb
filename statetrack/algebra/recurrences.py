"""Classes of recurrence: what one layer's transition is, and the rule of what it can track.

Three arguments carry most of the rules.

*Averaging.* Let a linear model track a group, with products of its operators that stay bounded
and a readout that is right by a margin. The closure of its products is a compact group; averaged
over those that stand for the identity, model and readout become a representation of the group
itself, in blocks no larger, turned by no more dimensions. So what the representations of the
group need, every such model needs; and they are a construction.

*Commuting.* Operators that commute give words with the same symbols, in whatever order, the same
state.

*Return.* Powers of an orthogonal operator come back arbitrarily close to the identity, so that
nothing can be forgotten; powers of positive gains never change a sign more than a bounded number
of times, so that nothing can go round.

This module imports nothing that a model's settings could not afford to: no numpy, no torch.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from statetrack.algebra.prediction import Answer, Prediction

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra
    from statetrack.algebra.state_space import Choice
    from statetrack.algebra.subgroups import Subgroup

Additive = Literal["none", "constant", "input"]
Gains = Literal["positive", "real", "complex", "unit"]
Beta = Literal["unit", "double"]

BILINEAR = "Ebrahimi and Memisevic 2025, arXiv:2505.21749"
NEGATIVE = "Grazzi et al. 2024, arXiv:2411.12537"
DELTAPRODUCT = "Siems et al. 2025, arXiv:2502.10297"
POSITIVE_GATES = "Sarrof, Veitsman and Hahn 2024, arXiv:2405.17394"
DIAGONAL_LAYERS = "Shakerinava et al. 2026, arXiv:2603.01959"
CONSTANT_DEPTH = (
    "Merrill and Sabharwal 2023, arXiv:2207.00729; "
    "Merrill, Petty and Sabharwal 2024, arXiv:2404.08819"
)
CASCADE = "Krohn and Rhodes 1965, doi:10.1090/S0002-9947-1965-0188316-1"
SATURATION = "Omlin and Giles 1996, doi:10.1145/235809.235811"
OWN = "own, see statetrack.algebra.recurrences"


@dataclass(frozen=True)
class Size:
    """A setting that gives the size of a recurrence, such as `block_size`, and its value."""

    setting: str
    value: int


class Recurrence(abc.ABC):
    """The class that the recurrence of a model's layers belongs to, with its parameters."""

    @abc.abstractmethod
    def predict(self, algebra: Algebra) -> Prediction:
        """Whether such a recurrence can track the task that an algebra is of, and what it takes."""


class LinearRecurrence(Recurrence):
    """A recurrence whose next state is an affine function of the state, for given inputs."""

    @property
    @abc.abstractmethod
    def structure(self) -> str:
        """What multiplies the state."""

    @property
    @abc.abstractmethod
    def eigenvalues(self) -> str:
        """Where its eigenvalues lie.

        An interval of real numbers such as `(0, 1)`, or `modulus 1`, `modulus <= 1`, `any`.
        """


# --- one layer, with free operators ---


@dataclass(frozen=True, kw_only=True)
class Dense(LinearRecurrence):
    """A free matrix for every symbol: any automaton, with a dimension for each state at most."""

    size: Size
    additive: Additive = "none"
    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """As wide as a faithful representation, or as the labels' Hankel matrix has rank."""
        size, why, source = _linear_width(algebra)
        any_task = Prediction("yes", why, source, size, self.size, robust=_robust(algebra))
        choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.dimensions)
        if not choice or choice.cost > size:
            return any_task
        return replace(
            any_task,
            theorem=f"a real representation that tells the labels apart, of parts of dimension "
            f"{_listed(choice)}" + _no_less(choice),
            source=OWN,
            size=choice.cost,
            smallest=choice.smallest and self.additive == "none" and algebra.machine.complete,
        )


@dataclass(frozen=True, kw_only=True)
class Blocks(LinearRecurrence):
    """Free blocks: those of the parts for a group, and otherwise one that holds all states.

    Where the readout is not linear, less may do than averaging shows.
    """

    size: Size
    additive: Additive = "none"
    linear_readout: bool = True
    structure: str = "blocks of size b"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """As large as the largest part of a representation that tells the labels apart."""
        size, why, source = _linear_width(algebra)
        one_block = Prediction("yes", why, source, size, self.size, robust=_robust(algebra))
        choice = algebra.space and algebra.space.with_smallest_largest(algebra.space.dimensions)
        if not choice or choice.cost > size:
            return one_block
        bounded = self.additive == "none" and algebra.machine.complete
        return replace(
            one_block,
            theorem=f"a block for each part of a real representation that tells the labels apart: "
            f"dimensions {_listed(choice)}" + _no_less(choice),
            source=OWN,
            size=choice.cost,
            smallest=choice.smallest and bounded and self.linear_readout,
        )


@dataclass(frozen=True, kw_only=True)
class Factored(LinearRecurrence):
    """A sum of K terms a b^T, weighted by the symbol: as many as the action is made of."""

    rank: Size
    structure: str = "matrix of rank K"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """As many terms as the action is a sum of."""
        width, _, _ = _linear_width(algebra)
        moves, square = algebra.num_moves, width * width
        if square < moves:
            why, size = f"all matrices of the linear width {width} are made of its square", square
        else:
            why, size = "one term for each pair of a state and the next one", moves
        prediction = Prediction("yes", why, BILINEAR, size, self.rank, robust=_robust(algebra))
        choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.ranks)
        if not choice or choice.cost > size:
            return prediction
        parts = f"the terms that make the parts of dimension {_listed(choice)} of a representation"
        return replace(prediction, theorem=parts, source=OWN, size=choice.cost)


@dataclass(frozen=True, kw_only=True)
class OneHotTimesDiagonal(LinearRecurrence):
    """A column-one-hot matrix times a diagonal one for every symbol: states as unit vectors."""

    state: Size
    structure: str = "one-hot columns x diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton, with a coordinate for each state."""
        return Prediction(
            "yes",
            "one layer whose states are unit vectors simulates any automaton",
            "Terzic et al. 2025, arXiv:2509.22284",
            algebra.num_states,
            self.state,
            robust=_robust(algebra),
        )


# --- delta rules ---


@dataclass(frozen=True, kw_only=True)
class HouseholderProduct(LinearRecurrence):
    """Products of n generalised reflections in each head, I - b k k^T with b from 0 to 1 or 2.

    A product of n turns at most n dimensions, and every orthogonal matrix that turns n is one of
    n reflections (Cartan and Dieudonne). Parts lie in heads of their own. One layer is meant.

    Read out linearly, no fewer do. A readout that is not linear may do with fewer: it can leave
    signs open, as where A5 is generated by half-turns, which up to sign are reflections.
    """

    factors: Size
    beta: Beta
    layers: int
    structure: str = "product of n I - beta k k^T"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """As many factors as a symbol turns dimensions of a part."""
        if self.beta == "unit":
            return _positive_definite(algebra)
        found = _reflections(algebra, self.layers)
        return found if found.size is None else replace(found, given=self.factors)


@dataclass(frozen=True, kw_only=True)
class Householder(LinearRecurrence):
    """One generalised reflection in each head, I - b k k^T with b from 0 to 1 or 2 (DeltaNet)."""

    beta: Beta
    layers: int
    structure: str = "I - beta k k^T"

    @property
    def eigenvalues(self) -> str:
        """Where its eigenvalues lie."""
        return "[0, 1]" if self.beta == "unit" else "[-1, 1]"

    def predict(self, algebra: Algebra) -> Prediction:
        """What one reflection in a head can do of what products of them do."""
        if self.beta == "unit":
            return _positive_definite(algebra)
        found = _reflections(algebra, self.layers)
        alone = replace(found, size=None, smallest=False)
        if found.size is None or found.size == 1:
            return alone
        if _one_is_too_few(algebra, self.layers):
            why = (
                "one layer: a reflection done twice is undone, and a symbol goes round in more "
                "than 2"
            )
            return replace(alone, can="no", theorem=why)
        why = f"{found.size} reflections in one layer are enough, and one may be"
        return replace(alone, can="unknown", theorem=why)


# --- one layer of gains that commute ---


@dataclass(frozen=True, kw_only=True)
class Diagonal(LinearRecurrence):
    """Free gains for every symbol: they commute, and count symbols.

    Positive ones, in (0, 1), count up to a threshold; those of either sign also parities; complex
    ones modulo any number; those of modulus 1, rotations of planes, too, but forget nothing.
    """

    gains: Gains
    size: Size
    additive: Additive = "none"

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
        """Where its eigenvalues lie."""
        return {
            "positive": "(0, 1)",
            "real": "(-inf, inf)",
            "complex": "any",
            "unit": "modulus 1",
        }[self.gains]

    def predict(self, algebra: Algebra) -> Prediction:
        """Characters of an abelian group, and counts up to a threshold."""
        robust = _robust(algebra)
        refused = _refused_group(algebra, self.gains) or (
            self._refused_without_terms(algebra) if self.additive == "none" else None
        )
        if refused:
            return replace(refused, robust=robust)
        if self._counts(algebra):
            return replace(self._counting(algebra), robust=robust)
        if self.additive == "input" and self.gains != "unit" and _only_resets(algebra):
            return Prediction(
                "yes",
                "every symbol keeps the state or sets it: a gain of 1, or of 0 and an added state",
                f"Dankowiakowski and Ronca 2025; {OWN}",
                algebra.num_states,
                self.size,
                robust=robust,
            )
        return Prediction("unknown", "no rule decides it", OWN, robust=robust)

    def _refused_without_terms(self, algebra: Algebra) -> Prediction | None:
        """No, where the order of symbols counts, or where something must be forgotten for ever."""
        if algebra.order_matters:
            return Prediction("no", "the order of symbols counts, and gains commute", BILINEAR)
        if self.gains == "unit" and algebra.machine.complete and not algebra.is_group:
            return Prediction("no", "a symbol cannot be undone, and rotations come back", OWN)
        return None

    def _counts(self, algebra: Algebra) -> bool:
        """Whether labels depend on symbol counts alone, in a way that such gains follow."""
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
        """Yes: characters for an abelian group; for thresholds, powers of gains that differ."""
        if algebra.space is None:
            return Prediction(
                "yes",
                "labels depend on counts of symbols, up to a threshold and modulo the order of a "
                "root of unity: sums of powers of gains separate these",
                OWN,
            )
        each = 2 if self.gains in ("complex", "unit") else 1
        costs = [each] * len(algebra.space.parts)
        choice = algebra.space.with_smallest_sum(costs)
        if choice is None:
            choice = algebra.space.with_smallest_largest(algebra.space.dimensions)
            assert choice is not None, "all parts together read every label"
            choice = replace(choice, cost=each * len(choice.parts), smallest=False)
        return Prediction(
            "yes",
            f"characters of the abelian group tell all states apart: {len(choice.parts)} of them",
            BILINEAR,
            choice.cost,
            self.size,
            smallest=choice.smallest and algebra.machine.complete,
        )


# --- stacks of layers with gains, gates and additive terms ---


@dataclass(frozen=True, kw_only=True)
class PositiveLayers(LinearRecurrence):
    """Stacked gains in [0, 1] with input-dependent additive terms (Mamba, GLA, mLSTM)."""

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "(0, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """Star-free languages, by a cascade of resets."""
        refused = _refused_group(algebra, "positive")
        if refused:
            return replace(refused, robust=_robust(algebra), source=f"{POSITIVE_GATES}; {NEGATIVE}")
        return _cascade(
            algebra, self.layers, lambda group: group.order == 1, "star-free", POSITIVE_GATES
        )


@dataclass(frozen=True, kw_only=True)
class SignedLayers(LinearRecurrence):
    """Stacked gains in [-1, 1]: periods are powers of 2, whatever the number of layers."""

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "(-1, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """Cascades of resets and 2-groups."""
        for group in _seen_groups(algebra):
            if not _is_two_group(group):
                return Prediction(
                    "no",
                    f"{group.name} has an element of odd order; stacked signs only double periods",
                    f"{NEGATIVE}; {OWN}",
                    robust=_robust(algebra),
                )
        if algebra.is_group and algebra.monoid and algebra.monoid.subgroups[0].squares_length:
            return Prediction(
                "yes",
                "a series of subgroups, each normal in the one before, has an elementary abelian "
                "2-group as a factor for each layer",
                f"{DIAGONAL_LAYERS}; {OWN}",
                algebra.monoid.subgroups[0].squares_length,
                self.layers,
                robust=_robust(algebra),
            )
        return _cascade(
            algebra, self.layers, _is_two_group, "built of resets and 2-groups", CASCADE
        )


@dataclass(frozen=True, kw_only=True)
class ComplexLayers(LinearRecurrence):
    """Stacked complex gains that depend on the input (Mamba-3): a layer for each abelian factor."""

    layers: Size
    structure: str = "complex diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Cascades of resets and solvable groups."""
        return _abelian_series(algebra, self.layers) or _cascade(
            algebra, self.layers, lambda group: group.solvable, "solvable", CASCADE
        )


@dataclass(frozen=True, kw_only=True)
class UnitLayers(LinearRecurrence):
    """Stacked complex gains of modulus 1 that depend on the input (AUSSM)."""

    layers: Size
    structure: str = "diagonal"
    eigenvalues: str = "modulus 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Solvable groups, with a layer for each abelian factor."""
        unknown = Prediction("unknown", "no rule decides it", OWN, robust=_robust(algebra))
        return _abelian_series(algebra, self.layers) or unknown


@dataclass(frozen=True, kw_only=True)
class TimeInvariantLayers(LinearRecurrence):
    """Stacked gains that do not depend on the input (S4D, LRU, linear attention): within TC0."""

    structure: str = "fixed diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """No group that is not solvable, unless TC0 is NC1."""
        return replace(_within_tc0(algebra), robust=_robust(algebra))


@dataclass(frozen=True, kw_only=True)
class DiagonalMinusRankOne(LinearRecurrence):
    """A diagonal matrix minus one of rank one, both given by the input (RWKV-7)."""

    layers: Size
    structure: str = "diag(w) - (a kappa) kappa^T"
    eigenvalues: str = "(-0.46, 1)"

    def predict(self, algebra: Algebra) -> Prediction:
        """Every regular language."""
        return Prediction(
            "yes",
            "every regular language in some number of layers, as its paper proves",
            "Peng et al. 2025, arXiv:2503.14456",
            given=self.layers,
            robust=_robust(algebra),
        )


@dataclass(frozen=True, kw_only=True)
class UndecidedLinear(LinearRecurrence):
    """Linear in the state: no rule says what it can track, only that it cannot correct errors."""

    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """Nothing but that it cannot correct errors."""
        return replace(_undecided(), robust=_robust(algebra))


# --- recurrences that are not linear in the state, and attention ---


@dataclass(frozen=True, kw_only=True)
class Saturating(Recurrence):
    """Units that saturate: one for every state and symbol, and one that tells the first step.

    `units` is None where the number of such units is not what a setting gives.
    """

    units: Size | None = None

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton, with a unit for each state and symbol."""
        enough = algebra.num_states * len(algebra.machine.actions) + 1
        return Prediction(
            "yes",
            "a unit for each state and different symbol is on after that symbol was read there; "
            "saturation takes small errors away",
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
            "yes", "every regular language, as its paper proves", "Ronca 2026, arXiv:2605.06384"
        )


@dataclass(frozen=True, kw_only=True)
class Attention(Recurrence):
    """Softmax attention of constant depth and logarithmic precision: within TC0.

    It is no recurrence: what is remembered grows with the word.
    """

    def predict(self, algebra: Algebra) -> Prediction:
        """No group that is not solvable, unless TC0 is NC1."""
        return _within_tc0(algebra)


@dataclass(frozen=True, kw_only=True)
class Undecided(Recurrence):
    """A recurrence, not linear in the state, for which there is no rule."""

    def predict(self, algebra: Algebra) -> Prediction:
        """Nothing."""
        return _undecided()


# --- what rules share ---


def _linear_width(algebra: Algebra) -> tuple[int, str, str]:
    """Dimensions that are enough for any automaton, with the reason and its source."""
    states, linear = algebra.num_states, algebra.linear_dimension
    if linear is not None and linear < states:
        return linear, "the rank of the labels' Hankel matrix", "Carlyle and Paz 1971"
    return states, "states as unit vectors, symbols as their transition matrices", BILINEAR


def _no_less(choice: Choice) -> str:
    return "; no less does, while products stay bounded" if choice.smallest else ""


def _listed(choice: Choice) -> str:
    """`3`, or `2 + 3`, or, of more than six, `1 + 2 + 3` each once."""
    sizes = sorted(part.dimension for part in choice.parts)
    return " + ".join(map(str, sizes if len(sizes) <= 6 else sorted(set(sizes))))


def _robust(algebra: Algebra) -> Answer:
    """No, for a recurrence that is affine in the state, where a word leaves two states as they are.

    Let f be the affine map of that word, and let it take two disjoint compact sets of states each
    into its own interior. Then it contracts, towards a single point, which would lie in both
    (Dankowiakowski and Ronca 2025, Theorem 3, for a symbol; Chung, Choi and Kim 2026,
    arXiv:2605.07755, Theorem 1, for a word).
    """
    return "no" if algebra.machine.holds_two_states else "unknown"


def _seen_groups(algebra: Algebra) -> Sequence[Subgroup]:
    """The groups in the monoid that labels show, without the trivial ones."""
    subgroups = algebra.monoid.subgroups if algebra.monoid else ()
    return [group for group in subgroups if group.seen and group.order > 1]


def _refused_group(algebra: Algebra, gains: Gains) -> Prediction | None:
    """No, where labels show a group that such gains have no representation of."""
    for group in _seen_groups(algebra):
        if gains == "positive":
            return Prediction("no", f"{group.name} goes round; positive gains never do", NEGATIVE)
        if not group.abelian:
            return Prediction("no", f"{group.name} is not abelian, and gains commute", BILINEAR)
        if gains == "real" and group.exponent is not None and group.exponent > 2:
            return Prediction(
                "no", f"{group.name} goes round in more than 2; signs never do", NEGATIVE
            )
    if gains == "positive" and algebra.machine.a_symbol_goes_round:
        return Prediction("no", "a symbol goes round; positive gains never do", NEGATIVE)
    return None


def _reflections(algebra: Algebra, layers: int) -> Prediction:
    """How many reflections a head takes: as many as a symbol turns dimensions of a part."""
    choice = algebra.space and algebra.space.with_smallest_largest(algebra.space.turned)
    if not choice:
        return Prediction(
            "unknown",
            "only groups of not too many states have a rule: their parts must be turned",
            DELTAPRODUCT,
            robust=_robust(algebra),
        )
    factors = max(choice.cost, 1)
    return Prediction(
        "yes",
        f"one layer: no symbol turns more than {factors} dimensions of a part, of parts of "
        f"dimension {_listed(choice)}; no fewer for a linear readout",
        f"{DELTAPRODUCT}; {NEGATIVE}",
        factors,
        smallest=factors == 1 or (factors == 2 and _one_is_too_few(algebra, layers)),
        robust=_robust(algebra),
    )


def _positive_definite(algebra: Algebra) -> Prediction:
    """Symmetric operators with eigenvalues in [0, 1]: powers of one settle."""
    if algebra.machine.a_symbol_goes_round:
        return Prediction(
            "no",
            "a symbol goes round; powers of a matrix without negative eigenvalues settle",
            NEGATIVE,
            robust=_robust(algebra),
        )
    return Prediction("unknown", "no rule decides it", NEGATIVE, robust=_robust(algebra))


def _one_is_too_few(algebra: Algebra, layers: int) -> bool:
    """Whether one layer must follow a symbol that, read twice, does not leave states in place."""
    beyond_two = any((each[each] != range(len(each))).any() for each in algebra.machine.actions)
    return beyond_two and algebra.machine.complete and layers == 1


def _only_resets(algebra: Algebra) -> bool:
    """Whether every symbol leaves all states where they are, or leads all to one."""
    identity = list(range(len(algebra.machine.delta)))
    return all(each == identity or len(set(each)) == 1 for each in algebra.machine.actions.tolist())


def _is_two_group(group: Subgroup) -> bool:
    return group.order & (group.order - 1) == 0


def _abelian_series(algebra: Algebra, layers: Size) -> Prediction | None:
    """What the derived length decides: all groups, and no where one is not solvable."""
    for group in _seen_groups(algebra):
        if not group.solvable:
            return Prediction(
                "no",
                f"{group.name} is not solvable: no series of abelian factors, however many layers",
                DIAGONAL_LAYERS,
                robust=_robust(algebra),
            )
    if not algebra.is_group or algebra.monoid is None:
        return None
    return Prediction(
        "yes",
        "a series of subgroups, each normal in the one before, has an abelian factor for each "
        "layer",
        DIAGONAL_LAYERS,
        max(algebra.monoid.derived_length or 0, 1),
        layers,
        smallest=all(group.seen for group in algebra.monoid.subgroups),
        robust=_robust(algebra),
    )


def _cascade(
    algebra: Algebra, layers: Size, allowed: Callable[[Subgroup], bool], what: str, source: str
) -> Prediction:
    """Yes, where the monoid decomposes into resets and groups that one layer each can follow."""
    robust = _robust(algebra)
    if algebra.monoid is not None and all(allowed(group) for group in algebra.monoid.subgroups):
        return Prediction(
            "yes",
            f"the monoid is {what}: a cascade with one layer for each of its factors",
            source if source == CASCADE else f"{source}; {CASCADE}",
            1 if _only_resets(algebra) else None,
            layers,
            robust=robust,
        )
    return Prediction("unknown", "no rule decides it", OWN, robust=robust)


def _within_tc0(algebra: Algebra) -> Prediction:
    """Attention, of constant depth and logarithmic precision: no more than TC0."""
    for group in _seen_groups(algebra):
        if not group.solvable:
            return Prediction(
                "no",
                f"{group.name} makes the task complete for NC1, and the model stays in TC0: "
                "impossible unless these are equal",
                CONSTANT_DEPTH,
            )
    return Prediction("unknown", "in TC0, as the task may be: no rule decides it", CONSTANT_DEPTH)


def _undecided() -> Prediction:
    """No rule at all."""
    return Prediction("unknown", "no rule for this recurrence", OWN)
