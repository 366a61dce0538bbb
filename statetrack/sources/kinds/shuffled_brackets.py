"""Brackets of several kinds, each balanced by itself: a counter for each kind."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Unsigned, smallest_type
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.kinds._next_symbols import Language, WordsChoice
from statetrack.sources.randomness import one_true
from statetrack.sources.sampler import Sampler

PAIRS = ("()", "[]", "{}", "<>", "+-", "ab")

NUM_CHOICES = 4
"""Random integers that concern the whole word: how often it opens, and its illegal symbol."""


@KINDS.register("shuffled-brackets")
def shuffled_brackets(
    *,
    pairs: Annotated[int, argument("how many kinds of brackets", min=1, max=len(PAIRS))] = 1,
    words: WordsChoice = "members",
) -> Sampler:
    """Dyck-1 (one kind of brackets) and Shuffle-k: which brackets may come next.

    Each kind of brackets is balanced by itself, and kinds may overlap: `( [ ) ]` is a member of
    Shuffle-2. An opening bracket is always legal, a closing one where one of its kind is open; so
    the label says which of the k counters are above zero, and there are 2^k sets and `none`.

    A word is a random walk. Its chance of opening a bracket is drawn from 1/4 to 1/2, evenly and
    once for the whole word; then each symbol opens one of the kinds, or closes one of those that
    are open, evenly among them, and always opens where nothing is open. So walks come back to
    zero at all lengths (at even lengths about 3 in 8 are there), and yet the share that is deeper
    than d falls only like 1/d. A word of odd length always has something open: with one kind of
    brackets its last label is then the same in every word.

    Bhattamishra et al. 2020, arXiv 2009.11264; Sarrof et al. 2024, arXiv 2405.17394. Their words
    are whole members, in which the last label is always the same; these are beginnings of members.
    """
    return _Brackets(pairs, words == "mixed")


class _Brackets(Language):
    """Symbols 2p and 2p + 1 open and close pair p; bit p of a label says whether one is open."""

    def __init__(self, num_pairs: int, mixed: bool) -> None:
        symbols = tuple("".join(PAIRS[:num_pairs]))
        sets = np.arange(2**num_pairs)[:, None] >> np.arange(num_pairs) & 1 == 1  # [2^P, P]
        legal = np.zeros((len(sets) + 1, len(symbols)), bool)
        legal[:-1, 0::2] = True
        legal[:-1, 1::2] = sets
        labels = tuple(
            "".join(name for name, allowed in zip(symbols, row, strict=True) if allowed)
            for row in legal[:-1]
        )
        super().__init__(symbols, labels, legal, legal[0])
        self._num_pairs = num_pairs
        self._mixed = mixed

    def num_bits(self, longest: int) -> int:
        """Two for each symbol, and those of the whole word."""
        return NUM_CHOICES + 2 * longest

    def draw(self, bits: Bits, lengths: npt.NDArray[np.int64], longest: int) -> Unsigned:
        """Walks, and where words are mixed, half of them with an illegal symbol."""
        opening = 2**30 + (bits[:, 0] >> 2)  # 1/4 to 1/2 of 2^32
        steps = bits[:, NUM_CHOICES:].reshape(len(bits), longest, 2)
        counts = np.zeros((len(bits), self._num_pairs), np.int64)
        words = np.empty((len(bits), longest), smallest_type(self.num_symbols))
        rows = np.arange(len(bits))
        for time in range(longest):
            closable = counts > 0
            opens = (steps[:, time, 0] < opening) | ~closable.any(axis=1)
            pair = one_true(closable | opens[:, None], steps[:, time, 1])
            words[:, time] = 2 * pair + ~opens
            counts[rows, pair] += np.where(opens, 1, -1)
        if self._mixed:
            return self._with_an_illegal_symbol(words, lengths, bits[:, 1:NUM_CHOICES])
        return words

    def _read_legal(self, words: Unsigned) -> npt.NDArray[np.int64]:
        labels = np.zeros(words.shape, np.int64)
        for pair in range(self._num_pairs):
            step = (words == 2 * pair).astype(np.int64) - (words == 2 * pair + 1)
            labels |= (step.cumsum(axis=1) > 0).astype(np.int64) << pair
        return labels
