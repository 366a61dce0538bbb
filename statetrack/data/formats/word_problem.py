"""Word-problem CSV: the format of the data published with Merrill, Petty & Sabharwal (2024).

arXiv 2404.08819. A file `GROUP=k.csv` holds words of one length k, one a row:

    seed,input,target
    7,3 0 2,3 3 5

`target` has the label after every symbol, so tasks that leave some out do not fit. In a dataset
a split is a folder of such files, one for each length, and its words are in order of length.
"""

from __future__ import annotations

import csv
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from statetrack.data.formats.filling import (
    MOST_BYTES,
    Declared,
    Extent,
    Filling,
    Flat,
    Format,
    Writing,
    file_size,
    reason,
)
from statetrack.data.parts import SYMBOLS_AT_ONCE, Part
from statetrack.errors import DatasetError, setting
from statetrack.sources import LONGEST_ALLOWED, Batch, Source, Unsigned, smallest_type

HEADER = ["seed", "input", "target"]

_DIGITS: Final = 6
"""Of the greatest number."""

_NUMBERS = re.compile(rf" *[0-9]{{1,{_DIGITS}}}(?: +[0-9]{{1,{_DIGITS}}})* *")
_NAME = re.compile(r"[A-Za-z0-9_.-]+=([0-9]{1,7})\.csv")


def write(folder: Path, split: str, part: Part, writing: Writing) -> None:
    """Write the folder `<split>` with a file for each length of the words.

    Raises `DatasetError` where a label is left out.
    """
    (folder / split).mkdir()
    for batch in part.by_length():
        refuse_left_out(batch)
        for length in np.unique(batch.lengths).tolist():
            words = batch[np.flatnonzero(batch.lengths == length)]
            path = folder / split / f"{group_name(writing.task.name)}={length}.csv"
            symbols, labels = words.symbols[:, :length], words.labels[:, :length]
            write_word_problem(path, symbols, labels, writing.seed, append=path.exists())


def refuse_left_out(batch: Batch) -> None:
    """Raises `DatasetError` where not every label of a batch is asked for."""
    inside = np.arange(batch.symbols.shape[1]) < batch.lengths[:, None]
    if not np.array_equal(batch.scored, inside):
        raise DatasetError(
            "word-problem CSV has a label after every symbol, and here some are left out: "
            f"choose another {setting('format')}, or {setting('supervision', 'every')}"
        )


def read(folder: Path, split: str, declared: Declared) -> Batch:
    """Read what `write` has written, in order of length.

    Raises `DatasetError`, naming file and line, where a file is no such table or not as declared.
    """
    filling = Filling(str(folder / split), declared)
    for path, length in _files(folder / split):
        if not declared.shortest <= length <= declared.longest:
            raise DatasetError(f"{path}: card.json has no words of length {length}")
        symbols, labels = array("I"), array("I")
        for _ in _rows(path, length, symbols, labels):
            if len(symbols) >= SYMBOLS_AT_ONCE:
                filling.add(_flat(symbols, labels, length))
                symbols, labels = array("I"), array("I")
        filling.add(_flat(symbols, labels, length))
    return filling.done()


def _files(folder: Path) -> list[tuple[Path, int]]:
    """The files `GROUP=k.csv` of a split and the length k of their words, in order of length."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as problem:
        raise DatasetError(f"{folder}: cannot be read: {reason(problem)}") from None
    found = [(folder / name, int(match[1])) for name in names if (match := _NAME.fullmatch(name))]
    if not found:
        raise DatasetError(f"{folder}: holds no file GROUP=k.csv, k being the length of its words")
    return sorted(found, key=lambda each: each[1])


def _flat(symbols: array[int], labels: array[int], length: int) -> Flat:
    values = np.array(symbols, np.uint32)
    lengths = np.full(len(values) // length, length)
    return Flat(values, np.array(labels, np.uint32), np.ones(len(values), np.bool_), lengths)


def write_word_problem(
    path: Path, symbols: Unsigned, labels: Unsigned, seed: int, *, append: bool = False
) -> None:
    """Write one file of words `[N, k]` with their labels `[N, k]`, or append them to it."""
    with path.open("a" if append else "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if not append:
            rows.writerow(HEADER)
        for word, answers in zip(symbols.tolist(), labels.tolist(), strict=True):
            rows.writerow([seed, " ".join(map(str, word)), " ".join(map(str, answers))])


def read_word_problem(path: Path, source: Source) -> Batch:
    """The words of one file `[N, k]`, after checking every target against the source.

    Raises `DatasetError`, naming file and row, where the file cannot be read, a number is no
    symbol of the source, or a target is not the label that the source reads.
    """
    symbols, targets = _parse(path)
    strange = np.argwhere(symbols >= source.num_symbols)
    if len(strange):
        row, time = strange[0].tolist()
        raise DatasetError(
            f"{path}, line {row + 2}: symbol {symbols[row, time]} at position {time + 1}, "
            f"but the task has {source.num_symbols}, counted from 0"
        )
    words = symbols.astype(smallest_type(source.num_symbols))
    batch = source.label_words(words, np.full(len(words), words.shape[1]))
    wrong = np.argwhere((batch.labels != targets) & batch.scored)
    if len(wrong):
        row, time = wrong[0].tolist()
        raise DatasetError(
            f"{path}, line {row + 2}: target {targets[row, time]} at position {time + 1}, "
            f"but the task says {batch.labels[row, time]}: is it the task of this file?"
        )
    return batch


def group_name(task: str) -> str:
    """A task's name as files of this format spell it: `a4xz5` is `A4_x_Z5`."""
    if re.fullmatch(r"[sazd]\d+(x[sazd]\d+)*", task):
        return "_x_".join(factor.upper() for factor in task.split("x"))
    return re.sub(r"[^A-Za-z0-9.-]+", "_", task).strip("_")


def _parse(path: Path) -> tuple[Unsigned, Unsigned]:
    """The inputs and targets of one file, both `[N, k]`."""
    size = file_size(path)
    if size > MOST_BYTES:
        raise DatasetError(f"{path}: has {size:,} bytes, the most is {MOST_BYTES:,}")
    symbols, targets = array("I"), array("I")
    num_words = sum(1 for _ in _rows(path, None, symbols, targets))
    if num_words == 0:
        raise DatasetError(f"{path}: holds no words")
    inputs, labels = (
        np.array(each, np.uint32).reshape(num_words, -1) for each in (symbols, targets)
    )
    return inputs, labels


def _rows(
    path: Path, length: int | None, symbols: array[int], labels: array[int]
) -> Iterator[None]:
    """Append each row of a file to `symbols` and `labels`, and yield after it.

    A row has `length` symbols or, where that is None, as many as the first.
    """
    file_size(path)
    line, longest = 1, _longest_line(length or LONGEST_ALLOWED)
    try:
        with path.open(encoding="utf-8-sig") as file:
            if file.readline(longest).strip().replace('"', "") != ",".join(HEADER):
                raise DatasetError(f"{path}: the first line is not {','.join(HEADER)}")
            while text := file.readline(longest):
                line += 1
                where = f"{path}, line {line}"
                row = text.rstrip("\n").replace('"', "").split(",")
                if len(row) != len(HEADER):
                    raise DatasetError(f"{where}: {len(row)} columns, not {len(HEADER)}")
                length = length or len(row[1].split())
                symbols.extend(_numbers(row[1], length, where, "input"))
                labels.extend(_numbers(row[2], length, where, "target"))
                yield
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read: {reason(problem)}") from None
    except UnicodeDecodeError:
        raise DatasetError(f"{path}: near line {line + 1}: is not text in UTF-8") from None


def _longest_line(length: int) -> int:
    return 1_000 + 2 * length * (_DIGITS + 1)


def _numbers(text: str, length: int, where: str, what: str) -> Iterable[int]:
    if not _NUMBERS.fullmatch(text):
        raise DatasetError(f"{where}: {what} is not small whole numbers with spaces between them")
    parts = text.split()
    if len(parts) != length:
        raise DatasetError(f"{where}: {len(parts)} numbers where others have {length}")
    return map(int, parts)


def _size(extent: Extent) -> float:
    request = extent.request
    per_word = 3 + len(str(request.seed))
    return per_word * request.num_words + (extent.digits + 2) * request.num_symbols


FORMAT: Final = Format(
    write,
    read,
    _size,
    "A file `GROUP=k.csv` has the words of length k: `seed`, `input` (the symbols) and "
    "`target` (the label after each).\n",
    "{split}/*.csv",
    refuse=refuse_left_out,
)
