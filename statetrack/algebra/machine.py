"""The machine of a task: the smallest automaton that gives the same answers.

The algebra of a task is that of its smallest machine, not that of the tables it was written in.
Symbols that are never drawn in a state lead to a *sink* there, in which no label is asked
for; states that no drawn word distinguishes are one.

Letters: S states, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra.maps import permute, settled_power
from statetrack.sources import (
    Automaton,
    Booleans,
    Integers,
    all_leading_to,
    leading_to,
    minimise,
    places_of,
    reachable,
    strong_components,
)

SINK = "sink"
"""The name of the sink, unless a state of the automaton has it."""
MOST_PAIR_STEPS = 2**26
"""Most entries of the table of pairs of states and symbols that is worked through."""


@dataclass(frozen=True, eq=False)
class Machine:
    """The smallest automaton that gives the answers of a task, and its sink if it has one."""

    automaton: Automaton
    sink: int | None
    whole: Automaton
    """The automaton that it was made of, whose states words are told in."""

    @property
    def delta(self) -> Integers:
        """The next state, `[S, V]`."""
        return self.automaton.delta

    @cached_property
    def live(self) -> Booleans:
        """The states that drawn words lead to: all but the sink. `[S]`."""
        live = np.ones(len(self.delta), bool)
        if self.sink is not None:
            live[self.sink] = False
        return live

    @cached_property
    def actions(self) -> Integers:
        """The different maps of the states that symbols make, `[number of them, S]`."""
        return np.unique(self.delta.T, axis=0)

    def recurring(self, word: Sequence[int]) -> Integers:
        """The states, but for the sink, that come back under the powers of a word."""
        action = np.arange(len(self.delta))
        for symbol in word:
            action = self.delta[action, symbol]
        back: Integers = np.unique(settled_power(action[None]))
        return back[self.live[back]]

    @cached_property
    def complete(self) -> bool:
        """Whether every word can be drawn, and its label is asked for after every symbol."""
        return self.sink is None and self.automaton.all_scored

    @cached_property
    def partially_ordered(self) -> bool:
        """Whether no word leads from a state to another one and some word back.

        That holds exactly where the monoid is R-trivial (Brzozowski and Fich 1980, J. Comput. Syst.
        Sci. 20). If every word leads down, or nowhere else, then two elements that each are a
        product of the other and something behind it are equal at every state. And if a word u leads
        from s to t, and v from t back, then the powers e of u v that are their own squares keep s
        where e u leads to t: e and e u are different, and each is a product of the other.
        """
        return int(strong_components(self.delta).max()) + 1 == len(self.delta)

    @cached_property
    def partially_ordered_in_place(self) -> bool:
        """The same of states that are one where every symbol leads from them to the same state.

        A model that sees the last symbol has to know the state before it, and of that only what
        follows. Where some word leads from one to another of those and another word back, the two
        words read in turn come round in one strong component: there both have states.
        """
        component = strong_components(self.delta)
        rows = np.unique(np.column_stack([component, self.delta]), axis=0)
        return len(rows) == int(component.max()) + 1

    @cached_property
    def apart(self) -> Booleans | None:
        """Which pairs of states give different labels after some word drawn from both: `[S, S]`.

        Where some labels are never asked for, a machine keeps states that need not be kept. None
        where there are too many pairs to tell.
        """
        num_states, num_symbols = self.delta.shape
        if self.complete:
            return ~np.eye(num_states, dtype=bool)
        if num_states**2 * num_symbols > MOST_PAIR_STEPS:
            return None
        output = np.where(self.automaton.scored, self.automaton.output, -1)
        asked = self.automaton.scored[:, None] & self.automaton.scored[None, :]
        return all_leading_to(self.actions, asked & (output[:, None] != output[None, :]))

    @cached_property
    def holds_two_states(self) -> bool | None:
        """Whether some word maps two states that labels distinguish each to itself.

        None where there are too many pairs to tell.
        """
        num_states, num_symbols = self.delta.shape
        if self.complete and num_states > 1 and permute(self.actions).any():
            return True
        if self.apart is None or num_states**2 * num_symbols > MOST_PAIR_STEPS:
            return None
        kept = self.apart
        while not ((followed := leading_to(self.actions, kept)) == kept).all():
            kept = followed  # by a pair that is kept: fewer in every round
        return bool(kept.any())

    @cached_property
    def a_symbol_cycles(self) -> bool | None:
        """Whether the powers of some symbol cycle through states that labels distinguish.

        None where there are too many pairs to tell.
        """
        apart = self.apart
        return None if apart is None else any(_cycles(each, apart) for each in self.actions)

    def order_matters(self, maps: Integers) -> bool | None:
        """Whether labels distinguish the two orders of composing some two maps of `[K, S]`.

        Of too many maps the first ones are compared; None where these do not tell.
        """
        apart = self.apart
        if apart is None:
            return None
        some = maps[: math.isqrt(MOST_PAIR_STEPS // maps.shape[1])]
        if any(bool(apart[some[:, each], each[some]].any()) for each in some):
            return True
        return False if len(some) == len(maps) else None


def needed_machine(automaton: Automaton) -> Machine:
    """The smallest machine that answers as an automaton does, wherever a label is asked for.

    How likely a symbol is does not count, only whether it is ever drawn. A start that is never
    entered again is one with any state from which the same words lead to the same states: before
    the first symbol no label is asked for.
    """
    smallest = minimise(_with_void(automaton))
    start, delta = smallest.start, smallest.delta
    alike = np.flatnonzero((delta == delta[start]).all(axis=1))
    if len(alike) > 1 and not (delta == start).any():
        other = int(alike[alike != start][0])
        smallest = _reachable_part(
            delta, smallest.output, smallest.scored, other, smallest, smallest.states
        )
    absorbing = (smallest.delta == np.arange(smallest.num_states)[:, None]).all(axis=1)
    sink = np.flatnonzero(absorbing & ~smallest.scored)
    return Machine(smallest, int(sink[0]) if len(sink) else None, automaton)


def _cycles(action: Integers, apart: Booleans) -> bool:
    """Whether a map has a cycle on which labels distinguish two states."""
    reached = recurring = np.unique(settled_power(action[None]))
    for _ in recurring:
        reached = action[reached]
        if apart[recurring, reached].any():
            return True
    return False


def _with_void(automaton: Automaton) -> Automaton:
    """The automaton with forbidden symbols leading to one absorbing state that is not scored."""
    forbidden = ~automaton.drawable
    if not forbidden.any():
        return automaton.with_uniform_weights()
    sink = automaton.num_states
    loops = np.full((1, automaton.num_symbols), sink)
    name = SINK
    while name in automaton.states:
        name += "'"
    return _reachable_part(
        np.vstack([np.where(forbidden, sink, automaton.delta), loops]),
        np.append(automaton.output, 0),
        np.append(automaton.scored, False),
        automaton.start,
        automaton,
        (*automaton.states, name),
    )


def _reachable_part(
    delta: Integers,
    output: Integers,
    scored: Booleans,
    start: int,
    named: Automaton,
    states: Sequence[str],
) -> Automaton:
    """The part that can be reached from a start, with the names of another automaton."""
    kept = np.flatnonzero(reachable(delta, start))
    place = places_of(kept, len(delta))
    return Automaton(
        place[delta[kept]],
        output[kept],
        start=int(place[start]),
        symbols=named.symbols,
        states=[states[int(state)] for state in kept],
        labels=named.labels,
        scored=scored[kept],
    )
