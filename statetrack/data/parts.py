"""The words of a split, gone through a few at a time: held in memory, or kept on disk.

Letters: n words of a piece, T the width of the split, k symbols of a word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from statetrack.sources import Batch, Source, Supervision, UnlabelledWords, smallest_type

SYMBOLS_AT_ONCE: Final = 2**20
"""About how many symbols are held at once while words are drawn, labelled or written."""


def words_at_once(width: int) -> int:
    """How many words of a width make a piece."""
    return max(1, SYMBOLS_AT_ONCE // width)


class Chunks:
    """Rows of numbers by name, appended to and read in parts: in memory, or files of a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._held: dict[str, bytearray] = {}
        if folder is not None:
            folder.mkdir(parents=True)

    @property
    def on_disk(self) -> bool:
        """Whether the numbers are files."""
        return self._folder is not None

    def below(self, name: str) -> Chunks:
        """Further rows of the same kind, in a folder of their own."""
        return Chunks(None if self._folder is None else self._folder / name)

    def names(self, ending: str) -> list[str]:
        """The names of the rows that end so, in order."""
        if self._folder is None:
            return sorted(name for name in self._held if name.endswith(ending))
        return sorted(path.name for path in self._folder.glob(f"*{ending}"))

    def append(self, name: str, values: NDArray[Any]) -> None:
        """Add numbers at the end of a row, which begins with the first of them."""
        if self._folder is None:
            self._held.setdefault(name, bytearray()).extend(values.tobytes())
            return
        with (self._folder / name).open("ab") as file:
            file.write(values.tobytes())

    def read(self, name: str, type: DTypeLike, first: int = 0, number: int = -1) -> NDArray[Any]:
        """So many numbers of a row from the place `first` on; all by default."""
        size = np.dtype(type).itemsize
        if self._folder is None:
            end = None if number < 0 else (first + number) * size
            return np.frombuffer(self._held.get(name, bytearray())[first * size : end], type)
        path = self._folder / name
        if not path.exists():
            return np.empty(0, type)
        return np.fromfile(path, type, number, offset=first * size)

    def remove(self, name: str) -> None:
        """Forget a row, if there is one."""
        self._held.pop(name, None)
        if self._folder is not None:
            (self._folder / name).unlink(missing_ok=True)


class Spool:
    """Words without their labels: for each length a row of symbols, so nothing is padded.

    Beside them stands the row of all lengths, from which the order of the words follows.
    """

    def __init__(self, chunks: Chunks, num_symbols: int, width: int) -> None:
        self._chunks, self._type = chunks, smallest_type(num_symbols)
        self.width = width
        self.num_words = 0
        self.counts: Counter[int] = Counter()

    def add(self, words: UnlabelledWords) -> None:
        """Append words."""
        self._chunks.append("lengths", words.lengths.astype("<i4"))
        for length in np.unique(words.lengths).tolist():
            chosen = words.symbols[words.lengths == length, :length]
            self._chunks.append(f"{length}.words", chosen.astype(self._type, copy=False))
            self.counts[length] += len(chosen)
        self.num_words += len(words.lengths)

    def pieces(self, at_once: int | None = None) -> Iterator[UnlabelledWords]:
        """The words in the order in which they were added, so many at once: `[n, T]`."""
        size = at_once or words_at_once(self.width)
        read: Counter[int] = Counter()
        for first in range(0, self.num_words, size):
            number = min(size, self.num_words - first)
            lengths = self._chunks.read("lengths", "<i4", first, number)
            symbols = np.zeros((number, self.width), self._type)
            for length in np.unique(lengths).tolist():
                chosen = np.flatnonzero(lengths == length)
                symbols[chosen, :length] = self._read(length, read[length], len(chosen))
                read[length] += len(chosen)
            yield UnlabelledWords(symbols, lengths.astype(np.int64))

    def of_length(self, length: int) -> Iterator[UnlabelledWords]:
        """The words of one length, in their order: `[n, k]`."""
        size = words_at_once(length)
        for first in range(0, self.counts[length], size):
            number = min(size, self.counts[length] - first)
            yield UnlabelledWords(self._read(length, first, number), np.full(number, length))

    def _read(self, length: int, first: int, number: int) -> NDArray[np.unsignedinteger]:
        read = self._chunks.read(f"{length}.words", self._type, first * length, number * length)
        return read.reshape(number, length)


@dataclass(frozen=True, eq=False)
class Part(ABC):
    """The labelled words of one split, any number of times; `told` how many of them are done."""

    num_words: int  # N
    width: int  # T: how far every word is padded
    told: Callable[[int], None] | None

    def watched(self, told: Callable[[int], None]) -> Part:
        """The same words; `told` hears how many have been gone through."""
        return replace(self, told=told)

    def pieces(self, at_once: int | None = None) -> Iterator[Batch]:
        """The words in their order, so many at once: batches `[n, T]`."""
        return self._telling(self._in_order(at_once or words_at_once(self.width)))

    def by_length(self) -> Iterator[Batch]:
        """The words in order of length, those of one length in their order: `[n, <=T]`."""
        return self._telling(self._by_length())

    def _telling(self, pieces: Iterable[Batch]) -> Iterator[Batch]:
        done = 0
        for piece in pieces:
            yield piece
            done += len(piece)
            if self.told is not None:
                self.told(done)

    @abstractmethod
    def _in_order(self, at_once: int) -> Iterator[Batch]: ...

    @abstractmethod
    def _by_length(self) -> Iterator[Batch]: ...


@dataclass(frozen=True, eq=False)
class HeldPart(Part):
    """The words of a batch `[N, T]`."""

    batch: Batch

    @classmethod
    def of(cls, batch: Batch) -> HeldPart:
        """The words of `batch`."""
        return cls(len(batch), batch.longest, None, batch)

    def _in_order(self, at_once: int) -> Iterator[Batch]:
        for first in range(0, self.num_words, at_once):
            yield self.batch[first : first + at_once]

    def _by_length(self) -> Iterator[Batch]:
        order = np.argsort(self.batch.lengths, kind="stable")
        size = words_at_once(self.width)
        for first in range(0, self.num_words, size):
            yield self.batch[order[first : first + size]]


@dataclass(frozen=True, eq=False)
class SpooledPart(Part):
    """The words of a spool; they are labelled anew each time they are gone through."""

    spool: Spool
    source: Source
    supervision: Supervision

    @classmethod
    def of(cls, spool: Spool, source: Source, supervision: Supervision) -> SpooledPart:
        """The words of `spool`, with the labels that `supervision` asks for."""
        return cls(spool.num_words, spool.width, None, spool, source, supervision)

    def held(self) -> Batch:
        """All words at once: a batch `[N, T]`."""
        parts = list(self._in_order(words_at_once(self.width)))
        columns = ("symbols", "labels", "scored", "lengths")
        return Batch(*(np.concatenate([getattr(each, name) for each in parts]) for name in columns))

    def _in_order(self, at_once: int) -> Iterator[Batch]:
        yield from map(self._labelled, self.spool.pieces(at_once))

    def _by_length(self) -> Iterator[Batch]:
        for length in sorted(self.spool.counts):
            yield from map(self._labelled, self.spool.of_length(length))

    def _labelled(self, words: UnlabelledWords) -> Batch:
        return self.source.label_words(words.symbols, words.lengths, self.supervision)
