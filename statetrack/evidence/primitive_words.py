"""Short words that are no power of a shorter one, to be repeated.

A word u w w w ... is a prefix u and a period w. Every such word has one form whose period is the
first of its rotations in alphabetical order, and one whose prefix is as short as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from statetrack.sources import Automaton

T = TypeVar("T")

Word = tuple[int, ...]

LONGEST_PERIOD = 12
"""The longest period that is tried."""

MOST_PREFIXES = 256
"""Most states whose shortest word becomes a prefix."""


@dataclass(frozen=True)
class Periodic:
    """A word without end: `prefix`, then `period` again and again."""

    prefix: Word
    period: Word

    def symbols(self, begin: int, end: int) -> NDArray[np.int64]:
        """The symbols at positions `begin .. end - 1`, counted from 0."""
        cut = max(begin, min(end, len(self.prefix)))
        positions = np.arange(cut, end) - len(self.prefix)
        prefix, period = self._arrays
        return np.concatenate([prefix[begin:cut], period[positions % len(self.period)]])

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array(self.prefix, np.int64), np.array(self.period, np.int64)

    def with_first_rotation(self) -> Periodic:
        """The same word, with the alphabetically first rotation of the period."""
        period = self.period
        turn = min(range(len(period)), key=lambda start: period[start:] + period[:start])
        return Periodic(self.prefix + period[:turn], period[turn:] + period[:turn])

    def with_shortest_prefix(self) -> Periodic:
        """The same word, with as short a prefix as possible."""
        prefix, period = self.prefix, self.period
        while prefix and prefix[-1] == period[-1]:
            prefix, period = prefix[:-1], period[-1:] + period[:-1]
        return Periodic(prefix, period)


def explicit(word: Word) -> Periodic:
    """A word that is to be read to its end only."""
    return Periodic(word[:-1], word[-1:])


def repeating_part(word: Word) -> tuple[Word, Word, Word]:
    """A word as prefix, period and suffix: the period is read again and again between the two.

    That is its longest part with a period of at most `LONGEST_PERIOD`, where it makes up half of
    the word; otherwise the last symbol alone is the period.
    """
    symbols = np.array(word)
    begin, end, length = len(word) - 1, len(word), 1
    for size in range(1, min(LONGEST_PERIOD, len(word) // 2) + 1):
        differs = np.flatnonzero(symbols[:-size] != symbols[size:])
        edges = np.concatenate([[-1], differs, [len(word) - size]])
        place = int(np.diff(edges).argmax())
        first, last = int(edges[place]) + 1, int(edges[place + 1]) + size
        if last - first > max(end - begin, 2 * size - 1) and 2 * (last - first) >= len(word):
            begin, end, length = first, last, size
    return word[:begin], word[begin : begin + length], word[end:]


def is_primitive(word: Word) -> bool:
    """Whether a word is no power of a shorter one."""
    length = len(word)
    return all(length % size or word != word[:size] * (length // size) for size in range(1, length))


def periodic_words(automaton: Automaton, most: int, draw: np.random.Generator) -> list[Periodic]:
    """At most so many drawable words u w w w ..., in rising length of w.

    Half of them begin with the period, the rest in the state that a prefix leads to, for the
    shortest drawable word to each state. All periods up to some length are tried; of the next
    length, and of the words with a prefix, so many are drawn that there are `most` in all.
    """
    starts = shortest_words(automaton)[: MOST_PREFIXES + 1]
    paths: list[list[_Path]]
    paths = [[(word, (), state_after(automaton, word))] for word in starts]
    bare: dict[Periodic, None] = {}
    later: dict[Periodic, None] = {}
    for _ in range(LONGEST_PERIOD):
        begun = _longer(automaton, paths[0], 4 * most, draw)
        others = _longer(automaton, [path for each in paths[1:] for path in each], 4 * most, draw)
        paths = [begun, others]
        for found, layer in ((bare, begun), (later, others)):
            room = 2 * most - len(found)
            words = [
                Periodic(prefix, period) for prefix, period, _ in layer if is_primitive(period)
            ]
            found |= dict.fromkeys(_some(drawable_words(automaton, words), room, draw))
        if len(bare) >= most and (len(later) >= most or not others):
            break
    num_later = min(len(later), max(most // 2, most - len(bare)))
    chosen = [*list(bare)[: most - num_later], *list(later)[:num_later]]
    return list(dict.fromkeys(word.with_shortest_prefix() for word in chosen))


def shortest_words(automaton: Automaton) -> list[Word]:
    """The shortest drawable word to every state that drawn words reach, in rising length."""
    words: dict[int, Word] = {automaton.start: ()}
    frontier = [automaton.start]
    while frontier:
        fresh = []
        for state in frontier:
            for symbol in np.flatnonzero(automaton.drawable[state]).tolist():
                target = int(automaton.delta[state, symbol])
                if target not in words:
                    words[target] = (*words[state], symbol)
                    fresh.append(target)
        frontier = fresh
    return list(words.values())


def drawable_words(automaton: Automaton, words: Sequence[Periodic]) -> list[Periodic]:
    """Those of some words that never read a symbol which is not drawn in their state."""
    if automaton.drawable.all():
        return list(words)
    return [word for word in words if _is_drawable(automaton, word)]


def _is_drawable(automaton: Automaton, word: Periodic) -> bool:
    state, seen = automaton.start, set[int]()
    symbols: Word = word.prefix
    while True:
        for symbol in symbols:
            if not automaton.drawable[state, symbol]:
                return False
            state = int(automaton.delta[state, symbol])
        if state in seen:
            return True
        seen.add(state)
        symbols = word.period


def state_after(automaton: Automaton, word: Word) -> int:
    """The state after a word."""
    state = automaton.start
    for symbol in word:
        state = int(automaton.delta[state, symbol])
    return state


_Path = tuple[Word, Word, int]
"""A prefix, a period so far, and the automaton's state after both."""


def _longer(
    automaton: Automaton, paths: Sequence[_Path], most: int, draw: np.random.Generator
) -> list[_Path]:
    """The paths with one more drawable symbol; at most so many, drawn where there are more."""
    longer = [
        (prefix, (*period, symbol), int(automaton.delta[state, symbol]))
        for prefix, period, state in paths
        for symbol in np.flatnonzero(automaton.drawable[state]).tolist()
    ]
    return _some(longer, most, draw)


def _some(items: list[T], most: int, draw: np.random.Generator) -> list[T]:
    """At most so many of some items, in their order."""
    if len(items) <= most:
        return items
    return [items[place] for place in np.sort(draw.permutation(len(items))[:most]).tolist()]
