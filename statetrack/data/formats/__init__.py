"""The formats in which a dataset can be written, each a file of its own here."""

from __future__ import annotations

from typing import Final, Literal

from statetrack.data.formats import jsonl, lm_eval, npz, parquet, word_problem
from statetrack.data.formats.filling import Format

FormatName = Literal["parquet", "jsonl", "npz", "csv", "lm-eval"]

FORMATS: Final[dict[FormatName, Format]] = {
    "parquet": parquet.FORMAT,
    "jsonl": jsonl.FORMAT,
    "npz": npz.FORMAT,
    "csv": word_problem.FORMAT,
    "lm-eval": lm_eval.FORMAT,
}
