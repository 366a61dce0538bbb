"""Answers of a model from elsewhere: one file for each split of a dataset.

`SPLIT.npy` holds an array of whole numbers, `[N, T]` or `[N]`; `SPLIT.jsonl` an object on each line
whose key `answers` holds those of one word, a list or one number. Labels are numbered from 0, and
-1 stands for no answer. Either has the words of the split in their order.

N words, T time.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from statetrack.data.formats.filling import file_size, flaw, one_line
from statetrack.errors import DatasetError, nearest_or_known
from statetrack.sources import Batch

NO_ANSWER: Final = -1
"""Stands where a model gives none, or its logits are not finite: always wrong."""

ENDINGS: Final = (".npy", ".jsonl")
"""How the names of files of answers end."""

_BYTES_PER_WORD: Final = 1_000
_BYTES_PER_SYMBOL: Final = 128
"""No line is longer than these allow: the columns of the dataset may stand on it too."""

_Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class _Word(TypedDict):
    """What is read of a line; other keys are passed over."""

    __pydantic_config__ = ConfigDict(strict=True)  # type: ignore[misc]

    answers: list[_Number] | _Number


_WORD = TypeAdapter(_Word)


def answer_files(paths: Sequence[Path], splits: Mapping[str, Batch]) -> dict[str, Path]:
    """The file of answers of each split: the files given, and those in the folders given.

    A file is of the split that it is named after. Raises `DatasetError` where there is none of that
    name, or where two files are of one split.
    """
    found: dict[str, Path] = {}
    for path in _files(paths):
        name = path.name.removesuffix(path.suffix)
        if name not in splits:
            raise DatasetError(
                f"{path}: is to be named after a split, SPLIT.npy or SPLIT.jsonl, and the dataset "
                f"has no split '{name}'.{nearest_or_known(name, splits)}"
            )
        if name in found:
            raise DatasetError(f"{path}: {found[name]} has answers to the same split: give one")
        found[name] = path
    return {name: found[name] for name in splits if name in found}


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(each for each in path.iterdir() if each.suffix in ENDINGS)
        if not inside:
            raise DatasetError(f"{path}: holds no file SPLIT.npy or SPLIT.jsonl of answers")
        yield from inside


def read_answers(path: Path, words: Batch) -> NDArray[np.int64]:
    """The answers `[N, T]` to the words of a split, or `[N]` where each word has one.

    Raises `DatasetError` where the file cannot be read, or does not fit the words.
    """
    if path.suffix not in ENDINGS:
        raise DatasetError(f"{path}: answers are read from .npy and .jsonl files")
    file_size(path)
    read = _read_array if path.suffix == ".npy" else _read_lines
    try:
        return fitted(read(path, words), words, str(path))
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read: {one_line(problem)}") from None


def fitted(answers: ArrayLike, words: Batch, where: str) -> NDArray[np.int64]:
    """Answers as an array `[N, T]` or `[N]`; what stands behind the longest word is cut off.

    Raises `DatasetError`, opened by `where`, where they are no whole numbers or another shape.
    """
    array = np.asarray(answers)
    if array.dtype.kind not in "iu":
        raise DatasetError(
            f"{where}: answers are labels, whole numbers from 0, and not {array.dtype}: of logits "
            "take the largest, `logits.argmax(-1)`"
        )
    num_words, longest = len(words), int(words.lengths.max())
    fits = array.shape[:1] == (num_words,) and array.ndim in (1, 2)
    if not fits or (array.ndim == 2 and array.shape[1] < longest):
        raise DatasetError(
            f"{where}: the answers have the shape {list(array.shape)}, and the split has "
            f"{num_words} words of up to {longest} symbols: give [{num_words}, {longest}], or "
            f"[{num_words}] for the last label of each word alone"
        )
    if array.ndim == 2:
        array = array[:, : words.longest]
    return array.astype(np.int64)


def _read_array(path: Path, words: Batch) -> NDArray[Any]:
    try:
        # mapped, so that a header that promises more than the file holds takes no memory
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (ValueError, TypeError, EOFError, SyntaxError, OverflowError) as problem:
        raise DatasetError(f"{path}: is no array of numpy: {one_line(problem)}") from None


def _read_lines(path: Path, words: Batch) -> NDArray[np.int64]:
    longest_line = _BYTES_PER_WORD + _BYTES_PER_SYMBOL * int(words.lengths.max())
    answers = np.full((len(words), int(words.lengths.max())), NO_ANSWER, np.int64)
    single = None
    with path.open("rb") as file:
        for number in count():
            line = file.readline(longest_line + 1)
            if number == 0:
                line = line.removeprefix(BOM_UTF8)
            where = f"{path}, line {number + 1}"
            if bool(line) != (number < len(words)):
                raise DatasetError(
                    f"{path}: has {'more' if line else number} lines, and the split "
                    f"{len(words)} words"
                )
            if not line:
                break
            found = _parse(line, longest_line, where)
            if single not in (None, isinstance(found, int)):
                raise DatasetError(f"{where}: 'answers' is a list on some lines, not on all")
            single = isinstance(found, int)
            if isinstance(found, int):
                answers[number, 0] = found
                continue
            length = int(words.lengths[number])
            if len(found) < length:
                raise DatasetError(f"{where}: has {len(found)} answers, its word {length} symbols")
            answers[number, :length] = found[:length]
    return answers[:, 0] if single else answers


def _parse(line: bytes, longest: int, where: str) -> list[int] | int:
    if len(line) > longest:
        raise DatasetError(f"{where}: longer than the longest word of the split allows")
    try:
        return _WORD.validate_json(line)["answers"]
    except ValidationError as invalid:
        _, what = flaw(invalid)
        raise DatasetError(f'{where}: not {{"answers": [0, 1, ...]}}: {what}') from None
