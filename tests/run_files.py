"""The files of a run by their names, as plain values: for rows that no program would write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from statetrack.runs import RunFolder, files


def rows_in(run: RunFolder | Path, name: str) -> list[dict[str, Any]]:
    """The rows of a `.jsonl`, as they stand there."""
    return file_of_rows(name).plain_rows(path_of(run))


def append_rows(run: RunFolder | Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a `.jsonl`, whatever stands in them."""
    file_of_rows(name).append(path_of(run), rows)


def json_in(run: RunFolder | Path, name: str) -> dict[str, Any]:
    """What stands in a `.json`."""
    return replace(json_file(name), load=files.read_json).read(path_of(run))


def write_json(run: RunFolder | Path, name: str, content: Mapping[str, Any]) -> None:
    """Write a `.json`, whatever stands in it."""
    replace(json_file(name), dump=files.json_bytes).write(path_of(run), content)


def write_weights(run: RunFolder | Path, weights: dict[str, Tensor]) -> None:
    """Put weights in the place of those of a finished run, as if it were trained to them."""
    files.WEIGHTS.write(path_of(run), weights)
    hashed = files.WEIGHTS.hash_in(path_of(run))
    write_json(run, "summary.json", json_in(run, "summary.json") | {"weights": hashed})


def file_of_rows(name: str) -> files.RowFile[Any]:
    """The `.jsonl` of a name, with rows of plain values."""
    file = files.FILES[name]
    assert isinstance(file, files.RowFile)
    return replace(file, load=lambda row, where: row, dump=dict)


def json_file(name: str) -> files.RunFile[Any]:
    """The `.json` of a name."""
    file = files.FILES[name]
    assert isinstance(file, files.RunFile)
    return file


def path_of(run: RunFolder | Path) -> Path:
    """The path of a run folder."""
    return run.path if isinstance(run, RunFolder) else run
