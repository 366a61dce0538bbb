"""The floor: how often the best constant answer is right, computed and not sampled.

The chain: a word ends in a state and has a last scored label. Where a state is scored, it fixes
that label; where it is not, the label has to be remembered. So one node for each scored state,
and one for each unscored state with each label that may have come last.

Letters: N nodes of the chain, M moves: one for each node and symbol that is ever drawn in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statetrack.sources.arrays import Floats, Integers

if TYPE_CHECKING:
    from statetrack.sources.automaton import Automaton

MOST_NODES_TO_SQUARE = 512
"""Chains up to this size are advanced by powers of their matrix, larger ones step by step."""

MOST_NODES = 2**20
"""Larger chains are not built."""

MOST_WORK = 10**9
"""Moves in all steps that a chain is advanced by, one step counting as `STEP` moves or more: some
ten seconds. A distribution that repeats itself before its length stops earlier."""

STEP = 1_000

SETTLED = 1e-15
"""Two distributions closer than this (sum of differences) are the same."""


class _TooMuchWork(Exception):
    """The floor would take more than the bounds of this module."""


def best_constant(automaton: Automaton, lengths: Iterable[int]) -> dict[int, float] | None:
    """The accuracy of the best constant answer on words of each length.

    Words are drawn by the weights and slips, and the answer asked for is the label at the last
    scored position. Words without a scored position do not count; where all are such, it is NaN.
    Exact to rounding, at any length; None, for *not computed*, where the chain has more than
    `MOST_NODES` nodes or takes more than `MOST_WORK`.
    """
    try:
        return _best_constant(automaton, sorted(set(lengths)))
    except _TooMuchWork:
        return None


def _best_constant(automaton: Automaton, lengths: Sequence[int]) -> dict[int, float]:
    chain = _chain(automaton)
    advance = _advance_of(automaton, chain)
    distribution = np.zeros(len(chain.label))
    distribution[0] = 1.0
    floors: dict[int, float] = {}
    position = 0
    for length in lengths:
        assert length >= 1, length
        distribution = advance(distribution, position, length - position)
        position = length
        asked = chain.label >= 0
        shares = np.bincount(chain.label[asked], distribution[asked])
        floors[length] = float(shares.max() / shares.sum()) if shares.sum() > 0 else float("nan")
    return floors


def _advance_of(automaton: Automaton, chain: _Chain) -> Callable[[Floats, int, int], Floats]:
    """What takes a distribution at a position a number of steps further."""
    if automaton.can_slip:
        return _ChangingSteps(chain, automaton.slip_chance)
    return _Powers(chain) if len(chain.label) <= MOST_NODES_TO_SQUARE else _Steps(chain)


@dataclass(frozen=True)
class _Chain:
    """Nodes a drawn word can be in, and the moves between them; node 0 is the start."""

    label: Integers  # [N], the last scored label; -1 before the first
    source: Integers  # [M]
    target: Integers  # [M]
    weight: Floats  # [M]
    shift_at_slip: Floats  # [M]


def _chain(automaton: Automaton) -> _Chain:
    remembered = automaton.num_labels + 1  # labels, and -1 for none yet

    def node(states: Integers, labels: Integers) -> Integers:
        return states * remembered + labels + 1

    scored, output = automaton.scored, automaton.output
    frontier = np.array([automaton.start * remembered])
    found = [frontier]  # frontiers, joined at the end: a chain has as many of them as states
    seen = set(frontier.tolist())
    reached: list[Integers] = []
    while frontier.size:
        states, last = np.divmod(frontier, remembered)
        place, drawn = np.nonzero(automaton.drawable[states])
        targets = automaton.delta[states[place], drawn]
        labels = np.where(scored[targets], output[targets], last[place] - 1)
        reached.append(node(targets, labels))
        new = set(reached[-1].tolist()) - seen
        seen |= new
        frontier = np.array(sorted(new), np.int64)
        found.append(frontier)
        if len(seen) > MOST_NODES:
            raise _TooMuchWork
    known = np.concatenate(found)
    order = np.argsort(known)
    states = known // remembered
    source, drawn = np.nonzero(automaton.drawable[states])
    return _Chain(
        label=known % remembered - 1,
        source=source,
        target=order[np.searchsorted(known, np.concatenate(reached), sorter=order)],
        weight=automaton.weights[states[source], drawn],
        shift_at_slip=automaton.shift_at_slip[states[source], drawn],
    )


class _Powers:
    """Advances a distribution by repeated squaring of the chain's matrix."""

    def __init__(self, chain: _Chain) -> None:
        matrix = np.zeros((len(chain.label),) * 2)
        np.add.at(matrix, (chain.source, chain.target), chain.weight)
        self._powers = [matrix]

    def __call__(self, distribution: Floats, position: int, steps: int) -> Floats:
        for bit in range(steps.bit_length()):
            if bit == len(self._powers):
                self._powers.append(self._powers[-1] @ self._powers[-1])
            if steps >> bit & 1:
                distribution = distribution @ self._powers[bit]
        return distribution


class _Steps:
    """Advances a distribution symbol by symbol, until it repeats itself.

    It is compared with an earlier one that is renewed after 1, 2, 4, 8, ... steps (Brent's way to
    find a cycle); once they agree, only the steps that are left modulo the distance count.
    """

    def __init__(self, chain: _Chain) -> None:
        self._chain = chain
        self._work = _Work(chain)

    def __call__(self, distribution: Floats, position: int, steps: int) -> Floats:
        earlier, distance, patience = distribution, 0, 1
        while steps:
            self._work.count_step()
            distribution = _step(distribution, self._chain, self._chain.weight)
            steps -= 1
            distance += 1
            if np.abs(distribution - earlier).sum() < SETTLED:
                steps %= distance
            if distance == patience:
                earlier, distance, patience = distribution, 0, 2 * patience
        return distribution


class _ChangingSteps:
    """Advances a distribution symbol by symbol through a chain whose weights change on the way."""

    def __init__(self, chain: _Chain, slip_chance: Callable[[int], float]) -> None:
        self._chain = chain
        self._slip_chance = slip_chance
        self._work = _Work(chain)

    def __call__(self, distribution: Floats, position: int, steps: int) -> Floats:
        for place in range(position, position + steps):
            self._work.count_step()
            weight = self._chain.weight + self._slip_chance(place) * self._chain.shift_at_slip
            distribution = _step(distribution, self._chain, weight)
        return distribution


class _Work:
    """Counts steps; raises `_TooMuchWork` where they are too many."""

    def __init__(self, chain: _Chain) -> None:
        self._left = MOST_WORK // max(STEP, len(chain.source))

    def count_step(self) -> None:
        """One more."""
        self._left -= 1
        if self._left < 0:
            raise _TooMuchWork


def _step(distribution: Floats, chain: _Chain, weight: Floats) -> Floats:
    flow = distribution[chain.source] * weight
    stepped = np.bincount(chain.target, weights=flow, minlength=len(distribution))
    return stepped.astype(np.float64)
