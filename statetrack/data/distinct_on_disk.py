"""Words no two of which are equal, found with the disk instead of memory.

The same words in the same order as `draw_distinct` draws one after the other, for any number of
them in the same memory. Of every drawn word a hash of 128 bits is kept, in one of many files by
its value, so that equal words meet in one file and each file can be sorted in memory. A word whose
hash came up before is left out. Different words of equal hash, of which one would be left out
without need, do not occur in practice: among 10^9 words the chance is below 10^-10. No word can
stand twice, whatever the hash.

Letters: n words of a piece, T time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from statetrack.data.distinct import most_draws, words_from
from statetrack.data.parts import words_at_once
from statetrack.sources import LengthDistribution, RandomBits, Source, UnlabelledWords

_HASHES_PER_FILE: Final = 2**20
_INDICES_PER_FILE: Final = 2**22
_FIRST_ROUND: Final = 2**20
_LEAST_ROUND: Final = 2**16
_KEY: Final = 20261122
"""What the hash is drawn from; it decides nothing but which words share a file."""

_RECORD: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("index", "<i8")])
BYTES_PER_WORD: Final = _RECORD.itemsize

Drawn = Callable[[int], None]
"""Told how many words have been drawn so far."""


class Distinct:
    """The different words among the first `num_drawn` that a source draws."""

    def __init__(
        self,
        source: Source,
        lengths: LengthDistribution,
        bits: RandomBits,
        seen: Repetitions,
    ) -> None:
        self._source, self._lengths, self._bits = source, lengths, bits
        self._seen = seen
        self._num_bits = 1 + source.num_bits(lengths.longest)
        self.num_drawn = 0
        self.num_found = 0

    def search(self, num_words: int, drawn: Drawn) -> None:
        """Draw until `num_words` different words are found, or it becomes clear that they are not.

        It is given up after as many draws as `draw_distinct` makes, or before, where twice the
        present yield would not be enough for the rest.
        """
        most = most_draws(num_words)
        size = min(num_words, _FIRST_ROUND)
        while self.num_found < num_words and self.num_drawn < most:
            size = min(size, most - self.num_drawn)
            self._draw(size, drawn)
            found = self._seen.settle()
            share = (found + 1) / size
            self.num_found += found
            missing = num_words - self.num_found
            if missing > 2 * share * (most - self.num_drawn):
                return
            size = max(_LEAST_ROUND, min(math.ceil(1.05 * missing / share), 2 * num_words))

    def words(self) -> Iterator[UnlabelledWords]:
        """The different words in the order in which they first came up: `[<=n, T]`."""
        for first, words in self._candidates(0, self.num_drawn):
            repeated = self._seen.among(first, len(words.lengths))
            yield words.take(np.flatnonzero(~repeated))

    def _draw(self, number: int, drawn: Drawn) -> None:
        for first, words in self._candidates(self.num_drawn, number):
            self._seen.add(words, first)
            drawn(first + len(words.lengths))
        self.num_drawn += number

    def _candidates(self, first: int, number: int) -> Iterator[tuple[int, UnlabelledWords]]:
        width, end = self._num_bits, first + number
        size = words_at_once(width)
        for begin in range(first, end, size):
            count = min(size, end - begin)
            bits = self._bits.read(begin * width, count * width).reshape(count, width)
            yield begin, words_from(self._source, self._lengths, bits)


class Repetitions:
    """Which words of a long row stood before in it, or were excluded, as files in a folder.

    `expected` is about how many words will be added, `longest` their greatest length.
    """

    def __init__(self, folder: Path, expected: int, longest: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._shift = 64 - max(0, math.ceil(math.log2(max(1, expected / _HASHES_PER_FILE))))
        raw = np.random.PCG64(_KEY).random_raw(2 * (longest + 1)) | np.uint64(1)
        self._factors = raw.astype(np.uint64).reshape(2, -1)  # [2, T + 1]

    def exclude(self, words: UnlabelledWords) -> None:
        """Count words as seen before the row begins."""
        self._append(words, np.full(len(words.lengths), -1, np.int64))

    def add(self, words: UnlabelledWords, first: int) -> None:
        """Add words, which have the numbers `first`, `first + 1`, ... in the row."""
        self._append(words, first + np.arange(len(words.lengths)))

    def settle(self) -> int:
        """Find the repetitions among the words added since the last time; how many are new."""
        num_new = 0
        for path in sorted(self._folder.glob("*.hashes")):
            records = np.fromfile(path, _RECORD)
            kept_before = path.with_suffix(".kept")
            earlier = np.fromfile(kept_before, _RECORD) if kept_before.exists() else records[:0]
            joined = np.concatenate([earlier, records])
            joined = joined[np.lexsort((joined["low"], joined["high"]))]  # stable: by number last
            same = (joined["high"][1:] == joined["high"][:-1]) & (
                joined["low"][1:] == joined["low"][:-1]
            )
            repeated = np.concatenate([[False], same])
            self._note(joined["index"][repeated])
            kept = joined[~repeated]
            num_new += int((kept["index"] >= 0).sum()) - int((earlier["index"] >= 0).sum())
            kept.tofile(kept_before)
            path.unlink()
        return num_new

    def among(self, first: int, number: int) -> NDArray[np.bool_]:
        """Whether each of the words `first .. first + number - 1` repeats an earlier one."""
        repeated = np.zeros(number, np.bool_)
        end = first + number
        for block in range(first // _INDICES_PER_FILE, (end - 1) // _INDICES_PER_FILE + 1):
            indices = self._noted(block)
            inside = indices[(indices >= first) & (indices < end)]
            repeated[inside - first] = True
        return repeated

    def _append(self, words: UnlabelledWords, indices: NDArray[np.int64]) -> None:
        if len(indices) == 0:
            return
        records = np.empty(len(indices), _RECORD)
        records["high"], records["low"] = self._hashes(words)
        records["index"] = indices
        if self._shift == 64:
            files = np.zeros(len(records), np.uint64)
        else:
            files = records["high"] >> np.uint64(self._shift)
        order = np.argsort(files, kind="stable")
        records, files = records[order], files[order]
        numbers, starts = np.unique(files, return_index=True)
        for number, part in zip(
            numbers.tolist(), np.split(records, starts[1:].tolist()), strict=True
        ):
            with (self._folder / f"{number}.hashes").open("ab") as file:
                file.write(part.tobytes())

    def _hashes(self, words: UnlabelledWords) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Two numbers for each word: sums modulo 2^64 of its symbols times random factors."""
        width = words.symbols.shape[1]
        inside = np.arange(width) < words.lengths[:, None]
        numbers = (words.symbols.astype(np.uint64) + np.uint64(1)) * inside
        high, low = (_mixed(numbers @ factors[:width]) for factors in self._factors)
        return high, low

    def _note(self, indices: NDArray[np.int64]) -> None:
        indices = np.sort(indices[indices >= 0])
        if len(indices) == 0:
            return
        blocks, starts = np.unique(indices // _INDICES_PER_FILE, return_index=True)
        for block, part in zip(
            blocks.tolist(), np.split(indices, starts[1:].tolist()), strict=True
        ):
            with (self._folder / f"{block}.repeated").open("ab") as file:
                file.write(part.astype("<i8").tobytes())

    def _noted(self, block: int) -> NDArray[np.int64]:
        path = self._folder / f"{block}.repeated"
        return np.fromfile(path, "<i8") if path.exists() else np.empty(0, np.int64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The values one to one, with every bit depending on all: the last steps of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return mixed
