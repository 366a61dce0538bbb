"""The floor: how often the best constant answer is right, computed and not sampled.

The chain: a word ends in a state and has a last scored label. Where a state is scored, it fixes
that label; where it is not, the label has to be remembered. So one node for each scored state,
and one for each unscored state with each label that may have come last.

Letters: S states, V symbols, N nodes of the chain, M moves: one for each node and symbol that is
ever drawn in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from statetrack.sources.arrays import Booleans, Floats, Integers
from statetrack.sources.graphs import closed

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


@dataclass(frozen=True, eq=False)
class DrawnWords:
    """What a floor depends on: transitions, what is asked, and how symbols are drawn."""

    delta: Integers  # [S, V]
    start: int
    asked: Integers  # [S], the label, -1 where none is asked for
    drawable: Booleans  # [S, V], whether a symbol is ever drawn
    weights: Floats  # [S, V]
    shift_at_slip: Floats  # [S, V], what a slip adds to the weights
    slip_chance: Callable[[int], float] | None  # by position; None where nothing slips


def best_constant(words: DrawnWords, lengths: Iterable[int]) -> dict[int, float] | None:
    """The accuracy of the best constant answer on words of each length.

    Words are drawn by the weights and slips, and the answer asked for is the label at the last
    scored position. Words without a scored position do not count; where all are such, it is NaN.
    Exact to rounding, at any length; None, for *not computed*, where the chain has more than
    `MOST_NODES` nodes or takes more than `MOST_WORK`.
    """
    floors: dict[int, float] = {}
    try:
        walk = _Walk(_chain(words), words.slip_chance)
        for length in sorted(set(lengths)):
            assert length >= 1, length
            shares = walk.shares_of_labels_at(length)
            total = shares.sum()
            floors[length] = float(shares.max() / total) if total > 0 else float("nan")
    except _TooMuchWork:
        return None
    return floors


@dataclass(frozen=True, eq=False)
class _Chain:
    """Nodes a drawn word can be in, and the moves between them; node 0 is the start."""

    label: Integers  # [N], the last scored label; -1 before the first
    source: Integers  # [M]
    target: Integers  # [M]
    weight: Floats  # [M]
    shift_at_slip: Floats  # [M]


def _chain(words: DrawnWords) -> _Chain:
    remembered = int(words.asked.max()) + 2  # labels, and -1 for none yet: part of a node's number
    reached: list[Integers] = []  # the targets of all moves, level by level

    def targets_of(nodes: Integers) -> Integers:
        states, last = np.divmod(nodes, remembered)
        place, drawn = np.nonzero(words.drawable[states])
        targets = words.delta[states[place], drawn]
        asked = words.asked[targets]
        reached.append(targets * remembered + np.where(asked >= 0, asked + 1, last[place]))
        return reached[-1]

    known = closed(np.array([words.start * remembered]), targets_of, MOST_NODES)
    if known is None:
        raise _TooMuchWork
    order = np.argsort(known)
    states = known // remembered
    source, drawn = np.nonzero(words.drawable[states])
    return _Chain(
        label=known % remembered - 1,
        source=source,
        target=order[np.searchsorted(known, np.concatenate(reached), sorter=order)],
        weight=words.weights[states[source], drawn],
        shift_at_slip=words.shift_at_slip[states[source], drawn],
    )


class _Walk:
    """The distribution over a chain's nodes, taken from one length to the next."""

    def __init__(self, chain: _Chain, slip_chance: Callable[[int], float] | None) -> None:
        self._chain, self._slip_chance = chain, slip_chance
        self._position = 0
        self._steps_left = MOST_WORK // max(STEP, len(chain.source))
        self._distribution = np.zeros(len(chain.label))
        self._distribution[0] = 1.0
        self._powers: list[Floats] = []  # of the chain's matrix: 1, 2, 4, ...

    def shares_of_labels_at(self, length: int) -> Floats:
        """How likely each label is the last one that is asked for, after so many symbols."""
        steps = length - self._position
        if self._slip_chance is None and len(self._distribution) <= MOST_NODES_TO_SQUARE:
            self._square(steps)
        else:
            self._step(steps)
        self._position = length
        asked = self._chain.label >= 0
        shares = np.bincount(self._chain.label[asked], weights=self._distribution[asked])
        return shares.astype(np.float64)

    def _square(self, steps: int) -> None:
        if not self._powers:
            matrix = np.zeros((len(self._distribution),) * 2)
            np.add.at(matrix, (self._chain.source, self._chain.target), self._chain.weight)
            self._powers.append(matrix)
        for bit in range(steps.bit_length()):
            if bit == len(self._powers):
                self._powers.append(self._powers[-1] @ self._powers[-1])
            if steps >> bit & 1:
                self._distribution = self._distribution @ self._powers[bit]

    def _step(self, steps: int) -> None:
        """Symbol by symbol, and where nothing slips until the distribution repeats itself.

        It is compared with an earlier one that is renewed after 1, 2, 4, 8, ... steps (Brent's way
        to find a cycle); once they agree, only the steps that are left modulo the distance count.
        """
        chain, weight = self._chain, self._chain.weight
        earlier, distance, patience = self._distribution, 0, 1
        place = self._position
        while steps:
            self._steps_left -= 1
            if self._steps_left < 0:
                raise _TooMuchWork
            if self._slip_chance is not None:
                weight = chain.weight + self._slip_chance(place) * chain.shift_at_slip
            flow = self._distribution[chain.source] * weight
            stepped = np.bincount(chain.target, weights=flow, minlength=len(chain.label))
            self._distribution = stepped.astype(np.float64)
            steps, place, distance = steps - 1, place + 1, distance + 1
            if self._slip_chance is None:
                if np.abs(self._distribution - earlier).sum() < SETTLED:
                    steps %= distance
                if distance == patience:
                    earlier, distance, patience = self._distribution, 0, 2 * patience
