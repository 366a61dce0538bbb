"""JSON lines: a split is one file, a word one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from statetrack.data.formats.filling import (
    Declared,
    Extent,
    Filling,
    Flat,
    Format,
    Writing,
    file_size,
    flaw,
)
from statetrack.data.parts import SYMBOLS_AT_ONCE, Part
from statetrack.errors import DatasetError
from statetrack.sources import Batch

NAMES: Final = ("input", "target", "scored", "length")
"""The keys of a line, or the columns of a table."""

_BYTES_PER_WORD: Final = 1_000
_BYTES_PER_SYMBOL: Final = 64
"""No line is longer than these allow, however it is laid out."""

_Number = Annotated[int, Field(ge=0, lt=2**32)]


class _JsonWord(TypedDict):
    """What stands on a line."""

    __pydantic_config__ = ConfigDict(strict=True)  # type: ignore[misc]

    input: list[_Number]
    target: list[_Number]
    scored: list[bool]
    length: _Number


_WORD = TypeAdapter(_JsonWord)


def write(folder: Path, split: str, part: Part, writing: Writing) -> None:
    """Write `<split>.jsonl` with `input`, `target`, `scored` and `length` on every line."""
    with (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for batch in part.pieces():
            for line in lines(batch):
                file.write(json.dumps(line, separators=(",", ":")) + "\n")


def lines(batch: Batch) -> Iterator[dict[str, Any]]:
    """What stands on the line of each word of a batch."""
    for symbols, labels, scored, length in zip(
        batch.symbols, batch.labels, batch.scored, batch.lengths.tolist(), strict=True
    ):
        columns = (values[:length].tolist() for values in (symbols, labels, scored))
        yield dict(zip(NAMES, (*columns, length), strict=True))


def read(
    folder: Path,
    split: str,
    declared: Declared,
    bytes_per_word: int = _BYTES_PER_WORD,
    bytes_per_symbol: int = _BYTES_PER_SYMBOL,
) -> Batch:
    """Read what `write` has written; a line has at most so many bytes.

    Raises `DatasetError`, naming the line, where a line is no such word or not as declared.
    """
    path = folder / f"{split}.jsonl"
    file_size(path)
    filling = Filling(str(path), declared, unit="line")
    longest_line = bytes_per_word + bytes_per_symbol * declared.longest
    words: list[_JsonWord] = []
    num_symbols = 0
    with path.open("rb") as file:
        for number in count(1):
            line = file.readline(longest_line + 1)
            if line:
                words.append(_parse(line, longest_line, f"{path}, line {number}"))
                num_symbols += len(words[-1]["input"])
            if not line or num_symbols >= SYMBOLS_AT_ONCE:
                filling.add(_joined(words))
                words, num_symbols = [], 0
            if not line:
                return filling.done()
    raise AssertionError  # counting has no end


def _parse(line: bytes, longest: int, where: str) -> _JsonWord:
    if len(line) > longest:
        raise DatasetError(f"{where}: longer than the longest word of card.json")
    try:
        word = _WORD.validate_json(line)
    except ValidationError as invalid:
        place, what = flaw(invalid)
        at = f"'{place}': " if place else ""
        raise DatasetError(f"{where}: not a word: {at}{what}") from None
    sizes = {len(word["input"]), len(word["target"]), len(word["scored"]), word["length"]}
    if len(sizes) > 1:
        raise DatasetError(f"{where}: not every symbol has its label: write the dataset again")
    return word


def _joined(words: Sequence[_JsonWord]) -> Flat:
    def joined(column: Literal["input", "target", "scored"], type: DTypeLike) -> NDArray[Any]:
        return np.array(list(chain.from_iterable(word[column] for word in words)), type)

    return Flat(
        joined("input", np.uint32),
        joined("target", np.uint32),
        joined("scored", np.bool_),
        np.array([word["length"] for word in words], np.int64),
    )


def size(extent: Extent) -> float:
    """About how many bytes the files have."""
    return 52 * extent.request.num_words + (extent.digits + 7.5) * extent.request.num_symbols


COLUMNS: Final = (
    "`input` (the symbols), `target` (the label after each), `scored` (whether that label is "
    "asked for) and `length`"
)

FORMAT: Final = Format(write, read, size, f"{COLUMNS}.\n", "{split}.jsonl")
