"""Closed orbits: states of a linear model that are computed without any rounding.

A sum of products is exact in every order, with fused multiplications or without, where all products
are multiples of a power of two, 2^q, and their magnitudes add up to less than 2^(q + p), p the bits
of a significand. Where that holds of every step from every state that is reached, and there are
finitely many states, the model is a finite automaton for words of all lengths. States are divided
by their largest coordinate now and then; where that is a power of two, nothing changes but the
exponent, and the states of the divided ones are the same up to a power of two.

V symbols, N states, n coordinates, C labels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from statetrack.evidence.certificate.centres import Edges
from statetrack.evidence.records import SearchBudget
from statetrack.evidence.subject import exactly
from statetrack.models import LinearModel
from statetrack.ops import (
    BlockOperators,
    ComplexDiagonalOperators,
    DenseOperators,
    DiagonalOperators,
    FactoredOperators,
)
from statetrack.sources import Booleans, Floats

MOST_STATES = 4096
"""Most pairs of a state of the model and one of the automaton."""

MOST_PRODUCTS = 2**22
"""Products that are looked at at once."""

SMALLEST_EXPONENT = -100
LARGEST_EXPONENT = 100
"""Exponents of products, far from where float32 underflows or overflows."""


class _Rounded(Exception):
    """Some step is not exact."""


def closes_exactly(model: LinearModel, transitions: Edges, budget: SearchBudget) -> bool:
    """Whether all states reached are computed exactly, are finitely many, and answer rightly."""
    dtype = model.readout.weight.dtype
    if dtype not in (torch.float32, torch.float64):
        return False
    bits = 24  # of float32, for float64 models too: their products are exact here
    try:
        steps = _steps(model, bits)
    except _Rounded:
        return False
    symbols = [np.flatnonzero(transitions.source == s) for s in range(transitions.num_states)]
    first = exactly(model.first)
    reached = {(transitions.start, first.tobytes())}
    frontier = [(transitions.start, first)]
    while frontier:
        if budget.spent or len(reached) > MOST_STATES:
            return False
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
    return True


Step = Callable[[int, Floats], tuple[Floats, Floats, Floats]]


def _steps(model: LinearModel, bits: int) -> Step:
    """A function of a symbol and a state: the next state, and logits with what they are off by."""
    with torch.no_grad():
        operators, table = model.operators(), model.additive_table()
    terms = None if table is None else exactly(table)
    weight = exactly(model.readout.weight)
    bias = np.zeros(len(weight)) if model.readout.bias is None else exactly(model.readout.bias)
    unit = (weight.shape[1] + 2) * 2.0**-bits * 2
    divided = model.scale_invariant
    if isinstance(operators, FactoredOperators) and terms is None:
        return _factored_steps(operators, weight, bias, bits, divided)
    gains = isinstance(operators, DiagonalOperators | ComplexDiagonalOperators)
    if not gains and not isinstance(operators, DenseOperators | BlockOperators):
        raise _Rounded
    matrices = exactly(operators.dense())
    if gains and not np.isin(matrices, (-1.0, 0.0, 1.0)).all():
        raise _Rounded  # products of gains are taken too, and these stay 0 and 1
    # of gains, states that start from 0 within a chunk are differences of two states
    room = bits - 3 if gains and terms is not None else bits

    def step(symbol: int, state: Floats) -> tuple[Floats, Floats, Floats]:
        added = None if terms is None else terms[symbol]
        after = exact_product(matrices[symbol], state, room, added)
        if divided:
            _check_power_of_two(after)
        sizes = abs(weight) @ abs(after) + abs(bias)
        return after, weight @ after + bias, sizes * unit

    return step


def _factored_steps(
    operators: FactoredOperators, weight: Floats, bias: Floats, bits: int, divided: bool
) -> Step:
    """The same through rank space and through the state itself, both of which occur."""
    left, right = exactly(operators.left), exactly(operators.right)
    gains = exactly(operators.gains)
    core = np.array([exact_product(right.T, column, bits, None) for column in left.T]).T
    unit = (sum(left.shape) + 4) * 2.0**-bits * 2
    sizes = abs(weight) @ abs(left)

    def step(symbol: int, state: Floats) -> tuple[Floats, Floats, Floats]:
        narrow = exact_product(right.T, state, bits, None)
        gated = exact_product(np.diag(gains[symbol]), narrow, bits, None)
        if divided:
            _check_power_of_two(gated)
        after = exact_product(left, gated, bits, None)
        exact_product(core, gated, bits, None)
        off = (sizes @ abs(gated) + abs(bias)) * unit
        return after, weight @ after + bias, off

    return step


def _check_power_of_two(state: Floats) -> None:
    significand, _ = np.frexp(abs(state).max())
    if significand not in (0.0, 0.5):
        raise _Rounded


def exact_product(matrix: Floats, vector: Floats, bits: int, added: Floats | None) -> Floats:
    """The product (+ added). Raises `_Rounded` unless it is exact, of numbers in float32."""
    for numbers in (matrix, vector, added):
        if numbers is not None and not np.array_equal(numbers, numbers.astype(np.float32)):
            raise _Rounded
    products = matrix * vector
    if added is not None:
        products = np.column_stack([products, added])
    if not _sums_are_exact(products, bits).all():
        raise _Rounded
    total: Floats = products.sum(-1) + 0.0  # no negative zeros
    return total


def _sums_are_exact(products: Floats, bits: int) -> Booleans:
    """Whether the sum of each row is exact in any order, with so many bits."""
    significands, exponents = np.frexp(products)
    whole = (significands * 2.0**53).astype(np.int64)
    lowest = whole & -whole  # the lowest bit that is set
    _, places = np.frexp(lowest.astype(np.float64))
    units = np.where(whole == 0, 2**20, exponents - 53 + places - 1).min(-1)
    present = (whole != 0).any(-1)
    units = np.where(present, units, 0)
    in_range = (units > SMALLEST_EXPONENT) & (units < LARGEST_EXPONENT)
    sizes = np.ldexp(abs(products).sum(-1), -units)
    fits: Booleans = in_range & (sizes < 2.0**bits)
    return fits
