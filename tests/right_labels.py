"""Holding the labels of a dataset against what its source reads."""

from __future__ import annotations

import numpy as np

from statetrack.errors import DatasetError
from statetrack.sources import Batch, Source


def check_labels(batch: Batch, source: Source, where: str) -> None:
    """Hold every label that is asked for against what the source reads.

    Raises `DatasetError`, opened by `where`, for the first that differs.
    """
    greatest = int(batch.symbols.max(initial=0))
    if greatest >= source.num_symbols:
        raise DatasetError(
            f"{where}: symbol {greatest} occurs, but the task has "
            f"{source.num_symbols}, counted from 0"
        )
    right = source.label_words(batch.symbols, batch.lengths).labels
    wrong = np.argwhere(batch.scored & (right != batch.labels))
    if len(wrong):
        word, time = wrong[0].tolist()
        raise DatasetError(
            f"{where}: word {word + 1}: the label at position {time + 1} is "
            f"{batch.labels[word, time]}, but the task says {right[word, time]}"
        )
