"""Rows of batches to train on, fresh ones or of a fixed set, and long words to test on.

Letters: N batches in a block, B words per batch, T time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.data.distinct import divide, draw_distinct
from statetrack.errors import SettingsError
from statetrack.scoring import ratio
from statetrack.settings import require_seed, require_whole
from statetrack.sources import (
    Batch,
    Integers,
    LengthDistribution,
    RandomBits,
    Source,
    Supervision,
    TensorBatch,
    WordStream,
)
from statetrack.spec import Task, WordSpec, load_task

if TYPE_CHECKING:
    from torch.utils.data import Dataset

    _Dataset = Dataset[TensorBatch]
else:  # a `DataLoader` takes whatever can be indexed and has a length
    _Dataset = object

CHUNK: Final = 2**20
"""How many symbols of long words are held at once."""

NUM_BATCHES: Final = 2**40
"""The length that a `DataLoader` is told: more batches than are ever drawn."""


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
        self._orders: Integers = np.empty((0, len(train)), np.int64)

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

    def _in_order(self, epochs: range) -> Integers:
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


class TensorStream(_Dataset):
    """Batches number 0, 1, 2, ... of fresh words, each `[B, T]`.

    Batch k is always the same and does not depend on which others are asked for. So a
    `DataLoader` with several workers reads no batch twice, and reads the same ones with any
    number of workers.
    """

    def __init__(self, words: WordStream, batch_size: int) -> None:
        self._words = words
        self._batch_size = batch_size

    def __getitem__(self, index: int) -> TensorBatch:
        return self._words.block(index, 1, self._batch_size)[0].to_torch()

    def __len__(self) -> int:
        return NUM_BATCHES

    def __iter__(self) -> Iterator[TensorBatch]:
        return map(self.__getitem__, count())


def stream(
    task: Task | str | Path,
    *,
    batch_size: int = 64,
    length: int | str | None = None,
    supervision: Supervision | None = None,
    seed: int = 0,
) -> TensorStream:
    """An endless row of batches of a task's words as torch tensors `[batch_size, T]`.

    `task` is a task or its name. They are the batches that training draws for that seed. A plain
    loop takes the stream, and so does `torch.utils.data.DataLoader(stream, batch_size=None,
    num_workers=...)`. `length` is one length, a text such as `2-10` for lengths drawn uniformly, or
    None for the task's own; `supervision` likewise. T is the longest length.

    Raises `SettingsError` for a batch without words, for what is no seed, and for a length that
    cannot be read, is out of bounds or is too long for the task's source.
    """
    require_whole("batch_size", batch_size, "stream", least=1, most=10**9)
    require_seed(seed, "stream")
    task = load_task(task)
    words = WordSpec.of(task, train_length=length, supervision=supervision)
    fresh = WordStream(task.source, words.lengths, words.supervision, seed, "train")
    return TensorStream(fresh, batch_size)


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
