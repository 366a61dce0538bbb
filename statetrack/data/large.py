"""Splits drawn onto the disk: the same words as `draw_splits`, in memory that does not grow.

Where a split is small enough, `draw_splits` is quicker.

Letters: N words asked for, n words of a piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.data.distinct import draw_distinct, list_or_draw_words, needs_list, too_unlikely
from statetrack.data.distinct_on_disk import BYTES_PER_WORD, Distinct, Repetitions
from statetrack.data.fixed import HELD_OUT_CHOICE
from statetrack.data.parts import Part, Spool, SpooledPart, words_at_once
from statetrack.data.splits import Choice, assign, check_sizes, name_of_test
from statetrack.errors import SettingsError
from statetrack.sources import (
    LengthDistribution,
    RandomBits,
    Source,
    Supervision,
    UnlabelledWords,
    smallest_type,
)

MOST_LISTED: Final = 2**30
"""How many bytes a list of all words of some lengths may take."""

_BITS_AT_ONCE: Final = 2**20


class Progress(Protocol):
    """Told what is being done, how many words of it are done, and of how many."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show it."""
        ...


@dataclass(frozen=True)
class Request:
    """What is asked of a dataset: the arguments of `draw_splits`."""

    lengths: LengthDistribution
    num_train: int
    num_validation: int
    test_lengths: tuple[int, ...]
    num_test: int
    supervision: Supervision
    seed: int

    @property
    def sizes(self) -> list[tuple[int, LengthDistribution]]:
        """The number of words of every split, and their lengths."""
        tests = sorted(set(self.test_lengths)) if self.num_test else []
        return [
            (self.num_train, self.lengths),
            (self.num_validation, self.lengths),
            *((self.num_test, LengthDistribution(length, length)) for length in tests),
        ]

    @property
    def num_words(self) -> int:
        """The words of all splits."""
        return sum(number for number, _ in self.sizes)

    @property
    def num_symbols(self) -> int:
        """The symbols of all splits, as many as are to be expected."""
        return sum(
            number * (lengths.shortest + lengths.longest) // 2 for number, lengths in self.sizes
        )

    @property
    def num_padded(self) -> int:
        """The symbols of all splits with the padding."""
        return sum(number * lengths.longest for number, lengths in self.sizes)


@dataclass(frozen=True, eq=False)
class LargeSplits:
    """The words of every split in a folder, and how they were drawn: as `Splits`."""

    parts: Mapping[str, Part]
    lengths: LengthDistribution
    supervision: Supervision
    seed: int
    distinct: bool


def bytes_beside(request: Request, source: Source) -> int:
    """How much room `draw_large_splits` takes on the disk."""
    width = smallest_type(source.num_symbols).itemsize
    return request.num_symbols * width + (4 + BYTES_PER_WORD) * request.num_words


def draw_large_splits(
    source: Source, request: Request, folder: Path, progress: Progress
) -> LargeSplits:
    """Draw the splits that `draw_splits` draws, as files in a folder.

    Raises `SettingsError` as `draw_splits` does, and where so many words must be listed that the
    list takes more than `MOST_LISTED`.
    """
    check_sizes(request.num_train, request.num_validation, request.num_test)
    for _, lengths in request.sizes:
        source.check_length(lengths.longest)
    spools = {
        name: Spool(folder / name, source.num_symbols, request.lengths.longest)
        for name in ("train", "validation")
    }
    train, validation = spools.values()
    drawing = _Drawing(source, request, folder, progress)
    distinct = drawing.different(train, validation)
    if not distinct:
        drawing.repeated(train, validation)
    if not request.num_validation:
        del spools["validation"]
    for length in sorted(set(request.test_lengths)) if request.num_test else ():
        test = Spool(folder / name_of_test(length), source.num_symbols, length)
        drawing.test(test, length, [train, validation], distinct)
        spools[name_of_test(length)] = test
    parts = {
        name: SpooledPart(spool, source, request.supervision) for name, spool in spools.items()
    }
    return LargeSplits(parts, request.lengths, request.supervision, request.seed, distinct)


class _Drawing:
    """The steps of drawing one dataset."""

    def __init__(self, source: Source, request: Request, folder: Path, progress: Progress) -> None:
        self._source, self._request = source.part("train"), request
        self._tests = source.part("test")
        self._folder, self._progress = folder, progress

    def different(self, train: Spool, validation: Spool) -> bool:
        """Draw both without repetition, or nothing where there are not so many words."""
        request, source = self._request, self._source
        num_words = request.num_train + request.num_validation
        among = source.count_words(request.lengths)
        if among is not None and among < num_words:
            return False
        if needs_list(among, num_words):
            self._check_list(among, request.lengths, num_words)
            words = draw_distinct(source, request.lengths, num_words, request.seed)
            pieces = _in_pieces(words)
        else:
            bits = RandomBits(request.seed, "distinct")
            seen = Repetitions(self._folder / "seen", num_words, request.lengths.longest)
            found = Distinct(source, request.lengths, bits, seen)
            found.search(num_words, lambda done: self._progress("drawing", done, num_words))
            if found.num_found < num_words:
                if among is None:
                    return False
                raise too_unlikely(request.lengths, num_words, found.num_found, found.num_drawn, 0)
            pieces = _first(found.words(), num_words)
        division = _Division(num_words, request.num_validation, request.seed)
        done = 0
        for piece in pieces:
            held_out = division.next(len(piece.lengths))
            train.add(piece.take(np.flatnonzero(~held_out)))
            validation.add(piece.take(np.flatnonzero(held_out)))
            done += len(piece.lengths)
            self._progress("dividing", done, num_words)
        return True

    def repeated(self, train: Spool, validation: Spool) -> None:
        """Draw both with repetition, each from words of its own."""
        request = self._request
        sizes = request.num_train, request.num_validation
        among = self._source.count_words(request.lengths)
        self._check_list(among, request.lengths, sum(sizes))
        words, chances = list_or_draw_words(self._source, request.lengths, request.seed)
        indices = assign(chances, request.lengths, *sizes, request.seed)
        bits = RandomBits(request.seed, "repeat")
        done = 0
        size = words_at_once(request.lengths.longest)
        for spool, of_split, number in zip((train, validation), indices, sizes, strict=True):
            choice, end = Choice(of_split, chances), done + number
            for first in range(done, end, size):
                count = min(size, end - first)
                spool.add(words.take(choice.draw(bits.read(first, count))))
                self._progress("drawing", first + count, sum(sizes))
            done = end

    def test(self, spool: Spool, length: int, used: Sequence[Spool], distinct: bool) -> None:
        """Draw the test words of a length, all different and none of them in use."""
        request, source, num_words = self._request, self._tests, self._request.num_test
        only = LengthDistribution(length, length)
        among = source.count_words(only)
        taken = sum(each.counts[length] for each in used)
        if not distinct:  # then there are so few that they could be listed
            taken = len(_keys(used, length))
        if needs_list(among, num_words + taken):
            self._check_list(among, only, num_words + taken)
            excluded = _keys(used, length)
            found = draw_distinct(
                source, only, num_words, request.seed, variant=length, excluded=excluded
            )
            for piece in _in_pieces(found):
                spool.add(piece)
            return
        seen = Repetitions(self._folder / f"seen{length}", num_words + taken, length)
        for each in used:
            for piece in each.of_length(length):
                seen.exclude(piece)
        search = Distinct(source, only, RandomBits(request.seed, "distinct", length), seen)
        stage = f"drawing words of {length}"
        search.search(num_words, lambda done: self._progress(stage, done, num_words))
        if search.num_found < num_words:
            raise too_unlikely(only, num_words, search.num_found, search.num_drawn, taken)
        for piece in _first(search.words(), num_words):
            spool.add(piece)

    def _check_list(self, among: int | None, lengths: LengthDistribution, num_words: int) -> None:
        width = smallest_type(self._source.num_symbols).itemsize
        size = (among or 0) * (lengths.longest * width + 24)
        if size > MOST_LISTED:
            raise SettingsError(
                f"{num_words:,} words of length {lengths} are asked for, of which there are "
                f"{among:,}: to draw so large a share they must be listed, which takes "
                f"{size / 1e9:,.1f} GB, more than {MOST_LISTED / 1e9:,.1f}: ask for at most "
                f"{(among or 0) // 4:,} words, or for other lengths"
            )


class _Division:
    """Which words are held out: as `divide` chooses them, a few words at a time."""

    def __init__(self, num_words: int, num_held_out: int, seed: int) -> None:
        self._bits = RandomBits(seed, "shuffle", HELD_OUT_CHOICE)
        self._next = 0
        self._bound, self._ties = self._find_bound(num_words, num_held_out)

    def next(self, number: int) -> NDArray[np.bool_]:
        """Whether each of the next words is held out."""
        bits = self._bits.read(self._next, number)
        self._next += number
        ties = bits == self._bound
        first_ties = ties & (ties.cumsum() <= self._ties)
        self._ties -= int(first_ties.sum())
        held_out: NDArray[np.bool_] = (bits < self._bound) | first_ties
        return held_out

    def _find_bound(self, num_words: int, num_held_out: int) -> tuple[int, int]:
        """The number below which all are held out, and how many of those equal to it are.

        Found from its upper 16 bits and then its lower ones, by counting.
        """
        upper = 0
        left = num_held_out
        for shift in (16, 0):
            counts = np.zeros(2**16, np.int64)
            for first in range(0, num_words, _BITS_AT_ONCE):
                bits = self._bits.read(first, min(_BITS_AT_ONCE, num_words - first))
                if shift == 0:
                    bits = bits[(bits >> 16) == upper]
                counts += np.bincount((bits >> shift) & 0xFFFF, minlength=2**16)
            ends = counts.cumsum()
            place = int(np.searchsorted(ends, left, side="left"))
            left -= int(ends[place] - counts[place])
            upper = place if shift == 16 else (upper << 16) + place
        return upper, left


def _keys(spools: Sequence[Spool], length: int) -> frozenset[bytes]:
    """The different words of one length in spools."""
    pieces = chain.from_iterable(spool.of_length(length) for spool in spools)
    return frozenset(key for piece in pieces for key in piece.keys())


def _in_pieces(words: UnlabelledWords) -> Iterator[UnlabelledWords]:
    size = words_at_once(words.symbols.shape[1])
    for first in range(0, len(words.lengths), size):
        piece = slice(first, first + size)
        yield UnlabelledWords(words.symbols[piece], words.lengths[piece])


def _first(pieces: Iterator[UnlabelledWords], number: int) -> Iterator[UnlabelledWords]:
    """The first words of a row of pieces."""
    for piece in pieces:
        if number <= 0:
            return
        yield UnlabelledWords(piece.symbols[:number], piece.lengths[:number])
        number -= len(piece.lengths)
