"""Random words of a machine, read on and on in constant memory.

Symbols are uniform among those that can be drawn in the state reached, whatever the task's own
weights: no symbol is rare.

B words, T time, S states, V symbols.
"""

from __future__ import annotations

import numpy as np

from statetrack.algebra import Machine
from statetrack.sources import Booleans, Integers


class RandomWords:
    """So many random words, of which more and more symbols are read."""

    def __init__(self, machine: Machine, num_words: int, seed: int) -> None:
        self._machine = machine
        self._draw = np.random.default_rng(seed)
        self._allowed = [np.flatnonzero(row) for row in drawable_symbols(machine)]
        self.states = np.full(num_words, machine.automaton.start)

    def read(self, length: int) -> tuple[Integers, Integers]:
        """The next symbols of every word, and the state after each: `[B, T]` both."""
        automaton, num_words = self._machine.automaton, len(self.states)
        if self._machine.void is None:
            symbols = self._draw.integers(automaton.num_symbols, size=(num_words, length))
            states = automaton.states_after(symbols, self.states).astype(np.int64)
        else:
            symbols = np.empty((num_words, length), np.int64)
            states = np.empty_like(symbols)
            number = np.array([len(each) for each in self._allowed])
            table = np.zeros((len(number), max(1, number.max())), np.int64)
            for state, each in enumerate(self._allowed):
                table[state, : len(each)] = each
            at = self.states
            for position in range(length):
                places = (self._draw.random(num_words) * number[at]).astype(np.int64)
                symbols[:, position] = table[at, places]
                at = automaton.delta[at, symbols[:, position]]
                states[:, position] = at
        self.states = states[:, -1]
        return symbols, states


def drawable_symbols(machine: Machine) -> Booleans:
    """Which symbols can be drawn in which states of a machine, `[S, V]`."""
    if machine.void is None:
        return np.ones(machine.delta.shape, bool)
    drawable: Booleans = machine.delta != machine.void
    return drawable
