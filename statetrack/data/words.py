"""Batches to train on, and long words to test on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.scoring import ratio
from statetrack.sources import Batch, RandomBits, Source

CHUNK: Final = 2**20
"""How many symbols of long words are held at once."""


class BatchStream(Protocol):
    """What training reads: an endless row of batches, any of which can be asked for.

    Batch k does not depend on which others were asked for before or beside it.
    """

    def block(
        self,
        first: int,
        num_batches: int,
        batch_size: int,
        progress: float | NDArray[np.float64] = 1.0,
    ) -> Batch:
        """The batches `first .. first + num_batches - 1`: arrays `[N, B, T]`.

        `progress`, one number or `[N]`, says how far training is at each batch, from 0 to 1.
        """
        ...


def stream_words(
    source: Source, num_words: int, length: int, seed: int, chunk: int = CHUNK
) -> Iterator[Batch]:
    """Fresh test words of one length: consecutive pieces `[num_words, <=T]`.

    Joined along T the pieces are whole words with a label after every symbol, whatever the
    `chunk` (how many symbols a piece may hold); of an automaton, in constant memory. Words of
    different lengths or seeds are independent. Raises `SettingsError` where they are too long.
    """
    source.check_length(length)
    source = source.part("test")
    yield from source.stream(RandomBits(seed, "test", variant=length), num_words, length, chunk)


def whole_words(
    source: Source, num_words: int, length: int, seed: int, chunk: int = CHUNK
) -> Iterator[Batch]:
    """Fresh test words of one length, a few whole words at a time: batches `[<=num_words, T]`.

    The words are the same whatever the `chunk` (how many symbols a batch may hold); those of
    different lengths or seeds are independent. Raises `SettingsError` where they are too long.
    """
    source.check_length(length)
    source = source.part("test")
    bits = RandomBits(seed, "test", variant=length)
    width, at_once = source.num_bits(length), max(1, chunk // length)
    for first in range(0, num_words, at_once):
        size = min(at_once, num_words - first)
        drawn = bits.read(first * width, size * width).reshape(size, width)
        lengths = np.full(size, length)
        yield source.label_words(source.draw(drawn, lengths, length), lengths)


def measured_floors(
    source: Source, lengths: Sequence[int], num_words: int, seed: int
) -> dict[int, float]:
    """How often the best constant answer is right on the words of `stream_words`, by length.

    `lengths` rise, and shorter words are prefixes of the longest. The answer asked for is the
    label at the last scored position; not a number where no word has one.
    """
    floors: dict[int, float] = {}
    last = np.full(num_words, -1)  # the last scored label of every word so far
    reached = 0
    for piece in stream_words(source, num_words, lengths[-1], seed):
        inside = [length - reached for length in lengths if 0 < length - reached <= piece.longest]
        for begin, end in pairwise(dict.fromkeys([0, *inside, piece.longest])):
            part = piece.cut(begin, end)
            last[part.scored.any(axis=1)] = part.last_labels()
            counts = np.bincount(last[last >= 0], minlength=1)
            floors[reached + end] = ratio(int(counts.max()), int(counts.sum()))
        reached += piece.longest
    return {length: floors[length] for length in lengths}
