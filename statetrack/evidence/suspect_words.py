"""Words that a model is likely to answer wrongly: runs that change nothing, and words in a group.

All of them are drawable: they never read a symbol that the task does not draw in that state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statetrack.data import stream_words
from statetrack.evidence.primitive_words import (
    Periodic,
    Word,
    explicit,
    is_primitive,
    shortest_words,
    state_after,
)
from statetrack.sources import Automaton

LONGEST_LETTER = 4
"""The longest words that are looked at as one letter."""

MOST_LETTERS = 800
"""Most of them: longer words are left out where there are more."""

MOST_STATES = 64
"""Most states that runs begin in."""

MOST_SETS = 8
"""Most sets of states whose groups are tried."""


@dataclass(frozen=True)
class _Letters:
    """All short words, with the maps of the states that they make."""

    words: tuple[Word, ...]
    maps: NDArray[np.int64]  # [K, S]
    drawable: NDArray[np.bool_]  # [K, S]: whether the word can be read from that state

    @classmethod
    def of(cls, automaton: Automaton) -> _Letters:
        """All words up to some length: those of the first length in any case."""
        states = np.arange(automaton.num_states)
        words: list[Word] = []
        maps, allowed = [], []
        layer: list[tuple[Word, NDArray[np.int64], NDArray[np.bool_]]]
        layer = [((), states, np.ones(len(states), bool))]
        for _ in range(LONGEST_LETTER):
            if words and len(words) + len(layer) * automaton.num_symbols > MOST_LETTERS:
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
            words += [word for word, _, _ in layer]
            maps += [moved for _, moved, _ in layer]
            allowed += [drawn for _, _, drawn in layer]
        return cls(tuple(words), np.array(maps), np.array(allowed))


def idle_runs(automaton: Automaton, most: int, draw: np.random.Generator) -> list[Periodic]:
    """Words u w w w ..., where u leads to a state and w leaves that state as it is.

    For every state (the first ones, where there are many) the shortest drawable word u, and short
    primitive words w.
    """
    letters = _Letters.of(automaton)
    runs = []
    for prefix in shortest_words(automaton)[:MOST_STATES]:
        state = state_after(automaton, prefix)
        loops = np.flatnonzero((letters.maps[:, state] == state) & letters.drawable[:, state])
        words = [letters.words[number] for number in loops.tolist()]
        runs += [Periodic(prefix, word) for word in words if is_primitive(word)]
    return _some(list(dict.fromkeys(run.with_shortest_prefix() for run in runs)), most, draw)


def words_in_groups(
    automaton: Automaton, most: int, length: int, draw: np.random.Generator
) -> list[Periodic]:
    """Random words of short words that all permute one set of states: they never merge its states.

    The sets are that of all states, and the images of short words that change nothing when they
    are repeated. Of each group, some words mix all of these short words and some only a few. A word
    is `length` symbols long.
    """
    letters = _Letters.of(automaton)
    prefixes = {state_after(automaton, word): word for word in shortest_words(automaton)}
    groups = []
    for states in _permuted_sets(letters, np.array(sorted(prefixes))):
        members = np.flatnonzero(
            letters.drawable[:, states].all(1)
            & (np.sort(letters.maps[:, states], axis=1) == states).all(1)
        )
        moves = letters.maps[np.ix_(members, states)] != states
        if moves.any():
            first = min((prefixes[state] for state in states.tolist()), key=len)
            groups.append((first, [letters.words[number] for number in members.tolist()]))
    found = []
    for number in range(most if groups else 0):
        first, members_ = groups[number % len(groups)]
        few = draw.permutation(len(members_))[: int(draw.integers(1, 4))]
        chosen = [members_[place] for place in few] if number // len(groups) % 2 else members_
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


def _permuted_sets(letters: _Letters, reached: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The sets of states, two or more, that some short words permute."""
    found = {tuple(reached.tolist()): reached}
    for action in letters.maps:
        power = action
        for _ in range(len(action)):  # the image shrinks at least by one, or stays
            smaller = action[power]
            if len(np.unique(smaller)) == len(np.unique(power)):
                break
            power = smaller
        image = np.unique(power[reached])
        if len(image) > 1:
            found.setdefault(tuple(image.tolist()), image)
        if len(found) == MOST_SETS:
            break
    return list(found.values())


def _some(words: list[Periodic], most: int, draw: np.random.Generator) -> list[Periodic]:
    """At most so many of some words, in their order; the first half are the first ones."""
    if len(words) <= most:
        return words
    first, rest = words[: most // 2], words[most // 2 :]
    chosen = np.sort(draw.permutation(len(rest))[: most - len(first)])
    return first + [rest[place] for place in chosen.tolist()]
