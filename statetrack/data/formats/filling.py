"""What a format is, and what its reader fills: arrays of the size that the data card declares.

A file in a dataset may come from anywhere, so nothing in it is believed. The card says how many
words there are and how long they are; a reader hands over a few words at a time, and whatever does
not fit the card is refused before it is kept.

Letters: N words of the split, n words of a piece, T time (the longest word).
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from statetrack.data.parts import Part
from statetrack.data.splits import Request
from statetrack.data.texts import TextRequest
from statetrack.errors import DatasetError
from statetrack.sources import Batch, Source, smallest_type
from statetrack.spec import Task
from statetrack.text import visible

MOST_BYTES: Final = 4 * 2**30
"""The most memory that a dataset may take once it has been read."""


class Flat(NamedTuple):
    """The words of a batch joined end to end, without padding, as files store them."""

    symbols: NDArray[Any]  # [sum of lengths]
    labels: NDArray[Any]
    scored: NDArray[Any]
    lengths: NDArray[Any]  # [N]: how long each one is


def flatten(batch: Batch) -> Flat:
    """The words of a batch `[N, T]` joined end to end."""
    inside = np.arange(batch.symbols.shape[1]) < batch.lengths[:, None]
    return Flat(batch.symbols[inside], batch.labels[inside], batch.scored[inside], batch.lengths)


class Writing(NamedTuple):
    """What a dataset is written from, beside its words."""

    task: Task
    seed: int
    text: TextRequest


class Extent(NamedTuple):
    """How much there is to write, before it is drawn; of what is compressed as if it were random.

    Raises `SettingsError` where words cannot be written as the text that is asked for.
    """

    source: Source
    request: Request
    text: TextRequest

    @property
    def digits(self) -> float:
        """The mean number of digits of a symbol and of its label together."""
        mean = 0.0
        for count in (self.source.num_symbols, self.source.num_labels):
            longest = len(str(count - 1))
            shorter: int = sum(10**digits for digits in range(1, longest))
            mean += longest - shorter / count
        return mean

    @property
    def entropy(self) -> float:
        """How many bytes a symbol and its label have of information."""
        return (math.log2(self.source.num_symbols) + math.log2(self.source.num_labels)) / 8


@dataclass(frozen=True)
class Format:
    """How splits are written and read, and what people are told about it.

    `write(folder, split, part, writing)` writes a split; `read(folder, split, declared)` returns
    it, held against what its card declares. `size` is the number of bytes, about. `columns` says
    what is in the files. `files` is a pattern below the data folder with `{split}` in it by which
    `datasets.load_dataset` finds them, or empty where it cannot read them. `example(data)` is a
    program of another library, given the path of a split without its ending; `usage` a paragraph.

    `refuse` raises `DatasetError` for words that the format cannot hold. `finish` writes files
    beside the folder of data; `beside` says whether a name is of one of them.
    """

    write: Callable[[Path, str, Part, Writing], None]
    read: Callable[[Path, str, Declared], Batch]
    size: Callable[[Extent], float]
    columns: str
    files: str = ""
    example: Callable[[str], str] | None = None
    usage: Callable[[Mapping[str, Any], str], str] | None = None
    refuse: Callable[[Batch], None] = lambda batch: None
    finish: Callable[[Path, Sequence[str], Writing], None] = lambda folder, splits, writing: None
    beside: Callable[[str], bool] = lambda name: False


class Declared(NamedTuple):
    """What the card says of a split."""

    words: int  # N
    shortest: int
    longest: int  # T
    widest: int  # how far words may be padded
    symbols: int  # in all words together
    labels_asked: int
    num_symbols: int  # V, of the alphabet
    num_labels: int  # C

    @property
    def bytes_held(self) -> int:
        """How much memory the split takes once it has been read."""
        widths = (smallest_type(count).itemsize for count in (self.num_symbols, self.num_labels))
        return self.words * (self.widest * (sum(widths) + 1) + 8)


class Filling:
    """The arrays `[N, T]` of a split, filled with pieces of a file and checked against the card.

    `where` opens every message; `unit` is what a word is in the file: a word or a line.
    """

    def __init__(self, where: str, declared: Declared, unit: str = "word") -> None:
        self._where, self._declared, self._unit = where, declared, unit
        shape = declared.words, declared.longest
        try:
            self._symbols = np.zeros(shape, smallest_type(declared.num_symbols))
            self._labels = np.zeros(shape, smallest_type(declared.num_labels))
            self._scored = np.zeros(shape, np.bool_)
            self._lengths = np.zeros(declared.words, np.int64)
        except MemoryError:
            raise DatasetError(
                f"{where}: its words take {declared.bytes_held:,} bytes of memory, more than there "
                "are here: write a smaller dataset"
            ) from None
        self._filled = 0

    def add(self, piece: Flat) -> None:
        """Take the next n words, joined end to end.

        Raises `DatasetError` where their parts do not fit each other or the card.
        """
        declared, first = self._declared, self._filled
        lengths = self._integers("length", piece.lengths, 0, declared.longest + 1)
        num_words = len(lengths)
        if num_words == 0:
            return
        if first + num_words > declared.words:
            raise DatasetError(
                f"{self._where}: holds more words than the {declared.words} of card.json"
            )
        short = np.flatnonzero(lengths < declared.shortest)
        if len(short):
            raise self._wrong(
                int(short[0]),
                f"length {lengths[short[0]]}, where card.json allows {declared.shortest} or more",
            )
        ends = lengths.cumsum()
        sizes = {len(piece.symbols), len(piece.labels), len(piece.scored), int(ends[-1])}
        if len(sizes) > 1:
            raise DatasetError(
                f"{self._where}: not every symbol has its label: write the dataset again"
            )
        symbols = self._integers("symbol", piece.symbols, 0, declared.num_symbols, ends)
        labels = self._integers("label", piece.labels, 0, declared.num_labels, ends)
        if piece.scored.dtype != np.bool_:
            raise DatasetError(f"{self._where}: `scored` is not yes or no everywhere")
        inside = np.arange(declared.longest) < lengths[:, None]
        rows = slice(first, first + num_words)
        self._symbols[rows][inside] = symbols
        self._labels[rows][inside] = labels
        self._scored[rows][inside] = piece.scored
        self._lengths[rows] = lengths
        self._filled += num_words

    def add_padded(
        self,
        symbols: NDArray[Any],
        labels: NDArray[Any],
        scored: NDArray[Any],
        lengths: NDArray[Any],
    ) -> None:
        """Take the next n words, each array `[n, T or wider]`, with nothing behind a word's end.

        Raises `DatasetError` as `add` does.
        """
        lengths = self._integers("length", lengths, 0, symbols.shape[1] + 1)
        outside = np.arange(symbols.shape[1]) >= lengths[:, None]
        filled = (outside & ((symbols != 0) | (labels != 0) | scored)).any(axis=1)
        if filled.any():
            raise self._wrong(int(filled.argmax()), "something stands behind its end")
        self.add(flatten(Batch(symbols, labels, scored, lengths)))

    def done(self) -> Batch:
        """The whole split.

        Raises `DatasetError` where its words are not as many, or not those, that the card tells of.
        """
        declared, lengths = self._declared, self._lengths
        if self._filled < declared.words:
            raise DatasetError(
                f"{self._where}: holds {self._filled} words, card.json says {declared.words}"
            )
        found = {
            "shortest": int(lengths.min()),
            "longest": int(lengths.max()),
            "symbols": int(lengths.sum()),
            "labels_asked": int(self._scored.sum()),
        }
        for name, value in found.items():
            if value != getattr(declared, name):
                raise DatasetError(
                    f"{self._where}: '{name}' is {value}, card.json says {getattr(declared, name)}"
                )
        return Batch(self._symbols, self._labels, self._scored, lengths)

    def _integers(
        self,
        what: str,
        values: NDArray[Any],
        least: int,
        bound: int,
        ends: NDArray[np.int64] | None = None,
    ) -> NDArray[Any]:
        """The values, all integers from `least` to `bound` - 1; `ends` says where words end."""
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise DatasetError(f"{self._where}: a {what} is not a whole number")
        wrong = np.flatnonzero((values < least) | (values >= bound))
        if len(wrong):
            place = int(wrong[0])
            word = place if ends is None else int(np.searchsorted(ends, place, side="right"))
            most = f"at most {bound - 1}" if bound > 1 else "only 0"
            raise self._wrong(word, f"{what} {values[place]}, where card.json allows {most}")
        return values.astype(np.int64) if what == "length" else values

    def _wrong(self, word: int, what: str) -> DatasetError:
        number = self._filled + word + 1
        return DatasetError(f"{self._where}, {self._unit} {number}: {what}")


def file_size(path: Path) -> int:
    """The size of a file that is to be read.

    Raises `DatasetError` where there is none, or something else in its place: a folder, or a pipe,
    from which reading would never end.
    """
    try:
        status = os.stat(path)
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read: {reason(problem)}") from None
    except ValueError:
        raise DatasetError(f"{str(path)!r}: is not the path of a file") from None
    if not stat.S_ISREG(status.st_mode):
        raise DatasetError(f"{path}: cannot be read: it is not a file")
    return status.st_size


def flaw(invalid: ValidationError) -> tuple[str, str]:
    """The first mistake in JSON: the place of the value, empty for all of it, and what is wrong."""
    first = invalid.errors(include_url=False, include_input=False, include_context=False)[0]
    place = one_line(".".join(str(part) for part in first["loc"])) if first["loc"] else ""
    return place, one_line(first["msg"].removeprefix("Value error, "))


def reason(problem: OSError) -> str:
    """Why something could not be read or written, in a few words."""
    if problem.errno:
        return os.strerror(problem.errno)
    return one_line(problem)


def one_line(problem: object) -> str:
    """The first line of what a library says, cut short, with what does not print escaped."""
    lines = str(problem).splitlines() or [type(problem).__name__]
    text = lines[0][:200]
    return visible(text)
