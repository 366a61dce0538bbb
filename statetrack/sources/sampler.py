"""Samplers, which draw the words of a language that is not regular, and streams of fresh words.

A sampler draws whole words, and labels any word that it is given, but it has no finite set of
states, so nothing that needs an automaton can be computed from it. Words may be conditioned on
their length, so a prefix of a drawn word need not be distributed like a drawn word. A stream has
words of any source, in batches that can be asked for in any order.

Letters: N batches in a block, B words per batch, T time.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from statetrack.sources.arrays import Batch, Supervision
from statetrack.sources.automaton import Purpose, Source
from statetrack.sources.lengths import LengthDistribution
from statetrack.sources.randomness import RandomBits
from statetrack.sources.randomness import one_of as one_of
from statetrack.sources.randomness import one_true as one_true


class Sampler(Source):
    """A source given by two procedures: one that draws words, and one that labels them."""

    noun: ClassVar[str] = "a sampler"


class WordStream:
    """An endless row of fresh words: lengths from a distribution, symbols as the source draws them.

    Streams of different seeds or purposes are independent, even at equal batch indices.

    Raises `SettingsError` for lengths that are too long for the source.
    """

    def __init__(
        self,
        source: Source,
        lengths: LengthDistribution,
        supervision: Supervision,
        seed: int,
        purpose: Purpose,
    ) -> None:
        source.check_length(lengths.longest)
        source = source.part(purpose)
        self._source = source
        self._lengths = lengths
        self._supervision = supervision
        self._bits = RandomBits(seed, purpose)
        self._bits_per_word = source.num_bits(lengths.longest)

    def block(
        self,
        first: int,
        num_batches: int,
        batch_size: int,
        progress: float | NDArray[np.float64] = 1.0,
    ) -> Batch:
        """The batches `first .. first + num_batches - 1`: arrays `[N, B, T]`.

        T is the longest length that may be drawn, whichever was; under a curriculum it is that
        of the block's greatest `progress`, so there a batch's padding depends on its block.
        """
        width = batch_size * (1 + self._bits_per_word)
        bits = self._bits.read(first * width, num_batches * width).reshape(num_batches, width)
        progress = np.broadcast_to(np.asarray(progress, np.float64), (num_batches,))
        lengths = self._lengths.draw(bits[:, :batch_size], progress[:, None])  # [N, B]
        padded_to = int(self._lengths.longest_at(progress).max())
        word_bits = bits[:, batch_size:].reshape(-1, self._bits_per_word)
        words = self._source.draw(word_bits, lengths.reshape(-1), self._lengths.longest)
        symbols = words[:, :padded_to].reshape(num_batches, batch_size, padded_to)
        return self._source.label_words(symbols, lengths, self._supervision)
