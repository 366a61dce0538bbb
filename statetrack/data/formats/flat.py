"""A batch without its padding: all words one after the other, as files store them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statetrack.sources import Batch


class Flat(NamedTuple):
    """The words of a batch joined end to end; `lengths [N]` says how long each one is."""

    symbols: NDArray[Any]  # [sum of lengths]
    labels: NDArray[Any]
    scored: NDArray[Any]
    lengths: NDArray[Any]  # [N]


def flatten(batch: Batch) -> Flat:
    """The words of a batch `[N, T]` joined end to end."""
    inside = np.arange(batch.symbols.shape[1]) < batch.lengths[:, None]
    return Flat(batch.symbols[inside], batch.labels[inside], batch.scored[inside], batch.lengths)
