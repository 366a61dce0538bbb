"""Closed orbits: states of a linear model that are computed without any rounding.

A sum of products is exact in every order, with fused multiplications or without, where all products
are multiples of a power of two, 2^q, and their magnitudes add up to less than 2^(q + p), p the bits
of a significand. Where that holds of every step from every state that is reached, and there are
finitely many states, the model is a finite automaton for words of all lengths. States are divided
by powers of two now and then: nothing changes but the exponent, and the states of the divided ones
are the same up to a power of two.

*Chunks.* Gains are scanned in chunks that start from 0 where terms are added, so that numbers occur
that stepping never makes: s_t = h_t - p_t h_0, with h_0 the state before the chunk and p_t the
product of its gains. Gains are 0, or 1 or -1, or i times these, so that p_t is one of them too, and
h_0 may be any state that is reached. Coordinate by coordinate, let all terms and all states that
are reached be multiples of 2^q, and no state be larger than M. Then s_t is such a multiple, and of
magnitude at most 2 M, so that it is computed exactly where 2 M < 2^(q + p), by induction over t;
and so is s_t + p_t h_0 = h_t.

*Range.* The largest coordinates of states, and of numbers in rank space, lie between 2^-20 and 2^20
or are 0. A division brings the largest coordinate into [1, 2), so that the power of two that
divisions have put on a state is in that range, too. Nothing overflows where
the logits' magnitudes add up to less than 2^100; what underflows is off by at most 2^-126 for each
product, so by 2^-104 relative to the state before it was divided, which the right label has to
lead by.

V symbols, N states, n coordinates, C labels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from statetrack.evidence.budget import EXACT_STEP, SearchBudget
from statetrack.evidence.certificate.centres import Edges
from statetrack.evidence.subject import exactly
from statetrack.models import LinearModel
from statetrack.ops import (
    BlockOperators,
    ComplexDiagonalOperators,
    DenseOperators,
    DiagonalOperators,
    FactoredOperators,
    rounded,
)
from statetrack.rounding import FORMATS, FloatFormat
from statetrack.sources import Booleans, Floats, Integers

MOST_STATES = 4096
"""Most pairs of a state of the model and one of the automaton."""

MOST_PRODUCTS = 2**22
"""Products that are looked at at once."""

BITS = 24
"""Those of float32, for float64 models too: their products are exact here."""

SMALLEST_EXPONENT = -100
LARGEST_EXPONENT = 80
"""Exponents of products, far from where float32 underflows or overflows."""

SIZES = (2.0**-20, 2.0**20)
"""The largest coordinates of states."""

LARGEST_LOGIT = 2.0**100
"""More than the magnitudes of the products of any logit add up to."""

UNDERFLOW = 2.0**-104
"""More than underflow adds to a product of a logit, relative to states before they are divided."""


class _Rounded(Exception):
    """Some step is not exact."""


def closes_exactly(
    model: LinearModel,
    transitions: Edges,
    budget: SearchBudget,
    within: FloatFormat = FORMATS["float32"],
) -> bool:
    """Whether all states reached are computed exactly, are finitely many, and answer rightly.

    `within` is a type that every type of a step includes: all numbers of a step have to be of it.
    """
    dtype = model.readout.weight.dtype
    if dtype not in (torch.float32, torch.float64):
        return False
    try:
        steps = _steps(model, within)
    except _Rounded:
        return False
    symbols = [np.flatnonzero(transitions.source == s) for s in range(transitions.num_states)]
    first = exactly(model.first)
    reached = {(transitions.start, first.tobytes())}
    frontier = [(transitions.start, first)]
    while frontier:
        if budget.spent or len(reached) > MOST_STATES:
            return False
        budget.use(EXACT_STEP * len(frontier) * len(symbols[0]))
        following: list[tuple[int, Floats]] = []
        for state, vector in frontier:
            for edge in symbols[state]:
                target = int(transitions.target[edge])
                try:
                    after, logits, off = steps(int(transitions.symbol[edge]), vector)
                except _Rounded:
                    return False
                if transitions.asked[target]:
                    label = transitions.label[target]
                    clear = logits[label] - off[label] > logits + off
                    clear[label] = True
                    if not clear.all():
                        return False
                key = (target, after.tobytes())
                if key not in reached:
                    reached.add(key)
                    following.append((target, after))
        frontier = following
    states = np.unique([np.frombuffer(state) for _, state in reached], axis=0)
    return _in_range(states) and _chunks_are_exact(model, states, np.unique(transitions.symbol))


def _in_range(vectors: Floats) -> bool:
    """Whether each of vectors [N, n] is 0 or has a largest coordinate within `SIZES`."""
    largest = abs(vectors).max(-1)
    found: bool = ((largest == 0) | ((largest > SIZES[0]) & (largest < SIZES[1]))).all()
    return bool(found)


def _chunks_are_exact(model: LinearModel, states: Floats, symbols: Integers) -> bool:
    """Whether chunks of gains with additive terms are computed exactly, from states [N, n]."""
    with torch.no_grad():
        operators, table = model.running_operators(), model.additive_table()
    if table is None or not isinstance(operators, DiagonalOperators | ComplexDiagonalOperators):
        return True
    numbers = np.concatenate([states, exactly(table)[symbols]]).T
    return bool((2 * abs(states).max(0) < lowest_bits(numbers) * 2.0**BITS).all())


Step = Callable[[int, Floats], tuple[Floats, Floats, Floats]]


def _steps(model: LinearModel, within: FloatFormat) -> Step:
    """A function of a symbol and a state: the next state, and logits with what they are off by."""
    with torch.no_grad():
        operators, table = model.running_operators(), model.additive_table()
    terms = None if table is None else exactly(table)
    weight = exactly(model.readout.weight)
    bias = np.zeros(len(weight)) if model.readout.bias is None else exactly(model.readout.bias)
    unit = (weight.shape[1] + 2) * 2.0**-BITS * 2
    if isinstance(operators, FactoredOperators) and terms is None:
        return _factored_steps(operators, weight, bias, within)
    gains = isinstance(operators, DiagonalOperators | ComplexDiagonalOperators)
    if not gains and not isinstance(operators, DenseOperators | BlockOperators):
        raise _Rounded
    matrices = exactly(operators.dense())
    if gains and not (np.isin(matrices, (-1.0, 0.0, 1.0)) & _alone(matrices)).all():
        raise _Rounded  # products of gains are taken too: these neither grow nor are rounded

    def step(symbol: int, state: Floats) -> tuple[Floats, Floats, Floats]:
        added = None if terms is None else terms[symbol]
        after = exact_product(matrices[symbol], state, added, within)
        sizes = abs(weight) @ abs(after) + abs(bias)
        return after, weight @ after + bias, _off(sizes, unit, len(after))

    return step


def _factored_steps(
    operators: FactoredOperators, weight: Floats, bias: Floats, within: FloatFormat
) -> Step:
    """The same through rank space and through the state itself, both of which occur."""
    left, right = exactly(operators.left), exactly(operators.right)
    gains = exactly(operators.gains)
    core = np.array([exact_product(right.T, column, None, within) for column in left.T]).T
    unit = (sum(left.shape) + 4) * 2.0**-BITS * 2
    sizes = abs(weight) @ abs(left)
    if not (sizes < LARGEST_LOGIT).all():
        raise _Rounded

    def step(symbol: int, state: Floats) -> tuple[Floats, Floats, Floats]:
        narrow = exact_product(right.T, state, None, within)
        gated = exact_product(np.diag(gains[symbol]), narrow, None, within)
        if not _in_range(np.stack([narrow, gated])):
            raise _Rounded
        after = exact_product(left, gated, None, within)
        exact_product(core, gated, None, within)
        summed = sizes @ abs(gated) + abs(bias)
        return after, weight @ after + bias, _off(summed, unit, left.size)

    return step


def _off(sizes: Floats, unit: float, products: int) -> Floats:
    """What logits [C] of products of these sizes are off by. Raises `_Rounded` out of range."""
    if not (sizes < LARGEST_LOGIT).all():
        raise _Rounded
    found: Floats = sizes * unit + (products + 2) * UNDERFLOW
    return found


def _alone(matrices: Floats) -> Booleans:
    """Whether each row has one number at most that is not 0: [V, n, 1]."""
    found: Booleans = (matrices != 0).sum(-1, keepdims=True) <= 1
    return found


def exact_product(
    matrix: Floats,
    vector: Floats,
    added: Floats | None,
    within: FloatFormat = FORMATS["float32"],
) -> Floats:
    """The product (+ added). Raises `_Rounded` unless it is exact, of numbers of one type."""
    for numbers in (matrix, vector, added):
        if numbers is not None and not _all_within(numbers, within):
            raise _Rounded
    products = matrix * vector
    if added is not None:
        products = np.column_stack([products, added])
    if not _sums_are_exact(products, within).all():
        raise _Rounded
    total: Floats = products.sum(-1) + 0.0  # no negative zeros
    return total


def _all_within(numbers: Floats, within: FloatFormat) -> bool:
    """Whether all numbers are of a type."""
    tensor = torch.from_numpy(np.ascontiguousarray(numbers))
    return torch.equal(rounded(tensor, within), tensor)


def _sums_are_exact(products: Floats, within: FloatFormat) -> Booleans:
    """Whether the sum of each row is exact in any order."""
    units = lowest_bits(products)
    sizes = abs(products).sum(-1)
    if not ((units >= within.smallest) & (sizes <= within.largest)).all():
        return np.zeros(len(units), bool)
    in_range = (units > 2.0**SMALLEST_EXPONENT) & (units < 2.0**LARGEST_EXPONENT)
    fits: Booleans = in_range & (sizes < units * 2.0 ** min(BITS, within.mantissa + 1))
    return fits


def lowest_bits(numbers: Floats) -> Floats:
    """The largest power of two of which every number of a row is a multiple; 1 for zeros alone."""
    significands, exponents = np.frexp(numbers)
    whole = (significands * 2.0**53).astype(np.int64)
    _, places = np.frexp((whole & -whole).astype(np.float64))  # of the lowest bit that is set
    units = np.where(whole == 0, 2**20, exponents - 53 + places - 1).min(-1)
    found: Floats = np.ldexp(1.0, np.where((whole != 0).any(-1), units, 0))
    return found
