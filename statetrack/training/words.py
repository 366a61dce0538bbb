"""Words as tensors on the device, one row of batches for every seed.

N batches in a block, G seeds, B batch, T time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from statetrack.data import Batch, BatchStream


@dataclass(frozen=True)
class Words:
    """Words with labels: each [..., B, T]; `scored` is where a label is asked for."""

    symbols: Tensor
    labels: Tensor
    scored: Tensor

    def __getitem__(self, index: Any) -> Words:
        return Words(self.symbols[index], self.labels[index], self.scored[index])


class Batches(Protocol):
    """Where training words come from."""

    def block(self, first: int, count: int) -> Words:
        """Batches number `first` to `first + count - 1`, [N, G, B, T]: always the same ones."""


@dataclass(frozen=True)
class SeedStreams:
    """The streams of all seeds side by side, on the device."""

    streams: Sequence[BatchStream]
    batch_size: int
    steps: int
    device: torch.device

    def block(self, first: int, count: int) -> Words:
        """Batches number `first` to `first + count - 1`, [N, G, B, T]."""
        progress = np.arange(first, first + count) / self.steps
        batches = [stream.block(first, count, self.batch_size, progress) for stream in self.streams]
        return to_words(batches, self.device, axis=1)


def to_words(batches: Sequence[Batch], device: torch.device, axis: int = 0) -> Words:
    """Numpy batches, one a seed, as tensors with an axis for the seeds."""

    def stack(name: str, kind: torch.dtype) -> Tensor:
        arrays = np.stack([getattr(batch, name) for batch in batches], axis)
        return torch.from_numpy(arrays).to(device=device, dtype=kind)

    return Words(
        stack("symbols", torch.int64), stack("labels", torch.int64), stack("scored", torch.bool)
    )
