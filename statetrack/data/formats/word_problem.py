"""Word-problem CSV: the format of the data published with Merrill, Petty & Sabharwal (2024).

arXiv 2404.08819. A file `GROUP=k.csv` holds words of one length k, one a row:

    seed,input,target
    7,3 0 2,3 3 5

`target` has the label after every symbol, so tasks that leave some out do not fit. In a dataset
a split is a folder of such files, one for each length, and its words are in order of length.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from statetrack.data.formats.flat import Flat, pad
from statetrack.errors import DatasetError, setting
from statetrack.sources import Batch, Source
from statetrack.sources.arrays import Unsigned, smallest_type

HEADER = ["seed", "input", "target"]

_NUMBER = re.compile(r"[0-9]{1,4}")


def write(folder: Path, split: str, batch: Batch, group: str, seed: int) -> None:
    """Write the folder `<split>` with a file for each length of the words `[N, T]`.

    Raises `DatasetError` where a label is left out.
    """
    inside = np.arange(batch.symbols.shape[1]) < batch.lengths[:, None]
    if not np.array_equal(batch.scored, inside):
        raise DatasetError(
            "word-problem CSV has a label after every symbol, and here some are left out: "
            f"choose another {setting('format')}, or {setting('supervision', 'every')}"
        )
    (folder / split).mkdir()
    for length in np.unique(batch.lengths).tolist():
        words = batch[np.flatnonzero(batch.lengths == length)]
        path = folder / split / f"{group_name(group)}={length}.csv"
        write_word_problem(path, words.symbols[:, :length], words.labels[:, :length], seed)


def read(folder: Path, split: str) -> Batch:
    """Read what `write` has written, in order of length."""
    paths = sorted((folder / split).glob("*=*.csv"), key=_length_in_name)
    if not paths:
        raise DatasetError(f"{folder / split}: holds no file GROUP=k.csv")
    parts = [_parse(path) for path in paths]
    symbols = np.concatenate([part[0].ravel() for part in parts])
    labels = np.concatenate([part[1].ravel() for part in parts])
    lengths = np.concatenate([np.full(len(part[0]), part[0].shape[1]) for part in parts])
    flat = Flat(symbols, labels, np.ones(len(symbols), np.bool_), lengths)
    return pad(flat, str(folder / split))


def write_word_problem(path: Path, symbols: Unsigned, labels: Unsigned, seed: int) -> None:
    """Write one file of words `[N, k]` with their labels `[N, k]`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
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
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read: {problem.strerror}") from None
    except (ValueError, csv.Error):
        raise DatasetError(f"{path}: holds no rows: the first line is {','.join(HEADER)}") from None
    if header != HEADER:
        raise DatasetError(f"{path}: the first line is not {','.join(HEADER)}")
    if not rows:
        raise DatasetError(f"{path}: holds no words")
    inputs, targets = [], []
    for line, row in enumerate(rows, start=2):
        if len(row) != len(HEADER):
            raise DatasetError(f"{path}, line {line}: {len(row)} columns, not {len(HEADER)}")
        inputs.append(_numbers(row[1], f"{path}, line {line}: input"))
        targets.append(_numbers(row[2], f"{path}, line {line}: target"))
    length = len(inputs[0])
    return _table(inputs, path, length), _table(targets, path, length)


def _numbers(text: str, where: str) -> Unsigned:
    parts = text.split()
    if not parts or not all(_NUMBER.fullmatch(part) for part in parts):
        raise DatasetError(f"{where} is not small whole numbers with spaces between them")
    return np.array(parts, np.uint16)


def _table(rows: Sequence[Unsigned], path: Path, length: int) -> Unsigned:
    for line, row in enumerate(rows, start=2):
        if len(row) != length:
            raise DatasetError(
                f"{path}, line {line}: {len(row)} numbers where others have {length}"
            )
    return np.stack(rows)


def _length_in_name(path: Path) -> int:
    number = path.stem.rpartition("=")[2]
    if not number.isdecimal():
        raise DatasetError(f"{path}: its name must be GROUP=k.csv, k being the length of its words")
    return int(number)
