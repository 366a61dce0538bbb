"""A fixed set of words to train on, epoch after epoch, and one held out from it.

This is what a data-efficiency curve needs: how well is a task learned from so many words?

Letters: N batches in a block, B words per batch, T time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from statetrack.data.distinct import draw_distinct
from statetrack.errors import SettingsError
from statetrack.sources import Batch, LengthDistribution, RandomBits, Source, Supervision

Indices = NDArray[np.int64]

HELD_OUT_CHOICE = 1  # the variant of the `shuffle` bits that no epoch reads


class FixedWords:
    """Batches of one fixed set of words, in a new order every epoch: a `BatchStream`.

    `train` `[num_words, T]` is the set, `held_out` `[num_held_out, T]` shares no word with it.
    Epochs follow each other without a gap: a batch may end one and begin the next, and may be
    larger than the set.
    """

    def __init__(self, train: Batch, held_out: Batch, seed: int) -> None:
        assert train.lengths.ndim == 1 and len(train) > 0, train.lengths.shape
        self.train = train
        self.held_out = held_out
        self._bits = RandomBits(seed, "shuffle")
        self._epochs = range(0)
        self._orders: Indices = np.empty((0, len(train)), np.int64)

    def block(
        self,
        first: int,
        num_batches: int,
        batch_size: int,
        progress: float | NDArray[np.float64] = 1.0,
    ) -> Batch:
        """The batches `first .. first + num_batches - 1`: arrays `[N, B, T]`.

        They are the same at any `progress`, for the set is whole from the start.
        """
        num_words = len(self.train)
        begin, end = first * batch_size, (first + num_batches) * batch_size
        epochs = range(begin // num_words, (end - 1) // num_words + 1)
        offset = begin - epochs.start * num_words
        chosen = self._in_order(epochs).reshape(-1)[offset : offset + end - begin]
        return self.train[chosen.reshape(num_batches, batch_size)]

    def _in_order(self, epochs: range) -> Indices:
        """The words' indices in the order of each epoch, `[epochs, words]`; the last are kept."""
        if epochs != self._epochs:
            num_words = len(self.train)
            bits = self._bits.read(epochs.start * num_words, len(epochs) * num_words)
            self._orders = np.argsort(bits.reshape(len(epochs), num_words), kind="stable")
            self._epochs = epochs
        return self._orders


def fixed_words(
    source: Source,
    lengths: LengthDistribution,
    supervision: Supervision,
    num_words: int,
    num_held_out: int,
    seed: int,
) -> FixedWords:
    """A training set of `num_words` words and a held-out one, all different from each other.

    Both follow the same law: together they are drawn without repetition by the lengths and the
    source's distribution, and which of them are held out is chosen at random.

    Raises `SettingsError` where there are not as many words, and for lengths with a curriculum.
    """
    assert num_words > 0 and num_held_out >= 0, (num_words, num_held_out)
    if lengths.curriculum > 0.0:
        raise SettingsError(
            f"curriculum {lengths.curriculum}: a fixed training set has all its lengths from the "
            "start: set the curriculum to 0, or train on fresh words"
        )
    source = source.part("train")
    among = source.count_words(lengths)
    if among is not None and among < num_words + num_held_out:
        raise SettingsError(
            f"{num_words} training words and {num_held_out} held-out words, all different, are "
            f"asked for, but there are only {among} words of length {lengths}: "
            "ask for fewer or for other lengths"
        )
    words = draw_distinct(source, lengths, num_words + num_held_out, seed)
    batch = source.label_words(words.symbols, words.lengths, supervision)
    train, held_out = divide(len(batch), num_held_out, seed)
    return FixedWords(batch[train], batch[held_out], seed)


def divide(num_words: int, num_held_out: int, seed: int) -> tuple[Indices, Indices]:
    """Divide the indices `0 .. num_words - 1` at random in two sets, the second of `num_held_out`.

    Both are in rising order.
    """
    bits = RandomBits(seed, "shuffle", HELD_OUT_CHOICE).read(0, num_words)
    is_held_out = np.zeros(num_words, np.bool_)
    is_held_out[np.argsort(bits, kind="stable")[:num_held_out]] = True
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
