"""The shortest words of all different actions on some points, up to a number of them.

Letters: N words, P points, K symbols.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from statetrack.algebra.witness import Word
from statetrack.sources import Integers

MOST_ENTRIES = 2**22
"""Most entries of the table of actions: words times points."""

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True, eq=False)
class ShortWords:
    """Words with different actions, in the order of their lengths, the empty word first."""

    maps: Integers  # [N, P]
    lengths: Integers  # [N]
    found_from: tuple[int, ...]
    found_by: tuple[int, ...]

    @classmethod
    def of(cls, actions: Integers, symbols: Sequence[int], most: int) -> ShortWords:
        """The shortest words of symbols with actions `[K, P]`, about as many as there may be."""
        num_points = actions.shape[1]
        most = min(most, max(MOST_ENTRIES // num_points, len(actions) + 1))
        identity = np.arange(num_points)
        seen = {identity.tobytes()}
        maps, lengths, found_from, found_by = [identity], [0], [-1], [-1]
        for place, map_ in enumerate(maps):
            if len(maps) >= most:
                break
            for symbol, action in zip(symbols, actions, strict=True):
                reached = action[map_]
                key = reached.tobytes()
                if key not in seen:
                    seen.add(key)
                    maps.append(reached)
                    lengths.append(lengths[place] + 1)
                    found_from.append(place)
                    found_by.append(symbol)
        return cls(np.array(maps), np.array(lengths), tuple(found_from), tuple(found_by))

    @cached_property
    def of_one_symbol(self) -> Integers:
        """The numbers of the words of one symbol."""
        return np.flatnonzero(self.lengths == 1)

    def word(self, number: int) -> Word:
        """The word of a number."""
        word = []
        while number:
            word.append(self.found_by[number])
            number = self.found_from[number]
        return tuple(reversed(word))


def power(maps: Integers, exponent: int) -> Integers:
    """Every map `[N, P]` to a power that is 1 or more."""
    result, square = None, maps
    while exponent:
        if exponent & 1:
            result = square if result is None else np.take_along_axis(square, result, axis=1)
        square = np.take_along_axis(square, square, axis=1)
        exponent >>= 1
    assert result is not None, "the exponent is 1 or more"
    return result


def run(delta: Integers, state: int, word: Word) -> int:
    """The state that a word leads to from a state."""
    for symbol in word:
        state = int(delta[state, symbol])
    return state


def word_to(before: Mapping[Node, tuple[Node, int]], node: Node) -> Word:
    """The word along which a search came to a node; the first node has none before it."""
    word = []
    while node in before:
        node, symbol = before[node]
        word.append(symbol)
    return tuple(reversed(word))
