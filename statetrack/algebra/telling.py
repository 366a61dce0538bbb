"""Words that lead to the states of a machine, and words that tell its states apart.

Two views of the states are used. The machine's own, and *classes*: two states are in one class
where every symbol leads from both to the same state, so that they behave alike from the next symbol
on, as a state of a Mealy machine does however it was entered.

Words are in symbols of the task. The states of the task's own automaton, `Machine.whole`, stand for
those of the machine.

Letters: S states, V symbols, C classes, K different actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra.machine import Machine
from statetrack.algebra.short_words import run, word_to
from statetrack.algebra.witness import Word
from statetrack.sources import Automaton, Booleans, Integers

Way = tuple[int, Word]
"""A state of the task's own automaton, and a word that leads to it from the start."""


@dataclass(frozen=True, eq=False)
class Telling:
    """Ways to the states of a machine, and to its classes, and words that tell them apart."""

    machine: Machine

    @cached_property
    def symbols(self) -> list[int]:
        """A symbol for each different action on the states: those of `machine.actions`, `[K]`."""
        _, symbols = np.unique(self.machine.delta.T, axis=0, return_index=True)
        return [int(symbol) for symbol in symbols]

    @cached_property
    def ways(self) -> dict[int, Way]:
        """A shortest way to every state of the machine that drawn words lead to."""
        whole, smallest = self.machine.whole, self.machine.automaton
        kept = whole.scored[whole.start] == smallest.scored[smallest.start] and (
            whole.output[whole.start] == smallest.output[smallest.start]
        )  # else the machine has another state for it, in its class
        return self.entered | ({smallest.start: (whole.start, ())} if kept else {})

    @cached_property
    def entered(self) -> dict[int, Way]:
        """A shortest way that is not empty to every state that such a drawn word leads to."""
        whole, smallest = self.machine.whole, self.machine.automaton
        begin = (whole.start, smallest.start)
        before: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
        ways: dict[int, Way] = {}
        queue = [begin]
        for node in queue:
            for symbol in np.flatnonzero(whole.drawable[node[0]]).tolist():
                reached = (int(whole.delta[node[0], symbol]), int(smallest.delta[node[1], symbol]))
                if reached != begin and reached not in before:
                    before[reached] = (node, symbol)
                    queue.append(reached)
                if reached[1] not in ways:
                    word = (*word_to(before, node), symbol)
                    ways[reached[1]] = (reached[0], word)
        return ways

    @cached_property
    def class_ways(self) -> dict[int, Way]:
        """A shortest way to some state of every class."""
        start = int(self.class_of[self.machine.automaton.start])
        ways: dict[int, Way] = {start: (self.machine.whole.start, ())}
        for state, way in sorted(self.ways.items(), key=lambda each: len(each[1][1])):
            ways.setdefault(int(self.class_of[state]), way)
        return ways

    @cached_property
    def class_of(self) -> Integers:
        """The class of every state: `[S]`."""
        return np.unique(self.machine.delta, axis=0, return_inverse=True)[1].reshape(-1)

    @cached_property
    def members(self) -> Integers:
        """A state of every class: `[C]`."""
        return np.unique(self.class_of, return_index=True)[1]

    @cached_property
    def class_step(self) -> Integers:
        """Where every symbol leads from every class: `[V, C]`."""
        return np.ascontiguousarray(self.class_of[self.machine.delta[self.members]].T)

    @cached_property
    def class_symbols(self) -> list[int]:
        """The first symbol of each different action on the classes: `[K]`."""
        _, symbols = np.unique(self.class_step, axis=0, return_index=True)
        return sorted(symbols.tolist())

    @property
    def class_actions(self) -> Integers:
        """The actions of `class_symbols`: `[K, C]`."""
        return self.class_step[self.class_symbols]

    @cached_property
    def apart_later(self) -> Booleans | None:
        """Which states labels tell apart after a word that is not empty: `[S, S]`.

        None where there are too many pairs to tell.
        """
        apart = self.machine.apart
        if apart is None:
            return None
        later = np.zeros_like(apart)
        for action in self.machine.actions:
            later |= apart[np.ix_(action, action)]
        return later

    @cached_property
    def classes_apart(self) -> Booleans | None:
        """The same of classes: `[C, C]`."""
        later = self.apart_later
        return None if later is None else later[np.ix_(self.members, self.members)]

    def class_after(self, begin: int, word: Word) -> int:
        """The class that a word leads to from a class."""
        for symbol in word:
            begin = int(self.class_step[symbol, begin])
        return begin

    def round(self, begin: int, word: Word) -> list[int]:
        """The classes that a word goes round through, from one that it comes back to."""
        found = [begin]
        while (reached := self.class_after(found[-1], word)) != begin:
            found.append(reached)
        return found

    def suffix(self, first: int, second: int, *, empty: bool = True) -> Word:
        """A shortest word after which labels tell two states apart that some word tells apart."""
        if empty and self._told(first, second):
            return ()
        begin = (first, second)
        before: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
        seen, queue = {begin}, [begin]
        for node in queue:
            for symbol in self.symbols:
                delta = self.machine.delta
                reached = int(delta[node[0], symbol]), int(delta[node[1], symbol])
                if self._told(*reached):
                    return (*word_to(before, node), symbol)
                if reached not in seen and reached[0] != reached[1]:
                    seen.add(reached)
                    before[reached] = (node, symbol)
                    queue.append(reached)
        raise AssertionError("labels tell these states apart")

    def class_suffix(self, first: int, second: int) -> Word:
        """A shortest word, not empty, after which labels tell two classes apart."""
        states = int(self.members[first]), int(self.members[second])
        return self.suffix(*states, empty=False)

    def class_suffixes(self, pairs: list[tuple[int, int]]) -> tuple[Word, ...]:
        """Few words, none empty, of which one tells apart each of some pairs of classes."""
        words: list[Word] = []
        while pairs:
            words.append(self.class_suffix(*pairs[0]))
            ends = {
                each: run(self.machine.delta, int(self.members[each]), words[-1])
                for each in {state for pair in pairs for state in pair}
            }
            pairs = [pair for pair in pairs if not self._told(ends[pair[0]], ends[pair[1]])]
        return tuple(words)

    def _told(self, first: int, second: int) -> bool:
        """Whether the labels of two states are asked for, and different."""
        automaton = self.machine.automaton
        asked = automaton.scored[first] and automaton.scored[second]
        return bool(asked and automaton.output[first] != automaton.output[second])


def label_after(automaton: Automaton, state: int, word: Word) -> int | None:
    """The label after a word from a state; None where it is not asked for, or not drawn."""
    for symbol in word:
        if not automaton.drawable[state, symbol]:
            return None
        state = int(automaton.delta[state, symbol])
    return int(automaton.output[state]) if automaton.scored[state] else None
