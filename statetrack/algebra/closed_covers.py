"""The fewest states of a machine that gives the labels that are asked for, after words drawn.

Where a label is not asked for after every symbol, or some symbols are never drawn, what a machine
does elsewhere is free, and states that no word tells apart may be one. But they need not: *not told
apart* is no equivalence there, and to find a smallest machine is NP-hard (Pfleeger 1973, IEEE
Trans. Comput. C-22). So there are bounds from both sides, which a search brings together for small
machines.

- Any two states of a set whose pairs are all told apart need states of their own.
- A machine N with fewer states is a *closed cover*: for each of its states q, the set of states in
  which the given machine is after words that lead N to q. No two states of a set are told apart,
  and a symbol leads every set into one set. Conversely every closed cover makes such a machine
  (Paull and Unger 1959, IRE Trans. Electron. Comput. EC-8).

The start is not labelled before the first symbol, so a further state stands for it: it leads where
the start does, and no label of its own is asked for. The start itself counts where it is entered.

Letters: S states, V symbols. A set of states is an integer whose bits are its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from statetrack.algebra.machine import Machine

MOST_FOLDED = 1_000
"""Most states of a machine that is looked at as a cover at all."""
MOST_SEARCHED = 80
"""Most states of a machine for which the exact search is made."""
MOST_LEADS = 600
"""Most pairs of a set and a symbol in this search, which is as deep."""
MOST_STEPS = 100_000
"""Most states that this search puts into sets or follows."""
MOST_CLIQUES = 5_000
"""Most sets of states that are tried for one of which any two are told apart."""
NOWHERE = -1


@dataclass(frozen=True)
class FewestStates:
    """Bounds on the number of states of a smallest machine: it has `low` to `high` of them."""

    low: int
    high: int

    @property
    def known(self) -> bool:
        """Whether the number is known."""
        return self.low == self.high


def fewest_states(machine: Machine) -> FewestStates:
    """Bounds on the fewest states of a machine with the same labels where they are asked for."""
    size = int(machine.live.sum())
    if machine.complete:
        return FewestStates(size, size)
    if size > MOST_FOLDED or machine.apart is None:
        return FewestStates(1, size)
    cover = _Cover.of(machine)
    alone = cover.all_told_apart()
    low = max(len(alone), 1)
    if low == size:
        return FewestStates(size, size)
    high = min(size, cover.folded())
    if len(cover.targets) > MOST_SEARCHED or high * len(cover.targets[0]) > MOST_LEADS:
        return FewestStates(low, high)
    search = _CoverSearch(cover, alone)
    while low < high:
        found = search.fits(low)
        if found is None:
            break
        low, high = (low, low) if found else (low + 1, high)
    return FewestStates(low, high)


@dataclass(frozen=True, eq=False)
class _Cover:
    """The states to be put into sets, the further one last."""

    # [S + 1][V], of S states that are entered; NOWHERE where a symbol is not drawn
    targets: list[list[int]]
    against: list[int]  # [S + 1]: the states that each is told apart from, as a set

    @classmethod
    def of(cls, machine: Machine) -> _Cover:
        assert machine.apart is not None
        entered = np.zeros(len(machine.live), bool)
        entered[machine.delta[machine.live]] = True
        states = np.flatnonzero(entered & machine.live)
        number = np.full(len(machine.live), NOWHERE)
        number[states] = np.arange(len(states))
        targets = number[machine.delta[states]]
        first = number[machine.delta[machine.automaton.start]]
        apart = np.zeros((len(states) + 1, len(states) + 1), bool)
        apart[:-1, :-1] = machine.apart[np.ix_(states, states)]
        both = (first != NOWHERE) & (targets != NOWHERE)
        apart[-1, :-1] = apart[:-1, -1] = (apart[first, targets] & both).any(axis=1)
        rows = np.vstack([targets, first]).tolist()
        return cls(rows, [_as_set(np.flatnonzero(row)) for row in apart])

    def all_told_apart(self) -> list[int]:
        """States of which any two are told apart: as many as possible, if there are few states."""
        order = sorted(range(len(self.against)), key=lambda each: -self.against[each].bit_count())
        best: list[int] = []
        for first in order[:MOST_SEARCHED]:
            chosen, left = [first], self.against[first]
            for each in order:
                if left >> each & 1:
                    chosen.append(each)
                    left &= self.against[each]
            best = max(best, chosen, key=len)
        if len(self.against) > MOST_SEARCHED:
            return best
        steps = MOST_CLIQUES

        def grow(chosen: list[int], left: int) -> None:
            nonlocal best, steps
            steps -= 1
            best = max(best, chosen, key=len)
            while left and steps > 0 and len(chosen) + left.bit_count() > len(best):
                pivot = max(
                    _members(left), key=lambda each: (self.against[each] & left).bit_count()
                )
                left ^= 1 << pivot
                grow([*chosen, pivot], left & self.against[pivot])

        grow([], (1 << len(self.against)) - 1)
        return best

    def folded(self) -> int:
        """The number of sets where every state joins the first one that can take it in.

        Two sets become one together with those that symbols lead from both to.
        """
        sets = _Partition([1 << state for state in range(len(self.against))], [*self.against])
        kept: list[int] = []
        for state in range(len(self.against)):
            for other in kept:
                united = self._united(sets, other, state)
                if united is not None:
                    sets = united
                    break
            else:
                kept.append(state)
        return sum(map(bool, sets.members))

    def _united(self, sets: _Partition, first: int, second: int) -> _Partition | None:
        """The sets once those of two states are one; None where that cannot be."""
        waiting, tried = [(first, second)], sets
        while waiting:
            one, other = (tried.of(each) for each in waiting.pop())
            if one == other:
                continue
            if tried.against[one] & tried.members[other]:
                return None
            if tried is sets:
                tried = _Partition([*sets.members], [*sets.against], [*sets.joined])
            tried.unite(one, other)
            members = list(_members(tried.members[one]))
            for symbol in range(len(self.targets[0])):
                reached = [self.targets[each][symbol] for each in members]
                drawn = [each for each in reached if each != NOWHERE]
                waiting += [(drawn[0], each) for each in drawn[1:]]
        return tried


class _Partition:
    """Sets of states of which every state is in one; set i begins as that of state i."""

    def __init__(
        self, members: list[int], against: list[int], joined: list[int] | None = None
    ) -> None:
        self.members, self.against = members, against
        self.joined = list(range(len(members))) if joined is None else joined

    def of(self, state: int) -> int:
        """The number of a state's set."""
        while self.joined[state] != state:
            state = self.joined[state]
        return state

    def unite(self, one: int, other: int) -> None:
        """Take the members of another set into one."""
        self.members[one] |= self.members[other]
        self.against[one] |= self.against[other]
        self.members[other], self.joined[other] = 0, one


class _CoverSearch:
    """The search for closed covers of a given number of sets, within a budget of steps."""

    def __init__(self, cover: _Cover, alone: list[int]) -> None:
        self._cover, self._alone = cover, alone
        self._num_symbols = len(cover.targets[0])
        self._steps = MOST_STEPS

    def fits(self, size: int) -> bool | None:
        """Whether there is a closed cover of `size` sets; None beyond the budget.

        States that need sets of their own have the first sets, and the start is in any one.
        """
        if len(self._alone) > size:
            return False
        self._size = size
        self._sets = [0] * size
        self._against = [0] * size
        self._leads: list[list[int]] = [[NOWHERE] * self._num_symbols for _ in range(size)]
        first = len(self._cover.targets) - 1
        try:
            return all(self._put(state, place) for place, state in enumerate(self._alone)) and any(
                self._completed([first], place) for place in self._places()
            )
        except _BeyondBudgetError:
            return None

    def _completed(
        self, states: Iterable[int], place: int, lead: tuple[int, int] | None = None
    ) -> bool:
        """Whether a cover can be completed once states are in a set; otherwise it is undone.

        `lead` is a set and a symbol that leads from it to this one.
        """
        before = [*self._sets], [*self._against], [[*row] for row in self._leads]
        if lead is not None:
            self._leads[lead[0]][lead[1]] = place
        if all(self._put(state, place) for state in states) and self._complete():
            return True
        self._sets, self._against, self._leads = before
        return False

    def _places(self) -> list[int]:
        """The sets that have members, and the first that has none."""
        used = sum(map(bool, self._sets))
        return list(range(min(used + 1, self._size)))

    def _put(self, state: int, place: int) -> bool:
        """Put a state into a set, and where symbols lead from it; False where one cannot be."""
        waiting = [(state, place)]
        while waiting:
            state, place = waiting.pop()
            if self._sets[place] >> state & 1:
                continue
            self._spend(1)
            if self._against[place] >> state & 1:
                return False
            self._sets[place] |= 1 << state
            self._against[place] |= self._cover.against[state]
            for target, leads in zip(self._cover.targets[state], self._leads[place], strict=True):
                if target != NOWHERE and leads != NOWHERE:
                    waiting.append((target, leads))
        return True

    def _spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise _BeyondBudgetError

    def _complete(self) -> bool:
        """Whether the sets can be led into sets by every symbol: the one with fewest ways first."""
        fewest: tuple[tuple[int, int], int, list[int]] | None = None
        for place, members in enumerate(self._sets):
            for symbol, leads in enumerate(self._leads[place]):
                if leads != NOWHERE:
                    continue
                self._spend(members.bit_count())
                wanted = self._reached(members, symbol)
                if not wanted:
                    continue
                ways = [each for each in self._places() if not self._against[each] & wanted]
                if fewest is None or len(ways) < len(fewest[2]):
                    fewest = (place, symbol), wanted, ways
                if not ways:
                    return False
        if fewest is None:
            return True
        lead, wanted, ways = fewest
        return any(self._completed(_members(wanted), way, lead) for way in ways)

    def _reached(self, members: int, symbol: int) -> int:
        """The states that a symbol leads to from some."""
        targets = (self._cover.targets[each][symbol] for each in _members(members))
        return _as_set(each for each in targets if each != NOWHERE)


class _BeyondBudgetError(Exception):
    """The search takes too long."""


def _as_set(states: Iterable[int]) -> int:
    found = 0
    for each in states:
        found |= 1 << int(each)
    return found


def _members(states: int) -> Iterator[int]:
    while states:
        last = states & -states
        yield last.bit_length() - 1
        states ^= last
