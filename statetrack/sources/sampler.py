"""Samplers: where the words of a task come from when its language is not regular.

A sampler draws whole words, and labels any word that it is given, but it has no finite set of
states, so nothing that needs an automaton can be computed from it.

Letters: N words, T time, V symbols, C labels, W random integers for a word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from statetrack.sources.automaton import Automaton, Booleans
from statetrack.sources.running import Unsigned

Bits = npt.NDArray[np.uint32]


class Sampler(ABC):
    """A law over words of each length, and a label after each prefix of any word.

    Words may be conditioned on their length, so a prefix of a drawn word need not be distributed
    like a drawn word. Everything is a function of the random integers given: the same integers
    give the same word on every machine, whichever words are drawn beside it.
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def num_symbols(self) -> int:
        """V."""
        return len(self.symbols)

    @property
    def num_labels(self) -> int:
        """C, including labels that no drawn word has."""
        return len(self.labels)

    @abstractmethod
    def num_bits(self, longest: int) -> int:
        """W: how many 32-bit integers a word takes, when no word is longer than `longest`."""

    @abstractmethod
    def draw(self, bits: Bits, lengths: npt.NDArray[np.int64], longest: int) -> Unsigned:
        """Words `[N, longest]` of the given lengths `[N]`, from uniform integers `[N, W]`.

        What stands behind a word's end means nothing. The result has the smallest unsigned type
        that holds V symbols.
        """

    @abstractmethod
    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """The label after every symbol of words `[..., T]`, and whether it is asked for.

        Any word can be read, also one that is never drawn. A label depends on the symbols up to
        its own place alone. Labels have the smallest unsigned type that holds C.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(V={self.num_symbols}, C={self.num_labels})"


Source = Automaton | Sampler
"""What a task can be made of."""


def one_of(counts: npt.NDArray[np.integer] | int, bits: Bits) -> npt.NDArray[np.int64]:
    """A number from 0 to count - 1 for each integer, all equally likely; 0 where a count is 0."""
    scaled = bits.astype(np.uint64) * np.asarray(counts, np.uint64)
    return (scaled >> np.uint64(32)).astype(np.int64)


def one_true(choices: Booleans, bits: Bits) -> npt.NDArray[np.int64]:
    """The place of one True in each row `[N, K]`, all equally likely; 0 in a row without any."""
    seen = choices.cumsum(axis=1)
    wanted = one_of(seen[:, -1], bits)
    places: npt.NDArray[np.int64] = (seen > wanted[:, None]).argmax(axis=1)
    return places
