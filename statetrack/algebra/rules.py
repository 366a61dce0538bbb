"""The rules of prediction: one function for each class of recurrences, with its theorem.

Three arguments carry most of them.

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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from statetrack.algebra.analysing import Algebra
from statetrack.algebra.prediction import Answer, Prediction
from statetrack.algebra.state_space import Choice
from statetrack.algebra.subgroups import Subgroup

Rule = Callable[[Algebra, Mapping[str, Any]], Prediction]
Gains = Literal["positive", "real", "complex", "unit"]

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
OWN = "own, see statetrack.algebra.rules"


# --- one layer of a linear recurrence, with free operators ---


def full_matrices(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """A free matrix for every symbol: any automaton, with a dimension for each state at most."""
    size, why, source = _linear_width(algebra)
    any_task = Prediction("yes", why, source, size, "hidden", robust=_robust(algebra))
    choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.dimensions)
    if not choice or choice.cost > size:
        return any_task
    bounded = settings.get("additive", "none") == "none" and algebra.machine.complete
    return replace(
        any_task,
        theorem=f"a real representation that tells the labels apart, of parts of dimension "
        f"{_listed(choice)}" + _no_less(choice),
        source=OWN,
        size=choice.cost,
        smallest=choice.smallest and bounded,
    )


def whole_products(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """The product of free matrices, read as a whole: as wide as a full matrix need be."""
    return replace(full_matrices(algebra, settings), size_of="size")


def blocks(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Free blocks: those of the parts for a group, and otherwise one that holds all states."""
    size, why, source = _linear_width(algebra)
    one_block = Prediction("yes", why, source, size, "block_size", robust=_robust(algebra))
    choice = algebra.space and algebra.space.with_smallest_largest(algebra.space.dimensions)
    if not choice or choice.cost > size:
        return one_block
    bounded = settings.get("additive", "none") == "none" and algebra.machine.complete
    return replace(
        one_block,
        theorem=f"a block for each part of a real representation that tells the labels apart: "
        f"dimensions {_listed(choice)}" + _no_less(choice),
        source=OWN,
        size=choice.cost,
        smallest=choice.smallest and bounded,
    )


def read_freely(rule: Rule) -> Rule:
    """A rule for a model whose readout is not linear: then less may do than averaging shows."""

    def freely(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
        return replace(rule(algebra, settings), smallest=False)

    return freely


def factored(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """A sum of K terms a b^T, weighted by the symbol: as many as the action is made of."""
    width, _, _ = _linear_width(algebra)
    moves, square = algebra.num_moves, width * width
    if square < moves:
        why, size = f"all matrices of the linear width {width} are made of its square", square
    else:
        why, size = "one term for each pair of a state and the next one", moves
    prediction = Prediction("yes", why, BILINEAR, size, "rank", robust=_robust(algebra))
    choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.ranks)
    if not choice or choice.cost > size:
        return prediction
    parts = f"the terms that make the parts of dimension {_listed(choice)} of a representation"
    return replace(prediction, theorem=parts, source=OWN, size=choice.cost)


def householder_products(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Products of n generalised reflections in each head, I - b k k^T with b from 0 to 2.

    A product of n turns at most n dimensions, and every orthogonal matrix that turns n is one of
    n reflections (Cartan and Dieudonne). Parts lie in heads of their own. One layer is meant.

    Read out linearly, no fewer do. A readout that is not linear may do with fewer: it can leave
    signs open, as where A5 is generated by half-turns, which up to sign are reflections.
    """
    if settings.get("beta", "double") == "unit":
        return _positive_definite(algebra)
    choice = algebra.space and algebra.space.with_smallest_largest(algebra.space.turned)
    if not choice:
        return Prediction(
            "unknown",
            "only groups of not too many states have a rule: their parts must be turned",
            DELTAPRODUCT,
            robust=_robust(algebra),
        )
    factors = max(choice.cost, 1)
    least = factors == 1 or (factors == 2 and _one_is_too_few(algebra, settings))
    return Prediction(
        "yes",
        f"one layer: no symbol turns more than {factors} dimensions of a part, of parts of "
        f"dimension {_listed(choice)}; no fewer for a linear readout",
        f"{DELTAPRODUCT}; {NEGATIVE}",
        factors,
        "householders",
        smallest=least,
        robust=_robust(algebra),
    )


def one_householder(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """One generalised reflection in each head (DeltaNet); `beta` says how far b goes."""
    if settings.get("beta", "unit") == "unit":
        return _positive_definite(algebra)
    products = householder_products(algebra, settings)
    alone = replace(products, size=None, size_of=None, smallest=False)
    if products.size is None or products.size == 1:
        return alone
    if _one_is_too_few(algebra, settings):
        why = "one layer: a reflection done twice is undone, and a symbol goes round in more than 2"
        return replace(alone, can="no", theorem=why)
    why = f"{products.size} reflections in one layer are enough, and one may be"
    return replace(alone, can="unknown", theorem=why)


def one_hot_times_diagonal(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """A column-one-hot matrix times a diagonal one for every symbol: states as unit vectors."""
    return Prediction(
        "yes",
        "one layer whose states are unit vectors simulates any automaton",
        "Terzic et al. 2025, arXiv:2509.22284",
        algebra.num_states,
        "state",
        robust=_robust(algebra),
    )


# --- one layer of gains that commute ---


def positive_gains(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Gains in (0, 1): counts up to a threshold."""
    return _gains(algebra, settings, "positive")


def real_gains(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Gains of either sign: counts up to a threshold, and parities."""
    return _gains(algebra, settings, "real")


def complex_gains(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Complex gains: counts up to a threshold, and modulo any number."""
    return _gains(algebra, settings, "complex")


def rotations(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Rotations of planes: counts modulo any number, and nothing is ever forgotten."""
    return _gains(algebra, settings, "unit")


def _gains(algebra: Algebra, settings: Mapping[str, Any], gains: Gains) -> Prediction:
    additive = settings.get("additive", "none")
    robust = _robust(algebra)
    refused = _refused_group(algebra, gains) or (
        _refused_without_terms(algebra, gains) if additive == "none" else None
    )
    if refused:
        return replace(refused, robust=robust)
    if _counts(algebra, gains):
        return replace(_counting(algebra, gains), robust=robust)
    if additive == "input" and gains != "unit" and _only_resets(algebra):
        return Prediction(
            "yes",
            "every symbol keeps the state or sets it: a gain of 1, or of 0 and an added state",
            f"Dankowiakowski and Ronca 2025; {OWN}",
            algebra.num_states,
            "hidden",
            robust=robust,
        )
    return Prediction("unknown", "no rule decides it", OWN, robust=robust)


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


def _refused_without_terms(algebra: Algebra, gains: Gains) -> Prediction | None:
    """No, where the order of symbols counts, or where something must be forgotten for ever."""
    if algebra.order_matters:
        return Prediction("no", "the order of symbols counts, and gains commute", BILINEAR)
    if gains == "unit" and algebra.machine.complete and not algebra.is_group:
        return Prediction("no", "a symbol cannot be undone, and rotations come back", OWN)
    return None


def _counts(algebra: Algebra, gains: Gains) -> bool:
    """Whether labels depend on symbol counts alone, in a way that such gains follow."""
    monoid = algebra.monoid
    if monoid is None or not monoid.commutative:
        return False
    if gains == "unit":
        return algebra.is_group
    if gains == "positive":
        return monoid.aperiodic
    exponents = [group.exponent for group in monoid.subgroups]
    return gains == "complex" or all(each is not None and each <= 2 for each in exponents)


def _counting(algebra: Algebra, gains: Gains) -> Prediction:
    """Yes: characters for an abelian group; for thresholds, powers of gains that differ."""
    if algebra.space is None:
        return Prediction(
            "yes",
            "labels depend on counts of symbols, up to a threshold and modulo the order of a "
            "root of unity: sums of powers of gains separate these",
            OWN,
        )
    each = 2 if gains in ("complex", "unit") else 1
    costs = [each] * len(algebra.space.parts)
    choice = algebra.space.with_smallest_sum(costs)
    if choice is None:
        choice = algebra.space.with_smallest_largest(algebra.space.dimensions)
        assert choice is not None, "all parts together read every label"
        choice = Choice(choice.parts, each * len(choice.parts), smallest=False)
    return Prediction(
        "yes",
        f"characters of the abelian group tell all states apart: {len(choice.parts)} of them",
        BILINEAR,
        choice.cost,
        "hidden",
        smallest=choice.smallest and algebra.machine.complete,
    )


def _only_resets(algebra: Algebra) -> bool:
    """Whether every symbol leaves all states where they are, or leads all to one."""
    identity = list(range(len(algebra.machine.delta)))
    return all(each == identity or len(set(each)) == 1 for each in algebra.machine.actions.tolist())


# --- stacks of layers with gains, gates and additive terms ---


def positive_layers(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Stacked gains in [0, 1] with input-dependent additive terms (Mamba, GLA, mLSTM)."""
    if settings.get("eigenvalues") == "signed":
        return _signed_layers(algebra)
    refused = _refused_group(algebra, "positive")
    if refused:
        return replace(refused, robust=_robust(algebra), source=f"{POSITIVE_GATES}; {NEGATIVE}")
    return _cascade(algebra, lambda group: group.order == 1, "star-free", POSITIVE_GATES)


def _signed_layers(algebra: Algebra) -> Prediction:
    """Stacked gains in [-1, 1]: periods are powers of 2, whatever the number of layers."""
    for group in _seen_groups(algebra):
        if group.order & (group.order - 1):
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
            "layers",
            robust=_robust(algebra),
        )
    return _cascade(algebra, _is_two_group, "built of resets and 2-groups", CASCADE)


def gains_at_a_fixed_angle(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Stacked gains whose size depends on the input and whose angle does not (HGRN)."""
    if settings.get("phase") == "none":
        return positive_layers(algebra, settings)
    return affine(algebra, settings)


def complex_layers(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Stacked complex gains that depend on the input (Mamba-3): a layer for each abelian factor."""
    if settings.get("turned") == 0:
        return positive_layers(algebra, settings)
    decided = _abelian_series(algebra)
    return decided or _cascade(algebra, lambda group: group.solvable, "solvable", CASCADE)


def unit_layers(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Stacked complex gains of modulus 1 that depend on the input (AUSSM)."""
    unknown = Prediction("unknown", "no rule decides it", OWN, robust=_robust(algebra))
    return _abelian_series(algebra) or unknown


def _abelian_series(algebra: Algebra) -> Prediction | None:
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
        "layers",
        smallest=all(group.seen for group in algebra.monoid.subgroups),
        robust=_robust(algebra),
    )


def constant_depth(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
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


def time_invariant(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Recurrences whose gains do not depend on the input: no more than TC0 either."""
    return replace(constant_depth(algebra, settings), robust=_robust(algebra))


def _cascade(
    algebra: Algebra, allowed: Callable[[Subgroup], bool], what: str, source: str
) -> Prediction:
    """Yes, where the monoid decomposes into resets and groups that one layer each can follow."""
    robust = _robust(algebra)
    if algebra.monoid is not None and all(allowed(group) for group in algebra.monoid.subgroups):
        return Prediction(
            "yes",
            f"the monoid is {what}: a cascade with one layer for each of its factors",
            source if source == CASCADE else f"{source}; {CASCADE}",
            1 if _only_resets(algebra) else None,
            "layers",
            robust=robust,
        )
    return Prediction("unknown", "no rule decides it", OWN, robust=robust)


def _is_two_group(group: Subgroup) -> bool:
    return group.order & (group.order - 1) == 0


# --- recurrences that are not linear in the state ---


def saturating(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Units that saturate: one for every state and symbol, and one that tells the first step."""
    return Prediction(
        "yes",
        "a unit for each state and different symbol is on after that symbol was read there; "
        "saturation takes small errors away",
        SATURATION,
        algebra.num_states * len(algebra.machine.actions) + 1,
        "hidden",
        robust="yes",
    )


def saturating_inside(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """A stack with a layer of units that saturate among others: no size is given."""
    if "s" not in settings.get("pattern", "s"):
        return positive_layers(algebra, settings)
    return replace(saturating(algebra, settings), size=None, size_of=None)


def saturating_behind_a_gate(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Units behind a gate that the state sets: open, they are units that saturate."""
    if settings.get("activation", "tanh") != "tanh":
        return undecided(algebra, settings)
    return saturating(algebra, settings)


def linear_by_its_paper(source: str) -> Rule:
    """A rule for a linear recurrence whose paper proves that layers of it do any automaton."""

    def rule(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
        why = "every regular language in some number of layers, as its paper proves"
        return Prediction("yes", why, source, size_of="layers", robust=_robust(algebra))

    return rule


def nonlinear_by_its_paper(source: str) -> Rule:
    """A rule for another recurrence whose paper proves that it does every regular language."""

    def rule(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
        return Prediction("yes", "every regular language, as its paper proves", source)

    return rule


def undecided(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """No rule at all."""
    return Prediction("unknown", "no rule for this recurrence", OWN)


def affine(algebra: Algebra, settings: Mapping[str, Any]) -> Prediction:
    """Affine in the state: no rule says what it can track, only that it cannot correct errors."""
    return Prediction("unknown", "no rule for this recurrence", OWN, robust=_robust(algebra))


# --- what rules share ---


def _linear_width(algebra: Algebra) -> tuple[int, str, str]:
    """Dimensions that are enough for any automaton, with the reason and its source."""
    states, linear = algebra.num_states, algebra.linear_dimension
    if linear is not None and linear < states:
        return linear, "the rank of the labels' Hankel matrix", "Carlyle and Paz 1971"
    return states, "states as unit vectors, symbols as their transition matrices", BILINEAR


def _no_less(choice: Choice) -> str:
    return "; no less does, while products stay bounded" if choice.smallest else ""


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


def _one_is_too_few(algebra: Algebra, settings: Mapping[str, Any]) -> bool:
    """Whether one layer must follow a symbol that, read twice, does not leave states in place."""
    beyond_two = any((each[each] != range(len(each))).any() for each in algebra.machine.actions)
    return beyond_two and algebra.machine.complete and settings.get("layers", 1) == 1


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


def _listed(choice: Choice) -> str:
    """`3`, or `2 + 3`, or, of more than six, `1 + 2 + 3` each once."""
    sizes = sorted(part.dimension for part in choice.parts)
    return " + ".join(map(str, sizes if len(sizes) <= 6 else sorted(set(sizes))))
