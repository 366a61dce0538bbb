"""Words as arrays: their types, and batches of words side by side with their labels.

Letters: B and N words, T time (the longest word), V symbols, C labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Unsigned = npt.NDArray[np.unsignedinteger]
Bits = npt.NDArray[np.uint32]

Supervision = Literal["every", "last"]

PADDING: Final = 0
"""The symbol and the label after a word's end: harmless, since models are causal."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Words of several lengths, padded at the end; all four arrays share the leading axes.

    `scored` is False in the padding and wherever no label is asked for, so the mean over
    `scored` is the loss. Symbols and labels have the smallest unsigned type that holds them.
    """

    symbols: Unsigned  # [..., B, T], 0..V-1
    labels: Unsigned  # [..., B, T], 0..C-1
    scored: Booleans  # [..., B, T]
    lengths: Integers  # [..., B]

    def __post_init__(self) -> None:
        assert self.symbols.shape == self.labels.shape == self.scored.shape
        assert self.symbols.shape[:-1] == self.lengths.shape

    def __getitem__(self, index: int | slice | npt.NDArray[np.integer]) -> Batch:
        """The part at `index` of the first axis: one batch of a block, or chosen words."""
        return Batch(
            self.symbols[index], self.labels[index], self.scored[index], self.lengths[index]
        )

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def longest(self) -> int:
        """T."""
        return int(self.symbols.shape[-1])

    def cut(self, first: int, last: int) -> Batch:
        """The symbols `first .. last - 1` of every word, as words of their own."""
        time = slice(first, last)
        lengths = np.clip(self.lengths - first, 0, last - first)
        return Batch(
            self.symbols[..., time], self.labels[..., time], self.scored[..., time], lengths
        )

    def to_torch(self) -> TensorBatch:
        """The words as torch tensors on the CPU, without their lengths."""
        import torch  # the only use of torch here: words are drawn without it

        return TensorBatch(
            torch.from_numpy(self.symbols.astype(np.int64)),
            torch.from_numpy(self.labels.astype(np.int64)),
            torch.from_numpy(self.scored.copy()),
        )

    def last_labels(self) -> Unsigned:
        """The label at the last scored position of every word `[B]` that has one."""
        last = self.longest - 1 - self.scored[:, ::-1].argmax(axis=1)
        labels: Unsigned = self.labels[np.arange(len(self)), last][self.scored.any(axis=1)]
        return labels


class TensorBatch(NamedTuple):
    """A batch as torch tensors, each `[..., B, T]`."""

    symbols: torch.Tensor  # int64
    labels: torch.Tensor  # int64
    scored: torch.Tensor  # bool


class UnlabelledWords(NamedTuple):
    """Words without their labels, padded at the end."""

    symbols: Unsigned  # [N, T]
    lengths: Integers  # [N]

    def take(self, index: npt.NDArray[np.integer]) -> UnlabelledWords:
        """The words at `index`, in that order."""
        return UnlabelledWords(self.symbols[index], self.lengths[index])

    def keys(self) -> list[bytes]:
        """A name for every word: equal where and only where the words are equal."""
        return [
            row[:length].tobytes() for row, length in zip(self.symbols, self.lengths, strict=True)
        ]


def smallest_type(count: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds `0 .. count - 1`, the same on every machine."""
    return np.dtype(np.min_scalar_type(count - 1)).newbyteorder("<")
