"""The words of a split, gone through a few at a time: held in memory, or kept on disk.

Letters: n words of a piece, T the width of the split, k symbols of a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.sources import Batch, Source, Supervision, UnlabelledWords, Unsigned, smallest_type

SYMBOLS_AT_ONCE: Final = 2**20
"""About how many symbols are held at once while words are drawn, labelled or written."""


def words_at_once(width: int) -> int:
    """How many words of a width make a piece."""
    return max(1, SYMBOLS_AT_ONCE // width)


class Part(Protocol):
    """The labelled words of one split, any number of times."""

    @property
    def num_words(self) -> int:
        """N."""
        ...

    @property
    def width(self) -> int:
        """T: how far every word is padded."""
        ...

    def pieces(self, at_once: int | None = None) -> Iterator[Batch]:
        """The words in their order, so many at once: batches `[n, T]`."""
        ...

    def by_length(self) -> Iterator[Batch]:
        """The words in order of length, those of one length in their order: `[n, <=T]`."""
        ...


@dataclass(frozen=True, eq=False)
class HeldPart:
    """The words of a batch `[N, T]`."""

    batch: Batch

    @property
    def num_words(self) -> int:
        """N."""
        return len(self.batch)

    @property
    def width(self) -> int:
        """T."""
        return self.batch.longest

    def pieces(self, at_once: int | None = None) -> Iterator[Batch]:
        """The words in their order."""
        size = at_once or words_at_once(self.width)
        for first in range(0, self.num_words, size):
            yield self.batch[first : first + size]

    def by_length(self) -> Iterator[Batch]:
        """The words in order of length."""
        order = np.argsort(self.batch.lengths, kind="stable")
        size = words_at_once(self.width)
        for first in range(0, self.num_words, size):
            yield self.batch[order[first : first + size]]


@dataclass(frozen=True, eq=False)
class WatchedPart:
    """A part that tells how many of its words have been gone through."""

    part: Part
    report: Callable[[int], None]

    @property
    def num_words(self) -> int:
        """N."""
        return self.part.num_words

    @property
    def width(self) -> int:
        """T."""
        return self.part.width

    def pieces(self, at_once: int | None = None) -> Iterator[Batch]:
        """The words in their order."""
        return self._watched(self.part.pieces(at_once))

    def by_length(self) -> Iterator[Batch]:
        """The words in order of length."""
        return self._watched(self.part.by_length())

    def _watched(self, pieces: Iterator[Batch]) -> Iterator[Batch]:
        done = 0
        for piece in pieces:
            yield piece
            done += len(piece)
            self.report(done)


class Spool:
    """Words without their labels in a folder of their own: one file for each length.

    Beside them stands the row of all lengths, from which the order of the words follows.
    """

    def __init__(self, folder: Path, num_symbols: int, width: int) -> None:
        folder.mkdir(parents=True)
        self._folder, self._type = folder, smallest_type(num_symbols)
        self.width = width
        self.num_words = 0
        self.counts: Counter[int] = Counter()

    def add(self, words: UnlabelledWords) -> None:
        """Append words."""
        with (self._folder / "lengths").open("ab") as file:
            file.write(words.lengths.astype("<i4").tobytes())
        for length in np.unique(words.lengths).tolist():
            chosen = words.symbols[words.lengths == length, :length]
            with self._file(length).open("ab") as file:
                file.write(np.ascontiguousarray(chosen, self._type).tobytes())
            self.counts[length] += len(chosen)
        self.num_words += len(words.lengths)

    def pieces(self, at_once: int | None = None) -> Iterator[UnlabelledWords]:
        """The words in the order in which they were added, so many at once: `[n, T]`."""
        size = at_once or words_at_once(self.width)
        read: Counter[int] = Counter()
        for first in range(0, self.num_words, size):
            number = min(size, self.num_words - first)
            lengths = np.fromfile(self._folder / "lengths", "<i4", number, offset=4 * first)
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

    def _file(self, length: int) -> Path:
        return self._folder / f"{length}.words"

    def _read(self, length: int, first: int, number: int) -> Unsigned:
        offset = first * length * self._type.itemsize
        flat: NDArray[np.unsignedinteger] = np.fromfile(
            self._file(length), self._type, number * length, offset=offset
        )
        return flat.reshape(number, length)


@dataclass(frozen=True, eq=False)
class SpooledPart:
    """The words of a spool; they are labelled anew each time they are gone through."""

    spool: Spool
    source: Source
    supervision: Supervision

    @property
    def num_words(self) -> int:
        """N."""
        return self.spool.num_words

    @property
    def width(self) -> int:
        """T."""
        return self.spool.width

    def pieces(self, at_once: int | None = None) -> Iterator[Batch]:
        """The words in their order."""
        yield from map(self._labelled, self.spool.pieces(at_once))

    def by_length(self) -> Iterator[Batch]:
        """The words in order of length."""
        for length in sorted(self.spool.counts):
            yield from map(self._labelled, self.spool.of_length(length))

    def _labelled(self, words: UnlabelledWords) -> Batch:
        return self.source.label_words(words.symbols, words.lengths, self.supervision)
