"""Centres: one point for every state of the automaton, which operators map onto each other.

S states, V symbols, n coordinates, E transitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra import needed_machine
from statetrack.evidence.budget import OF_POINTS, ROUND, SearchBudget
from statetrack.sources import Automaton, Booleans, Floats, Integers, reachable

MOST_ROUNDS = 2000
"""Rounds of averaging."""

LARGEST_TOGETHER = 256
"""Coordinates of all centres up to which rounds are taken as powers of one matrix."""

FEW_ROUNDS = 128
"""Rounds of averaging where operators drift."""

SETTLED = 1e-13
"""Averaging ends where it moves no centre by more, relative to their size."""


@dataclass(frozen=True, eq=False)
class Edges:
    """The transitions that drawn words make, from state `source` by `symbol` to `target`: [E].

    `label` is the label of a state, [S], and `asked` whether an answer is asked for there.
    """

    source: Integers
    symbol: Integers
    target: Integers
    start: int
    label: Integers
    asked: Booleans

    @cached_property
    def num_states(self) -> int:
        """S."""
        return len(self.label)

    @classmethod
    def of(cls, automaton: Automaton, *, minimal: bool) -> Edges:
        """Those of an automaton as it is given, or of its smallest machine."""
        if minimal:
            machine = needed_machine(automaton)
            automaton, live = machine.automaton, machine.live
            allowed = live[:, None] & live[automaton.delta]
        else:
            allowed = automaton.drawable
        reached = reachable(automaton.delta, automaton.start, allowed)
        source, symbol = np.nonzero(allowed & reached[:, None])
        number = np.cumsum(reached) - 1
        return cls(
            source=number[source],
            symbol=symbol,
            target=number[automaton.delta[source, symbol]],
            start=int(number[automaton.start]),
            label=automaton.output[reached],
            asked=automaton.scored[reached],
        )


def find_centres(
    matrices: Floats,
    first: Floats,
    transitions: Edges,
    *,
    rounds: int = MOST_ROUNDS,
    budget: SearchBudget | None = None,
) -> Floats:
    """A point for every state, such that matrices [V, n, n] lead from one to the next: [S, n].

    Each round puts a centre halfway towards the mean of A(x) psi(s) over the transitions (s, x)
    that lead to it, which keeps what agrees and halves what turns against it. It starts from the
    states of shortest words. Centres have the size of the first state. What all operators turn by
    a little adds up over the rounds, so that fewer leave centres nearer to the first state.
    A budget that ends leaves them where they are: what is proven of them is true of any centres.
    Coordinates that no symbol and no first state ever make other than zero are left out meanwhile.
    """
    used = matrices.any((0, 2)) | (first != 0)
    if not used.all() and used.any():
        found = np.zeros((transitions.num_states, len(first)))
        inside = matrices[:, used][:, :, used]
        found[:, used] = find_centres(
            inside, first[used], transitions, rounds=rounds, budget=budget
        )
        return found
    points = _along_shortest_words(matrices, first, transitions)
    size = np.linalg.norm(points, axis=1).max()
    if size == 0 or not np.isfinite(size):
        return points
    if points.size <= LARGEST_TOGETHER:
        averaged = _together(matrices, points, transitions, rounds)
    else:
        averaged = _one_by_one(matrices, points, transitions, rounds, budget)
    now = np.linalg.norm(averaged, axis=1).max()
    return points if now == 0 or not np.isfinite(now) else averaged * (size / now)


def _together(matrices: Floats, points: Floats, transitions: Edges, rounds: int) -> Floats:
    """All rounds as the power of one matrix, by squaring."""
    num_states, size = points.shape
    round_ = np.zeros((num_states, size, num_states, size))
    entered = np.bincount(transitions.target, minlength=num_states)
    share = 1 / np.maximum(entered, 1)[transitions.target]
    weighted = matrices[transitions.symbol] * share[:, None, None]
    np.add.at(round_.transpose(0, 2, 1, 3), (transitions.target, transitions.source), weighted)
    never = np.flatnonzero(entered == 0)
    round_[never, :, never] = np.eye(size)
    whole = (round_.reshape(points.size, points.size) + np.eye(points.size)) / 2
    for _ in range(rounds.bit_length()):
        whole = whole @ whole
        whole /= max(float(np.linalg.norm(whole)), 1e-300)
    averaged: Floats = (whole @ points.ravel()).reshape(points.shape)
    return averaged


def _one_by_one(
    matrices: Floats,
    points: Floats,
    transitions: Edges,
    rounds: int,
    budget: SearchBudget | None,
) -> Floats:
    """The rounds, until centres move no more."""
    size = np.linalg.norm(points, axis=1).max()
    entered = np.bincount(transitions.target, minlength=transitions.num_states)
    weights = 1 / np.maximum(entered, 1)
    order = np.argsort(transitions.target, kind="stable")
    source, symbol = transitions.source[order], transitions.symbol[order]
    filled = np.flatnonzero(entered)
    starts = (np.cumsum(entered) - entered)[filled]
    for _ in range(rounds):
        if budget is not None and budget.spent:
            break
        if budget is not None:
            budget.use(ROUND + OF_POINTS * matrices.size * len(points))
        images = np.matmul(points, matrices.transpose(0, 2, 1))[symbol, source]
        means = points.copy()
        means[filled] = np.add.reduceat(images, starts) * weights[filled, None]
        means = (points + means) / 2
        moved = np.linalg.norm(means - points, axis=1).max()
        now = np.linalg.norm(means, axis=1).max()
        if now == 0 or not np.isfinite(now):
            return points
        points = means * (size / now)
        if moved <= SETTLED * size:
            break
    return points


def _along_shortest_words(matrices: Floats, first: Floats, transitions: Edges) -> Floats:
    """The states of the model after a shortest word to every state of the automaton."""
    points = np.zeros((transitions.num_states, len(first)))
    seen = np.zeros(transitions.num_states, bool)
    points[transitions.start], seen[transitions.start] = first, True
    while not seen.all():
        new = seen[transitions.source] & ~seen[transitions.target]
        targets, edges = np.unique(transitions.target[new], return_index=True)
        sources = transitions.source[new][edges]
        symbols = transitions.symbol[new][edges]
        points[targets] = np.einsum("eij,ej->ei", matrices[symbols], points[sources])
        seen[targets] = True
    return points
