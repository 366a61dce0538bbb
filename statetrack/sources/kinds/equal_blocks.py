"""Blocks of equal length, one for each letter: a^n b^n, a^n b^n c^n and so on."""

from __future__ import annotations

import string
from typing import Annotated

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Unsigned, smallest_type
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.kinds._next_symbols import Language, WordsChoice, from_to, half
from statetrack.sources.sampler import Sampler

NUM_CHOICES = 5
"""Random integers of a word: two for the length of its blocks, three for its illegal symbol."""


@KINDS.register("equal-blocks")
def equal_blocks(
    *,
    letters: Annotated[int, argument("how many letters, from a", min=2, max=8)] = 2,
    words: WordsChoice = "members",
) -> Sampler:
    """a^n b^n, a^n b^n c^n and so on, n >= 1: which letters may come next.

    After an a, another a or the first b is legal (label `ab`); later only one letter is, and
    where the last block is as long as the first, none is but the word may end (label `end`).

    A word of length T begins the member whose blocks have n letters each. For half of the words
    n is as small as can be, T / k rounded up for k letters, so that they are at their end or
    nearly so; for the others n is drawn evenly from there to T. At lengths that k does not divide
    no word is at its end, and then nearly all last labels are the same for two letters: test at
    multiples of k. There are few words: the length and n determine one.

    Bhattamishra et al. 2020, arXiv 2009.11264; Sarrof et al. 2024, arXiv 2405.17394, whose words
    are whole members.
    """
    return _EqualBlocks(letters, words == "mixed")


class _EqualBlocks(Language):
    """Label 0 is `ab`; label j is the letter j alone; the last but one is `end`."""

    def __init__(self, num_letters: int, mixed: bool) -> None:
        symbols = tuple(string.ascii_lowercase[:num_letters])
        legal = np.zeros((num_letters + 2, num_letters), bool)
        legal[0, :2] = True
        legal[np.arange(1, num_letters), np.arange(1, num_letters)] = True
        labels = ("ab", *symbols[1:], "end")
        super().__init__(symbols, labels, legal, np.arange(num_letters) == 0)
        self._mixed = mixed

    def num_bits(self, longest: int) -> int:
        """The same for words of all lengths."""
        return NUM_CHOICES

    def draw(self, bits: Bits, lengths: npt.NDArray[np.int64], longest: int) -> Unsigned:
        """Beginnings of members, and where words are mixed, half with an illegal symbol."""
        shortest = -(-lengths // self.num_symbols)
        block = np.where(half(bits[:, 0]), shortest, from_to(shortest, lengths, bits[:, 1]))
        letter = np.arange(longest) // block[:, None]
        words = letter.clip(max=self.num_symbols - 1).astype(smallest_type(self.num_symbols))
        if self._mixed:
            return self._with_an_illegal_symbol(words, lengths, bits[:, 2:])
        return words

    def _read_legal(self, words: Unsigned) -> npt.NDArray[np.int64]:
        counts = (words[..., None] == np.arange(self.num_symbols)).cumsum(axis=1)  # [N, T, V]
        letter = words.astype(np.int64)
        own = np.take_along_axis(counts, letter[..., None], axis=2)[..., 0]
        return np.where((letter > 0) & (own >= counts[..., 0]), letter + 1, letter)
