"""An endless row of batches as torch tensors, for training loops of one's own.

B words per batch, T time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from statetrack.errors import SettingsError
from statetrack.sources import Supervision, TensorBatch, WordStream
from statetrack.spec import Task, WordSpec, load_task

if TYPE_CHECKING:
    from torch.utils.data import Dataset

    _Dataset = Dataset[TensorBatch]
else:  # a `DataLoader` takes whatever can be indexed and has a length
    _Dataset = object

NUM_BATCHES: Final = 2**40
"""The length that a `DataLoader` is told: more batches than are ever drawn."""


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

    Raises `SettingsError` for a batch without words, and for a length that cannot be read, is
    out of bounds or is too long for the task's source.
    """
    if batch_size < 1:
        raise SettingsError(f"batch_size {batch_size}: ask for one word or more")
    task = load_task(task)
    words = WordSpec.of(task, train_length=length, supervision=supervision)
    fresh = WordStream(task.source, words.lengths, words.supervision, seed, "train")
    return TensorStream(fresh, batch_size)
