"""Words on a machine: short ones, ones between sets of states, and ones that distinguish states.

Letters: N words or arrangements, P points, S states, V symbols, C classes, K different actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra.machine import Machine
from statetrack.algebra.prediction import Word
from statetrack.sources import (
    Automaton,
    Booleans,
    BreadthFirst,
    Integers,
    after_each_length,
    leading_to,
)

MOST_ENTRIES = 2**22
"""Most entries of a table of the actions of short words: words times points."""
MOST_ARRANGEMENTS = 60_000
"""Most arrangements that a search goes through."""
MOST_LENGTHS = 4_000
"""The longest words of one length that are looked for."""
MOST_HISTORY = 2**26
"""Most entries of a table of what words of each length reach."""

Arrangement = tuple[int, ...]
"""States in an order."""
Way = tuple[int, Word]
"""A state of the task's own automaton, and a word that leads to it from the start."""


def run(delta: Integers, state: int, word: Word) -> int:
    """The state that a word leads to from a state."""
    for symbol in word:
        state = int(delta[state, symbol])
    return state


def label_after(automaton: Automaton, state: int, word: Word) -> int | None:
    """The label after a word from a state; None where it is not asked for, or not drawn."""
    for symbol in word:
        if not automaton.drawable[state, symbol]:
            return None
        state = int(automaton.delta[state, symbol])
    return int(automaton.output[state]) if automaton.scored[state] else None


@dataclass(frozen=True, eq=False)
class ShortestWords:
    """Words with different actions, in the order of their lengths, the empty word first."""

    maps: Integers  # [N, P]
    lengths: Integers  # [N]
    search: BreadthFirst[bytes]

    @classmethod
    def of(cls, actions: Integers, symbols: Sequence[int], most: int) -> ShortestWords:
        """The shortest words of symbols with actions `[K, P]`, about as many as there may be.

        Where it is known how many maps words make, that is the most that are worth looking for.
        """
        num_points = actions.shape[1]
        most = min(most, max(MOST_ENTRIES // num_points, len(actions) + 1))

        def steps(node: bytes) -> Iterator[tuple[int, bytes]]:
            map_ = np.frombuffer(node, np.int64)
            return (
                (symbol, action[map_].tobytes())
                for symbol, action in zip(symbols, actions, strict=True)
            )

        search = BreadthFirst([np.arange(num_points).tobytes()], steps, most)
        lengths = [0]
        for place, (_, taken) in enumerate(search):
            lengths += [lengths[place] + 1] * sum(is_new for *_, is_new in taken)
        maps = np.frombuffer(b"".join(search.nodes), np.int64).reshape(-1, num_points)
        return cls(maps, np.array(lengths), search)

    @cached_property
    def of_one_symbol(self) -> Integers:
        """The numbers of the words of one symbol."""
        return np.flatnonzero(self.lengths == 1)

    def word(self, number: int) -> Word:
        """The word of a number."""
        return self.search.word_to(self.search.nodes[number])


@dataclass(frozen=True, eq=False)
class ArrangedStates:
    """Searches among arrangements, by symbols with actions `[K, S]`.

    A word that leads an arrangement back to the same states in another order permutes them. Words
    that take two of the states to one are left out, for no word tells them apart again.
    """

    symbols: Sequence[int]
    actions: Integers

    def _search(self, begin: Arrangement) -> BreadthFirst[Arrangement]:
        """From an arrangement on, with the numbers of actions in the place of symbols."""
        rows = [row.tolist() for row in self.actions]

        def steps(node: Arrangement) -> Iterator[tuple[int, Arrangement]]:
            for number, row in enumerate(rows):
                reached = tuple([row[state] for state in node])
                if len(set(reached)) == len(reached):
                    yield number, reached

        return BreadthFirst([begin], steps, MOST_ARRANGEMENTS + 1)

    def _word(self, actions: Sequence[int]) -> Word:
        return tuple(self.symbols[action] for action in actions)

    def ways(
        self, begin: Arrangement, wanted: Callable[[Arrangement], bool], enough: int
    ) -> list[tuple[Arrangement, Word]]:
        """Shortest words to arrangements that are wanted, other than the first; shortest first.

        As many as are enough, at least where the search is not too large.
        """
        search = self._search(begin)
        found: list[Arrangement] = []
        for _, taken in search:
            found += [reached for _, reached, is_new in taken if is_new and wanted(reached)]
            if len(found) >= enough:
                break
        return [(reached, self._word(search.word_to(reached))) for reached in found]

    def shortest(self, begin: Arrangement, ends: Sequence[Arrangement]) -> Word | None:
        """A shortest word to one of some arrangements; None where it is too far to find."""
        found = self.ways(begin, set(ends).__contains__, 1)
        return found[0][1] if found else None

    def words_of_one_length(
        self, begin: Arrangement, ends: Sequence[Arrangement]
    ) -> tuple[Word, Word] | None:
        """Shortest words of one length: to one of some arrangements, and back to the first.

        None where there are none, or they are too long to find.
        """
        at_once = [tuple(action[list(begin)].tolist()) for action in self.actions]
        if begin in at_once and (reached := next((each for each in ends if each in at_once), None)):
            symbols = [self.symbols[at_once.index(each)] for each in (reached, begin)]
            return (symbols[0],), (symbols[1],)
        search = self._search(begin)
        edges = [(node, number, reached) for node, taken in search for number, reached, _ in taken]
        numbers = {node: place for place, node in enumerate(search.nodes)}
        targets = [numbers[end] for end in ends if end in numbers]
        if len(numbers) > MOST_ARRANGEMENTS or not targets:
            return None
        step = np.full((len(numbers), len(self.actions)), -1)
        for node, number, reached in edges:
            step[numbers[node], number] = numbers[reached]
        found = of_one_length(step, lambda made: bool(made[0] and made[targets].any()))
        if found is None:
            return None
        target = next(each for each in targets if found[-1][each])
        return self._word(way_back(found, step, target)), self._word(way_back(found, step, 0))


def of_one_length(step: Integers, wanted: Callable[[Booleans], bool]) -> list[Booleans] | None:
    """What words of each length reach from point 0, up to the first length that is wanted.

    `step [N, K]` is where K symbols lead, -1 nowhere. None where there is no such length among
    those that are looked at: they begin to repeat, or become too many.
    """
    history: list[Booleans] = []
    seen: set[bytes] = set()
    for made in after_each_length(step, 0):
        history.append(made)
        if len(history) > 1:
            if wanted(made):
                return history
            key = np.packbits(made).tobytes()
            if key in seen:
                break
            seen.add(key)
        if len(history) > MOST_LENGTHS or len(history) * len(step) >= MOST_HISTORY:
            break
    return None


def way_back(history: Sequence[Booleans], step: Integers, end: int) -> list[int]:
    """A word, in the columns of `step`, that leads from point 0 to a point in so many steps."""
    word = []
    for reached in reversed(history[:-1]):
        sources, actions = np.nonzero((step == end) & reached[:, None])
        word.append(int(actions[0]))
        end = int(sources[0])
    return word[::-1]


@dataclass(frozen=True, eq=False)
class DistinguishingWords:
    """Ways to the states of a machine, and to its classes, and words that tell them apart.

    Two states are in one *class* where every symbol leads from both to the same state, so that they
    behave alike from the next symbol on, as a state of a Mealy machine does however it was entered.
    Words are in symbols of the task. The states of the task's own automaton, `Machine.whole`, stand
    for those of the machine.
    """

    machine: Machine

    @cached_property
    def symbols(self) -> list[int]:
        """A symbol for each different action on the states: those of `machine.actions`, `[K]`."""
        first = np.unique(self.machine.delta.T, axis=0, return_index=True)[1]
        return [int(symbol) for symbol in first]

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

        def steps(pair: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
            for symbol in np.flatnonzero(whole.drawable[pair[0]]).tolist():
                yield (
                    symbol,
                    (int(whole.delta[pair[0], symbol]), int(smallest.delta[pair[1], symbol])),
                )

        search = BreadthFirst([(whole.start, smallest.start)], steps)
        ways: dict[int, Way] = {}
        for pair, taken in search:
            for symbol, reached, _ in taken:
                if reached[1] not in ways:
                    ways[reached[1]] = reached[0], (*search.word_to(pair), symbol)
            if len(ways) == self.machine.live.sum():
                break
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
        return sorted(np.unique(self.class_step, axis=0, return_index=True)[1].tolist())

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
        return None if apart is None else leading_to(self.machine.actions, apart)

    @cached_property
    def classes_apart(self) -> Booleans | None:
        """The same of classes: `[C, C]`."""
        later = self.apart_later
        return None if later is None else later[np.ix_(self.members, self.members)]

    def round(self, begin: int, word: Word) -> list[int]:
        """The classes that a word goes round through, from one that it comes back to."""
        found = [begin]
        while (reached := run(self.class_step.T, found[-1], word)) != begin:
            found.append(reached)
        return found

    def suffix(self, first: int, second: int, *, empty: bool = True) -> Word:
        """A shortest word after which labels tell two states apart that some word tells apart."""
        if empty and self._told(first, second):
            return ()
        delta = self.machine.delta

        def steps(pair: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
            for symbol in self.symbols if pair[0] != pair[1] else ():
                yield symbol, (int(delta[pair[0], symbol]), int(delta[pair[1], symbol]))

        search = BreadthFirst([(first, second)], steps)
        for pair, taken in search:
            for symbol, reached, _ in taken:
                if self._told(*reached):
                    return *search.word_to(pair), symbol
        raise AssertionError("labels tell these states apart")

    def class_suffix(self, first: int, second: int) -> Word:
        """A shortest word, not empty, after which labels tell two classes apart."""
        return self.suffix(int(self.members[first]), int(self.members[second]), empty=False)

    def class_suffixes(self, classes: Integers, together: Integers) -> tuple[Word, ...]:
        """Few words, none empty, of which one tells apart each pair of some classes `[N]`.

        Of a pair, both have the same number in `together [N]`.
        """
        words: list[Word] = []
        automaton = self.machine.automaton
        left = np.tril(together[:, None] == together[None, :], -1)
        place = 0  # all pairs of earlier classes are told apart
        while place < len(classes):
            if not left[place].any():
                place += 1
                continue
            other = int(left[place].argmax())
            words.append(self.class_suffix(int(classes[place]), int(classes[other])))
            ends = self.members[classes]
            for symbol in words[-1]:
                ends = self.machine.delta[ends, symbol]
            shown = np.where(automaton.scored[ends], automaton.output[ends], -1)
            alike = shown[:, None] == shown[None, :]
            asked = shown >= 0
            left &= alike | ~(asked[:, None] & asked[None, :])
        return tuple(words)

    def _told(self, first: int, second: int) -> bool:
        """Whether the labels of two states are asked for, and different."""
        automaton = self.machine.automaton
        asked = automaton.scored[first] and automaton.scored[second]
        return bool(asked and automaton.output[first] != automaton.output[second])
