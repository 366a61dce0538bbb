"""JSON lines: a split is one file, a word one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from statetrack.data.formats.flat import Flat, pad
from statetrack.errors import DatasetError
from statetrack.sources import Batch

_COLUMNS = ("input", "target", "scored", "length")


def write(folder: Path, split: str, batch: Batch) -> None:
    """Write `<split>.jsonl` with `input`, `target`, `scored` and `length` on every line."""
    with (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for symbols, labels, scored, length in zip(
            batch.symbols, batch.labels, batch.scored, batch.lengths.tolist(), strict=True
        ):
            columns = (part[:length].tolist() for part in (symbols, labels, scored))
            line = dict(zip(_COLUMNS, (*columns, length), strict=True))
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def read(folder: Path, split: str) -> Batch:
    """Read what `write` has written.

    Raises `DatasetError`, naming the line, where a line is no such word.
    """
    path = folder / f"{split}.jsonl"
    columns: dict[str, list[NDArray[np.uint32]]] = {name: [] for name in _COLUMNS}
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            try:
                line = json.loads(text)
                for name in _COLUMNS:
                    columns[name].append(np.array(line[name], np.uint32).reshape(-1))
            except (ValueError, KeyError, TypeError, OverflowError) as problem:
                reason = f"{type(problem).__name__}: {problem}"
                raise DatasetError(f"{path}, line {number}: not a word: {reason}") from None
    if not columns["length"]:
        raise DatasetError(f"{path}: holds no words")
    symbols, labels, scored, lengths = (np.concatenate(columns[name]) for name in _COLUMNS)
    return pad(Flat(symbols, labels, scored.astype(np.bool_), lengths.astype(np.int64)), str(path))
