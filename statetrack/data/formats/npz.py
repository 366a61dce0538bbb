"""Numpy archives: a split is one file with the four padded arrays of its batch."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from statetrack.errors import DatasetError
from statetrack.sources import Batch

_ARRAYS = ("symbols", "labels", "scored", "lengths")


def write(folder: Path, split: str, batch: Batch) -> None:
    """Write `<split>.npz`: `symbols`, `labels`, `scored` `[N, T]` and `lengths` `[N]`."""
    np.savez_compressed(
        folder / f"{split}.npz",
        symbols=batch.symbols,
        labels=batch.labels,
        scored=batch.scored,
        lengths=batch.lengths,
    )


def read(folder: Path, split: str) -> Batch:
    """Read what `write` has written.

    Raises `DatasetError` where an array is missing or the file is no such archive.
    """
    path = folder / f"{split}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            symbols, labels, scored, lengths = (archive[name] for name in _ARRAYS)
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        raise DatasetError(f"{path}: not a split of a dataset: {problem}") from None
    same = symbols.shape == labels.shape == scored.shape
    if not same or symbols.shape[:-1] != lengths.shape:
        raise DatasetError(f"{path}: not every symbol has its label: write the dataset again")
    return Batch(symbols, labels, scored, lengths)
