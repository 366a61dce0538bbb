"""The words that a search tries: short ones repeated, runs that change nothing, words in a group.

A word u w w w ... is a prefix u and a period w, which is no power of a shorter word. Every such
word has one form whose period is the first of its rotations in alphabetical order, and one whose
prefix is as short as possible. All words are drawable: they never read a symbol that the task does
not draw in that state.

K short words, B words, T time, S states, V symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from statetrack.algebra import Machine
from statetrack.data import stream_words
from statetrack.sources import Automaton, Booleans, BreadthFirst, Integers

T = TypeVar("T")

Word = tuple[int, ...]

LONGEST_PERIOD = 12
"""The longest period that is tried."""

MOST_PREFIXES = 256
"""Most states whose shortest word becomes a prefix."""

LONGEST_LETTER = 4
"""The longest words that are looked at as one letter."""

MOST_LETTERS = 800
"""Most of them: longer words are left out where there are more."""

MOST_STATES = 64
"""Most states that runs begin in."""

MOST_SETS = 8
"""Most sets of states whose groups are tried."""


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


def follow(automaton: Automaton, word: Word, state: int | None = None) -> tuple[int, bool]:
    """The state after a word, by default from the start, and whether it can be drawn there."""
    state, drawn = automaton.start if state is None else state, True
    for symbol in word:
        drawn = drawn and bool(automaton.drawable[state, symbol])
        state = int(automaton.delta[state, symbol])
    return state, drawn


def shortest_words(automaton: Automaton) -> dict[int, Word]:
    """The shortest drawable word to every state that drawn words reach, in rising length."""

    def steps(state: int) -> list[tuple[int, int]]:
        symbols = np.flatnonzero(automaton.drawable[state])
        return list(zip(symbols.tolist(), automaton.delta[state, symbols].tolist(), strict=True))

    search = BreadthFirst([automaton.start], steps)
    for _ in search:
        pass
    return {state: search.word_to(state) for state in search.nodes}


# --- powers of short words ---


def periodic_words(automaton: Automaton, most: int, draw: np.random.Generator) -> list[Periodic]:
    """At most so many drawable words u w w w ..., in rising length of w.

    Half of them begin with the period, the rest in the state that a prefix leads to, for the
    shortest drawable word to each state. All periods up to some length are tried; of the next
    length, and of the words with a prefix, so many are drawn that there are `most` in all.
    """
    starts = list(shortest_words(automaton).items())[: MOST_PREFIXES + 1]
    paths: list[list[_Path]] = [[(word, (), state)] for state, word in starts]
    bare: dict[Periodic, None] = {}
    later: dict[Periodic, None] = {}
    for _ in range(LONGEST_PERIOD):
        begun = _longer(automaton, paths[0], 4 * most, draw)
        others = _longer(automaton, [path for each in paths[1:] for path in each], 4 * most, draw)
        paths = [begun, others]
        for found, layer in ((bare, begun), (later, others)):
            words = [Periodic(prefix, period) for prefix, period, _ in layer]
            words = [word for word in words if is_primitive(word.period)]
            room = 2 * most - len(found)
            found |= dict.fromkeys(_drawn(drawable_words(automaton, words), room, draw))
        if len(bare) >= most and (len(later) >= most or not others):
            break
    num_later = min(len(later), max(most // 2, most - len(bare)))
    chosen = [*list(bare)[: most - num_later], *list(later)[:num_later]]
    return list(dict.fromkeys(word.with_shortest_prefix() for word in chosen))


def drawable_words(automaton: Automaton, words: Sequence[Periodic]) -> list[Periodic]:
    """Those of some words that never read a symbol which is not drawn in their state."""
    if automaton.drawable.all():
        return list(words)
    return [word for word in words if _is_drawable(automaton, word)]


def _is_drawable(automaton: Automaton, word: Periodic) -> bool:
    state, drawn = follow(automaton, word.prefix)
    seen = set[int]()
    while drawn and state not in seen:
        seen.add(state)
        state, drawn = follow(automaton, word.period, state)
    return drawn


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
    return _drawn(longer, most, draw)


def _drawn(items: list[T], most: int, draw: np.random.Generator) -> list[T]:
    """At most so many of some items, in their order."""
    if len(items) <= most:
        return items
    return [items[place] for place in np.sort(draw.permutation(len(items))[:most]).tolist()]


# --- words that a model is likely to answer wrongly ---


def idle_runs(automaton: Automaton, most: int, draw: np.random.Generator) -> list[Periodic]:
    """Words u w w w ..., where u leads to a state and w leaves that state as it is.

    For every state (the first ones, where there are many) the shortest drawable word u, and short
    primitive words w. Of more than `most`, half are the first ones.
    """
    letters = _Letters(automaton)
    runs = []
    for state, prefix in list(shortest_words(automaton).items())[:MOST_STATES]:
        loops = np.flatnonzero((letters.maps[:, state] == state) & letters.drawable[:, state])
        words = [letters.words[number] for number in loops.tolist()]
        runs += [Periodic(prefix, word) for word in words if is_primitive(word)]
    runs = list(dict.fromkeys(run.with_shortest_prefix() for run in runs))
    first, rest = runs[: most // 2], runs[most // 2 :]
    return first + _drawn(rest, most - len(first), draw)


def words_in_groups(
    automaton: Automaton, most: int, length: int, draw: np.random.Generator
) -> list[Periodic]:
    """Random words of short words that all permute one set of states: they never merge its states.

    The sets are that of all states, and the images of short words that change nothing when they
    are repeated. Of each group, some words mix all of these short words and some only a few. A word
    is `length` symbols long.
    """
    letters = _Letters(automaton)
    prefixes = shortest_words(automaton)
    groups = []
    for states in letters.permuted_sets(np.array(sorted(prefixes))):
        members = np.flatnonzero(
            letters.drawable[:, states].all(1)
            & (np.sort(letters.maps[:, states], axis=1) == states).all(1)
        )
        if (letters.maps[np.ix_(members, states)] != states).any():
            first = min((prefixes[state] for state in states.tolist()), key=len)
            groups.append((first, [letters.words[number] for number in members.tolist()]))
    found = []
    for number in range(most if groups else 0):
        first, moves = groups[number % len(groups)]
        few = draw.permutation(len(moves))[: int(draw.integers(1, 4))]
        chosen = [moves[place] for place in few] if number // len(groups) % 2 else moves
        word: list[int] = list(first)
        while len(word) < length:
            for place in draw.integers(len(chosen), size=64).tolist():
                word += chosen[place]
        found.append(explicit(tuple(word[:length])))
    return found


def sampled_words(automaton: Automaton, num_words: int, length: int, seed: int) -> list[Periodic]:
    """Words as the task draws them, of one length."""
    pieces = stream_words(automaton, num_words, length, seed)
    rows = np.concatenate([piece.symbols for piece in pieces], axis=1).astype(int).tolist()
    return [explicit(tuple(row)) for row in rows]


class _Letters:
    """All words up to some length, with the maps of the states that they make.

    `maps` [K, S], and `drawable` [K, S] where each can be read. Those of one symbol in any case.
    """

    def __init__(self, automaton: Automaton) -> None:
        states = np.arange(automaton.num_states)
        layer: list[tuple[Word, Integers, Booleans]] = [((), states, np.ones(len(states), bool))]
        found: list[tuple[Word, Integers, Booleans]] = []
        for _ in range(LONGEST_LETTER):
            if found and len(found) + len(layer) * automaton.num_symbols > MOST_LETTERS:
                break
            layer = [
                (
                    (*word, symbol),
                    automaton.delta[moved, symbol],
                    drawn & automaton.drawable[moved, symbol],
                )
                for word, moved, drawn in layer
                for symbol in range(automaton.num_symbols)
            ]
            layer = [each for each in layer if each[2].any()]
            found += layer
        words, maps, drawable = zip(*found, strict=True)
        self.words, self.maps, self.drawable = words, np.array(maps), np.array(drawable)

    def permuted_sets(self, reached: Integers) -> list[Integers]:
        """The sets of states, two or more, that some short words permute."""
        powers = self.maps.copy()
        while True:  # an image shrinks at least by one, or stays
            smaller = np.take_along_axis(self.maps, powers, 1)
            shrunk = _distinct(smaller) != _distinct(powers)
            if not shrunk.any():
                break
            powers[shrunk] = smaller[shrunk]
        images = [tuple(dict.fromkeys(row)) for row in np.sort(powers[:, reached], 1).tolist()]
        several = dict.fromkeys(image for image in images if len(image) > 1)
        found = dict.fromkeys([tuple(reached.tolist()), *several])
        return [np.array(states) for states in islice(found, MOST_SETS)]


def _distinct(rows: Integers) -> Integers:
    """How many distinct numbers each row has."""
    found: Integers = 1 + (np.diff(np.sort(rows, 1)) != 0).sum(1)
    return found


# --- random words ---


class RandomWords:
    """So many random words, of which more and more symbols are read, in constant memory.

    Symbols are uniform among those that can be drawn in the state reached, whatever the task's own
    weights: no symbol is rare.
    """

    def __init__(self, machine: Machine, num_words: int, seed: int) -> None:
        self._machine = machine
        self._draw = np.random.default_rng(seed)
        self._allowed = [np.flatnonzero(row) for row in drawable_symbols(machine)]
        self.states = np.full(num_words, machine.automaton.start)

    def read(self, length: int) -> tuple[Integers, Integers]:
        """The next symbols of every word, and the state after each: `[B, T]` both."""
        automaton, num_words = self._machine.automaton, len(self.states)
        if self._machine.sink is None:
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
    if machine.sink is None:
        return np.ones(machine.delta.shape, bool)
    drawable: Booleans = machine.delta != machine.sink
    return drawable
