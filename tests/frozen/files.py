"""Files as text: whole where people read them, else a hash and the first lines."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from .normalising import normalised_csv

READABLE = (".md", ".json", ".yaml", ".py", ".txt", ".dot", ".kiss2", ".aut", ".jff", ".fst")
MARKED_UP = (".scxml", ".xml")
LINES = (".jsonl", ".csv")
FIRST_LINES = 3
CHARACTERS = 300


def folder_as_text(folder: Path, told: Mapping[str, Callable[[Path], str]] | None = None) -> str:
    """Every file of a folder by its name; `told` says how files of some names are written."""
    parts = []
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        tell = (told or {}).get(file.name, file_as_text)
        parts.append(f"=== {file.relative_to(folder).as_posix()}\n{tell(file)}\n")
    return "".join(parts)


def file_as_text(file: Path) -> str:
    """The text of a file that people read; of another its size, hash and first lines."""
    if file.suffix == ".lock":
        return "a lock"
    held = file.read_bytes()
    if file.suffix in READABLE + MARKED_UP:
        return held.decode("utf-8")
    about = f"{len(held)} bytes, sha256 {hashlib.sha256(held).hexdigest()}"
    if file.suffix not in LINES:
        return about
    lines = held.decode("utf-8").splitlines()
    first = [line[:CHARACTERS] for line in lines[:FIRST_LINES]]
    return "\n".join([f"{about}, {len(lines)} lines, which begin", *first])


def hash_of_arrays(*arrays: object) -> str:
    """A hash of arrays or tensors: of their shapes, types and bytes."""
    told = hashlib.sha256()
    about = []
    for array in arrays:
        as_numpy = array.numpy() if hasattr(array, "numpy") else array
        about.append(f"{as_numpy.dtype}{list(as_numpy.shape)}")
        told.update(as_numpy.tobytes())
    return f"{' '.join(about)} sha256 {told.hexdigest()}"


def tensors_as_text(file: Path) -> str:
    """The numbers and the hashes of the tensors of a file that torch wrote, without seconds."""
    import torch

    return "\n".join(_parts("", torch.load(file, weights_only=True, map_location="cpu")))


def _parts(name: str, thing: object) -> list[str]:
    if isinstance(thing, Mapping):
        pairs = [(str(key), value) for key, value in thing.items()]
    elif isinstance(thing, list | tuple):
        pairs = [(str(place), value) for place, value in enumerate(thing)]
    elif hasattr(thing, "numpy"):
        return [f"{name}: {hash_of_arrays(thing)}"]
    else:
        return [f"{name}: {thing!r}"]
    return [
        line for key, value in pairs if key != "seconds" for line in _parts(f"{name}/{key}", value)
    ]


def table_as_text(file: Path) -> str:
    """A file of Parquet as CSV."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(file)
    told = io.StringIO()
    writer = csv.writer(told, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(row.values() for row in table.to_pylist())
    types = "".join(f"{field.name}: {field.type}\n" for field in table.schema)
    return f"{types}{normalised_csv(told.getvalue())}"


def picture_as_text(file: Path) -> str:
    """An SVG with its coordinates rounded, without names that stand for nothing."""
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\b(?:[mpC]|h)[0-9a-f]{10}\b", "NAME", text)
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda found: f"{float(found[0]):.1f}", text)


RUN_FILES: dict[str, Callable[[Path], str]] = {
    **dict.fromkeys(("last.pt", "checkpoint.pt"), tensors_as_text),
    **dict.fromkeys(
        ("metrics.jsonl", "eval.jsonl", "evidence.jsonl", "extensions.jsonl", "measuring.jsonl"),
        lambda file: file.read_text(encoding="utf-8"),
    ),
}
"""How the files of a run are written, by their names."""
