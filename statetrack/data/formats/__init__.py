"""The formats in which a dataset can be written, each a file of its own here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from statetrack.data.formats import jsonl, npz, parquet, word_problem
from statetrack.data.formats.filling import Declared
from statetrack.data.parts import Part
from statetrack.sources import Batch

FormatName = Literal["parquet", "jsonl", "npz", "csv"]


@dataclass(frozen=True)
class Format:
    """How splits are read, and in which files `datasets.load_dataset` finds them.

    `read(folder, split, declared)` returns the split, held against what its card declares. `files`
    is a pattern below the data folder with `{split}` in it, or empty for what `load_dataset` cannot
    read.
    """

    read: Callable[[Path, str, Declared], Batch]
    files: str


FORMATS: Final[dict[FormatName, Format]] = {
    "parquet": Format(parquet.read, "{split}-*.parquet"),
    "jsonl": Format(jsonl.read, "{split}.jsonl"),
    "npz": Format(npz.read, ""),
    "csv": Format(word_problem.read, "{split}/*.csv"),
}


def writer(name: FormatName, task: str, seed: int) -> Callable[[Path, str, Part], None]:
    """What writes a split of `task`, drawn with `seed`, into a folder."""
    writers: dict[FormatName, Callable[[Path, str, Part], None]] = {
        "parquet": parquet.write,
        "jsonl": jsonl.write,
        "npz": npz.write,
        "csv": partial(word_problem.write, group=task, seed=seed),
    }
    return writers[name]
