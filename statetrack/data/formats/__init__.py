"""The formats in which a dataset can be written, each a file of its own here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from statetrack.data.formats import jsonl, lm_eval, npz, parquet, word_problem
from statetrack.data.formats.filling import Declared
from statetrack.data.parts import Part
from statetrack.data.texts import TextRequest
from statetrack.sources import Batch
from statetrack.spec import Task

FormatName = Literal["parquet", "jsonl", "npz", "csv", "lm-eval"]


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
    "lm-eval": Format(lm_eval.read, "{split}.jsonl"),
}


def writer(
    name: FormatName, task: Task, seed: int, text: TextRequest
) -> Callable[[Path, str, Part], None]:
    """What writes a split of `task`, drawn with `seed`, into a folder.

    `text` says how words are written where the format has them as text. Raises `SettingsError`
    where they cannot be written so.
    """
    writers: dict[FormatName, Callable[[Path, str, Part], None]] = {
        "parquet": parquet.write,
        "jsonl": jsonl.write,
        "npz": npz.write,
        "csv": partial(word_problem.write, group=task.name, seed=seed),
        "lm-eval": lm_eval.Writer(task, seed, text),
    }
    return writers[name]
