"""A batch without its padding: all words one after the other, as files store them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import DatasetError
from statetrack.sources import Batch
from statetrack.sources.arrays import Unsigned, smallest_type


class Flat(NamedTuple):
    """The words of a batch joined end to end; `lengths [N]` says where each one ends."""

    symbols: Unsigned  # [sum of lengths]
    labels: Unsigned
    scored: NDArray[np.bool_]
    lengths: NDArray[np.int64]  # [N]


def flatten(batch: Batch) -> Flat:
    """The words of a batch `[N, T]` joined end to end."""
    inside = _inside(batch.lengths, batch.symbols.shape[1])
    return Flat(batch.symbols[inside], batch.labels[inside], batch.scored[inside], batch.lengths)


def pad(flat: Flat, where: str) -> Batch:
    """The batch `[N, T]` of words joined end to end, T being the longest.

    Raises `DatasetError`, opened by `where`, if the parts do not fit each other.
    """
    lengths = flat.lengths.astype(np.int64)
    sizes = {len(flat.symbols), len(flat.labels), len(flat.scored), int(lengths.sum())}
    if len(lengths) == 0 or lengths.min() < 1 or len(sizes) > 1:
        raise DatasetError(f"{where}: not every symbol has its label: write the dataset again")
    inside = _inside(lengths, int(lengths.max()))
    symbols = np.zeros(inside.shape, _smallest_for(flat.symbols))
    labels = np.zeros(inside.shape, _smallest_for(flat.labels))
    scored = np.zeros(inside.shape, np.bool_)
    symbols[inside], labels[inside], scored[inside] = flat.symbols, flat.labels, flat.scored
    return Batch(symbols, labels, scored, lengths)


def _inside(lengths: NDArray[np.int64], longest: int) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.arange(longest) < lengths[:, None]  # [N, T]
    return inside


def _smallest_for(values: Unsigned) -> np.dtype[np.unsignedinteger]:
    return smallest_type(int(values.max(initial=0)) + 1)
