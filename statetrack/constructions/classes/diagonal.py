"""One layer of free gains: characters, occurrences or resets.

V symbols, S states, N gains.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from statetrack.algebra import Diagonal, IrreduciblePart
from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.registry import construction, take
from statetrack.sources import Floats

MOST_SYMBOLS = 8
"""Most symbols for which all gains of 0 and 1 are tried."""


def _commutes(case: Case) -> bool:
    return case.algebra.monoid is not None and case.algebra.monoid.commutative


@construction(
    Diagonal,
    name="characters",
    equation="h_t = g(x_t) h_{t-1} with |g(x)| = 1: a gain for each character of an abelian group "
    "that the labels need",
    source="arXiv:2505.21749",
    where=lambda case: case.algebra.space is not None,
)
def characters(case: Case) -> Any:
    """A gain for every irreducible part, a line or a plane."""
    space = case.algebra.space
    assert space is not None
    choice = space.with_smallest_sum([1] * len(space.parts))
    choice = choice or space.with_smallest_largest(space.dimensions)
    if choice is None:
        raise NotBuilt("no set of characters is known that gives the labels")
    gains, points = _planes(choice.parts, case)
    return take(case, "gains", gains, points, None)


@construction(
    Diagonal,
    name="occurrences",
    equation="h_t = g(x_t) h_{t-1} with g(x) = 0 or 1: whether any of some symbols was read",
    source="own",
    where=_commutes,
)
def occurrences(case: Case) -> Any:
    """All products of gains of 0 and 1 that are functions of the state."""
    machine = case.algebra.machine
    if len(machine.delta.T) > MOST_SYMBOLS:
        raise NotBuilt("too many symbols for all products of gains of 0 and 1")
    gains, points = [], []
    for chosen in itertools.product([0.0, 1.0], repeat=len(machine.delta.T)):
        values = np.full(len(machine.delta), np.nan)
        values[machine.automaton.start] = 1
        while np.isnan(values).any():
            for symbol, gain in enumerate(chosen):
                known = ~np.isnan(values)
                values[machine.delta[known, symbol]] = values[known] * gain
        if (values[machine.delta] == values[:, None] * np.array(chosen)).all():
            gains.append(chosen)
            points.append(values)
    if len(np.unique(np.array(points).T, axis=0)) < len(machine.delta):
        raise NotBuilt("labels depend on how often a symbol was read, and only whether is built")
    return take(case, "gains", np.array(gains).T + 0j, _real(np.array(points).T), None)


@construction(
    Diagonal,
    name="resets",
    equation="h_t = g(x_t) h_{t-1} + b(x_t) with g = 1, b = 0 where the symbol keeps the state, "
    "and g = 0, b = e_s where it resets it to s",
    source="own",
)
def resets(case: Case) -> Any:
    """Gains of 1 and 0, the same in all coordinates, and states as unit vectors."""
    machine = case.algebra.machine
    num_states = len(machine.delta)
    keeps = (machine.delta == np.arange(num_states)[:, None]).all(axis=0)
    points = np.eye(num_states)
    terms = np.where(keeps[:, None], 0.0, points[machine.delta[0]])
    recurrence = case.recurrence
    assert isinstance(recurrence, Diagonal)
    shaped = _real if recurrence.gains in ("positive", "real") else _paired
    points, terms = shaped(points), shaped(terms)
    gains = np.repeat(keeps[:, None] + 0j, points.shape[1], axis=1)
    return take(case, "gains", gains, points, terms)


def _paired(numbers: Floats) -> Floats:
    """Real numbers `[.., N]` as the two parts of complex ones `[.., N / 2, 2]`, rounded up."""
    even = np.pad(numbers, ((0, 0), (0, numbers.shape[1] % 2)))
    return even.reshape(len(even), -1, 2)


def _real(numbers: Floats) -> Floats:
    """Real numbers `[.., N]` as complex ones `[.., N, 2]`."""
    return np.stack([numbers, 0 * numbers], -1)


def _planes(parts: tuple[IrreduciblePart, ...], case: Case) -> tuple[np.ndarray, Floats]:
    """Complex gains `[V, N]` and points `[S, N, 2]`: a plane for each part, a line fills half."""
    actions = case.algebra.machine.delta.T
    gains = np.ones((len(actions), len(parts)), complex)
    points = np.zeros((actions.shape[1], len(parts), 2))
    for place, part in enumerate(parts):
        matrices = part.matrices(actions)
        points[:, place, : part.dimension] = part.points
        gains[:, place] = matrices[:, 0, 0]
        if part.dimension == 2:
            gains[:, place] += 1j * matrices[:, 1, 0]
    return gains, points
