"""Words as tensors on the device, one row of batches for every seed.

N batches in a block, G seeds, B batch, T time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from statetrack.data import BatchStream, fixed_words
from statetrack.errors import SettingsError, setting
from statetrack.sources import Batch, LengthDistribution, WordStream
from statetrack.spec import OWN, Task, WordSpec
from statetrack.training.settings import DataSettings, TrainSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Words:
    """Words with labels: each [..., B, T]; `scored` marks the positions that are scored."""

    symbols: Tensor
    labels: Tensor
    scored: Tensor

    def __getitem__(self, index: Any) -> Words:
        return Words(self.symbols[index], self.labels[index], self.scored[index])


class Batches(Protocol):
    """A source of training batches."""

    def block(self, first: int, count: int) -> Words:
        """Batches number `first` to `first + count - 1`, [N, G, B, T]; the same at every call."""


@dataclass(frozen=True)
class SeedStreams:
    """The streams of all seeds, stacked along an axis of seeds, on the device."""

    streams: Sequence[BatchStream]
    training: TrainSettings
    device: torch.device

    def block(self, first: int, count: int) -> Words:
        """Batches number `first` to `first + count - 1`, [N, G, B, T]."""
        size, steps = self.training.batch_size, range(first, first + count)
        progress = np.array([step / self.training.steps_at(step) for step in steps])
        batches = [stream.block(first, count, size, progress) for stream in self.streams]
        return to_words(batches, self.device, axis=1)


@dataclass(frozen=True)
class TaskWords:
    """The words of a task that a population is trained on, and those it is validated on."""

    task: Task
    data: DataSettings
    training: TrainSettings
    copy: Path | None = None
    """What is read in place of the file that the settings' `words` name, if they name one."""

    @cached_property
    def drawn(self) -> Task:
        """The task, with the words that the settings ask for, if not those that it has."""
        own = self.data.words == OWN
        return self.task if own else self.task.with_words(self.data.words, self.copy)

    @cached_property
    def spec(self) -> WordSpec:
        """The lengths to train on, and the positions that are scored."""
        data = self.data
        return WordSpec.of(
            self.task,
            train_length=data.train_length,
            supervision=data.supervision,
            curriculum=data.curriculum,
        )

    @property
    def lengths(self) -> LengthDistribution:
        """The lengths to train on."""
        return self.spec.lengths

    def on(self, device: torch.device) -> tuple[SeedStreams, Words]:
        """The training batches, and the validation words [G, B, T], of every seed.

        Raises `SettingsError` for a curriculum of one length, and as `fixed_words` does.
        """
        training = self.training
        if self.data.curriculum and self.lengths.num_lengths == 1:
            raise SettingsError(
                f"{setting('curriculum', self.data.curriculum)} grows the longest length, and "
                f"training has one alone, {self.lengths}: leave it out, or give a range by "
                f"{setting('train_length', f'1-{self.lengths}')}"
            )
        seeds = range(training.seed, training.seed + training.seeds)
        pairs = [self.of_seed(seed) for seed in seeds]
        streams, held_out = [stream for stream, _ in pairs], [words for _, words in pairs]
        batches = SeedStreams(streams, training, device)
        return batches, to_words(held_out, device)

    def of_seed(self, seed: int) -> tuple[BatchStream, Batch]:
        """The training batches and the validation words `[B, T]` of one seed.

        Fresh words for every batch, and validation words from a separate stream; or a fixed set of
        words, and validation words that are not in it. Where the training set contains every word
        of these lengths, validation uses that set.
        """
        num_words, num_held_out = self.data.train_samples, self.training.validation_words
        if not num_words:
            about = (self.drawn.source, self.lengths, self.spec.supervision, seed)
            held_out = WordStream(*about, "validation").block(0, 1, num_held_out)[0]
            return WordStream(*about, "train"), held_out
        source = self.drawn.source.part("train")
        if (among := source.count_words(self.lengths)) is not None:
            num_held_out = min(max(0, among - num_words), num_held_out)
        words = fixed_words(
            source, self.lengths, self.spec.supervision, num_words, num_held_out, seed
        )
        return words, words.held_out if num_held_out else words.train


def to_words(batches: Sequence[Batch], device: torch.device, axis: int = 0) -> Words:
    """Numpy batches, one per seed, as tensors with an axis for the seeds."""
    import torch  # here, so that what training draws can be named without it

    def stack(name: str, kind: torch.dtype) -> Tensor:
        arrays = np.stack([getattr(batch, name) for batch in batches], axis)
        return torch.from_numpy(arrays).to(device=device, dtype=kind)

    return Words(
        stack("symbols", torch.int64), stack("labels", torch.int64), stack("scored", torch.bool)
    )
