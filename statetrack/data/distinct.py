"""Words no two of which are equal, drawn at random: in memory, or over files for any number.

Where words are few all are listed, each with an exponential variate over its probability as its
key, and the smallest keys taken (Efraimidis and Spirakis, 2006). Otherwise they are drawn one after
the other, and a word that came up before is left out: the same law. Of every drawn word a hash of
128 bits is kept, in one of many chunks by its value, so that equal words meet in one chunk and each
can be sorted in memory. Different words of equal hash, of which one would be left out without need,
do not occur in practice: among 10^9 words the chance is below 10^-10. No word can stand twice,
whatever the hash.

Letters: N words, n words of a piece, T time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from statetrack.data.parts import Chunks, Spool, words_at_once
from statetrack.errors import SettingsError
from statetrack.sources import (
    PADDING,
    Integers,
    LengthDistribution,
    RandomBits,
    Source,
    UnlabelledWords,
    smallest_type,
)

_ALWAYS_LISTED: Final = 2**16
MOST_LISTED: Final = 2**30
"""How many bytes a list of all words of some lengths may take where words go to the disk."""

_DRAWN_PER_WORD: Final = 100
_DRAWN_AT_LEAST: Final = 2**10
_DRAWN_AT_ONCE: Final = 2**24
_FIRST_ROUND: Final = 2**20
_HASHES_PER_CHUNK: Final = 2**20
_INDICES_PER_CHUNK: Final = 2**22
_BITS_AT_ONCE: Final = 2**20
_HELD_OUT_CHOICE: Final = 1
"""The variant of the `shuffle` bits that no epoch reads."""

_KEY: Final = 20261122
"""What the hash is drawn from; it decides nothing but which words share a chunk."""

_RECORD: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("index", "<i8")])
BYTES_PER_WORD: Final = _RECORD.itemsize

Told = Callable[[int], None]
"""Told how many words have been drawn so far."""


def draw_distinct(
    source: Source,
    lengths: LengthDistribution,
    num_words: int,
    seed: int,
    *,
    excluded: UnlabelledWords | None = None,
) -> UnlabelledWords:
    """`num_words` words drawn one after the other, each from those not yet drawn or `excluded`.

    The distribution is that of drawing words as the source does and leaving out every one that
    was drawn before. Words that are excluded are all different.

    Raises `SettingsError` where there are not as many words, or too unlikely ones.
    """
    used = []
    if excluded is not None:
        used.append(Spool(Chunks(), source.num_symbols, excluded.symbols.shape[1]))
        used[0].add(excluded)
    pieces = [*distinct_words(source, lengths, num_words, seed, Chunks(), excluded=used)]
    return UnlabelledWords(
        np.concatenate([piece.symbols for piece in pieces]),
        np.concatenate([piece.lengths for piece in pieces]),
    )


def distinct_words(
    source: Source,
    lengths: LengthDistribution,
    num_words: int,
    seed: int,
    chunks: Chunks,
    *,
    variant: int = 0,
    excluded: Sequence[Spool] = (),
    told: Told = lambda done: None,
) -> Iterator[UnlabelledWords]:
    """The words of `draw_distinct`, a few at a time: `[<=n, T]`; what was drawn goes to `chunks`.

    `variant` tells apart draws of one seed. Where `chunks` are on the disk, the memory that is
    taken does not grow with the number of words.

    Raises `SettingsError` as `draw_distinct` does, and where more words would be listed than
    `MOST_LISTED` allows.
    """
    source.check_length(lengths.longest)
    bits = RandomBits(seed, "distinct", variant)
    among = source.count_words(lengths)
    within = range(lengths.shortest, lengths.longest + 1)
    used = [(spool, length) for spool in excluded for length in within if spool.counts[length]]
    taken = sum(spool.counts[length] for spool, length in used)
    listed = None
    if among is not None and among <= max(_ALWAYS_LISTED, 4 * (num_words + taken)):
        check_list(source, among, lengths, num_words + taken, chunks)
        listed = source.list_words(lengths)
    left_out = frozenset[bytes]()
    if listed is not None and taken:  # of a source whose words have parts, others are taken too
        pieces = (piece for spool, length in used for piece in spool.of_length(length))
        left_out = frozenset(key for piece in pieces for key in piece.keys())
        taken = len(left_out & set(listed[0].keys()))
    if among is not None and among - taken < num_words:
        left = f" ({taken} of them are in use elsewhere)" if taken else ""
        raise SettingsError(
            f"{num_words} different words of length {lengths} are asked for, "
            f"but there are only {among}{left}: ask for fewer or for other lengths"
        )
    if listed is not None:
        words, chances = listed
        keys = -np.log((bits.read(0, len(chances)) + 0.5) / 2**32) / chances
        order = np.argsort(keys, kind="stable")
        if left_out:
            order = order[np.array([key not in left_out for key in words.keys()])[order]]
        size = words_at_once(lengths.longest)
        chosen = order[:num_words]
        return (words.take(chosen[first : first + size]) for first in range(0, num_words, size))
    seen = Repetitions(chunks, num_words + taken, lengths.longest)
    for spool, length in used:
        for piece in spool.of_length(length):
            seen.exclude(piece)
    search = _Search(source, lengths, bits, seen, held=not chunks.on_disk)
    search.run(num_words, told)
    if search.num_found < num_words:
        beside = f" beside {taken} that are in use elsewhere" if taken else ""
        raise SettingsError(
            f"{num_words} different words of length {lengths} are asked for, but only "
            f"{search.num_found} came up{beside} in {search.num_drawn} draws, the rest being too "
            "unlikely: ask for fewer or for other lengths"
        )
    return search.words(num_words)


def check_list(
    source: Source, among: int | None, lengths: LengthDistribution, num_words: int, chunks: Chunks
) -> None:
    """Raises `SettingsError` where words on the disk would need too long a list in memory."""
    size = (among or 0) * (lengths.longest * smallest_type(source.num_symbols).itemsize + 24)
    if chunks.on_disk and size > MOST_LISTED:
        raise SettingsError(
            f"{num_words:,} words of length {lengths} are asked for, of which there are "
            f"{among:,}: to draw so large a share they must be listed, which takes "
            f"{size / 1e9:,.1f} GB, more than {MOST_LISTED / 1e9:,.1f}: ask for at most "
            f"{(among or 0) // 4:,} words, or for other lengths"
        )


def list_or_draw_words(
    source: Source, lengths: LengthDistribution, seed: int
) -> tuple[UnlabelledWords, NDArray[np.float64]]:
    """All words of these lengths and how likely each is: `[N]`, sum 1.

    Where the source cannot list them: the different words among many drawn ones, in order of
    their first occurrence, with their relative frequencies.
    """
    listed = source.list_words(lengths)
    if listed is not None:
        return listed
    width = 1 + source.num_bits(lengths.longest)
    num_draws = max(1, min(_ALWAYS_LISTED, _DRAWN_AT_ONCE // width))
    words = words_from(source, lengths, RandomBits(seed, "distinct"), 0, num_draws)
    places: dict[bytes, list[int]] = {}
    for place, key in enumerate(words.keys()):
        places.setdefault(key, []).append(place)
    first = np.array([each[0] for each in places.values()])
    return words.take(first), np.array(list(map(len, places.values()))) / num_draws


def words_from(
    source: Source, lengths: LengthDistribution, bits: RandomBits, first: int, number: int
) -> UnlabelledWords:
    """The words `first .. first + number - 1` that a source draws from its bits: `[number, T]`.

    Each has `1 + num_bits` integers, of which the first gives its length.
    """
    width = 1 + source.num_bits(lengths.longest)
    drawn = bits.read(first * width, number * width).reshape(number, width)
    word_lengths = lengths.draw(drawn[:, 0])
    symbols = source.draw(drawn[:, 1:], word_lengths, lengths.longest)
    symbols[np.arange(lengths.longest) >= word_lengths[:, None]] = PADDING
    return UnlabelledWords(symbols, word_lengths)


class _Search:
    """The different words among the first `num_drawn` that a source draws.

    They are kept where they are to be `held`, and otherwise drawn once more when asked for.
    """

    def __init__(
        self,
        source: Source,
        lengths: LengthDistribution,
        bits: RandomBits,
        seen: Repetitions,
        *,
        held: bool,
    ) -> None:
        self._source, self._lengths, self._bits, self._seen = source, lengths, bits, seen
        self._at_once = words_at_once(1 + source.num_bits(lengths.longest))
        self._new: list[UnlabelledWords] | None = [] if held else None
        self.num_drawn = 0
        self.num_found = 0

    def run(self, num_words: int, told: Told) -> None:
        """Draw until `num_words` different words are found, or it becomes clear that they are not.

        It is given up after `_DRAWN_PER_WORD` draws for each, or before, where many have been drawn
        and twice the present yield would not be enough for the rest.
        """
        most = max(_DRAWN_AT_LEAST, _DRAWN_PER_WORD * num_words)
        least = max(_DRAWN_AT_LEAST, num_words // 16)
        size = min(num_words, _FIRST_ROUND)
        while self.num_found < num_words and self.num_drawn < most:
            size = min(size, most - self.num_drawn)
            found = self._round(size, told)
            share = (found + 1) / size
            missing = num_words - self.num_found
            many = self.num_drawn >= _FIRST_ROUND
            if many and missing > 2 * share * (most - self.num_drawn):
                return
            size = max(least, min(math.ceil(1.05 * missing / share), 2 * num_words))

    def words(self, number: int) -> Iterator[UnlabelledWords]:
        """The first so many different words, in the order in which they came up: `[<=n, T]`."""
        again = (self._unrepeated(*each) for each in self._candidates(0, self.num_drawn))
        for words in self._new if self._new is not None else again:
            yield UnlabelledWords(words.symbols[:number], words.lengths[:number])
            number -= len(words.lengths)
            if number <= 0:
                return

    def _round(self, number: int, told: Told) -> int:
        """Draw some more words; how many of them are new."""
        held = []
        for first, words in self._candidates(self.num_drawn, number):
            self._seen.add(words, first)
            if self._new is not None:
                held.append((first, words))
            told(first + len(words.lengths))
        found = self._seen.settle()
        self.num_drawn += number
        self.num_found += found
        if self._new is not None:
            self._new += [self._unrepeated(*each) for each in held]
        return found

    def _candidates(self, first: int, number: int) -> Iterator[tuple[int, UnlabelledWords]]:
        for begin in range(first, first + number, self._at_once):
            count = min(self._at_once, first + number - begin)
            yield begin, words_from(self._source, self._lengths, self._bits, begin, count)

    def _unrepeated(self, first: int, words: UnlabelledWords) -> UnlabelledWords:
        return words.take(np.flatnonzero(~self._seen.among(first, len(words.lengths))))


class Repetitions:
    """Which words of a long row stood before in it, or were excluded, as chunks.

    `expected` is about how many words will be added, `longest` their greatest length.
    """

    def __init__(self, chunks: Chunks, expected: int, longest: int) -> None:
        self._chunks = chunks
        self._bits = max(0, math.ceil(math.log2(max(1, expected / _HASHES_PER_CHUNK))))
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
        for name in self._chunks.names(".hashes"):
            kept_before = name.replace(".hashes", ".kept")
            earlier = self._chunks.read(kept_before, _RECORD)
            joined = np.concatenate([earlier, self._chunks.read(name, _RECORD)])
            joined = joined[np.lexsort((joined["low"], joined["high"]))]  # stable: by number last
            same = (joined["high"][1:] == joined["high"][:-1]) & (
                joined["low"][1:] == joined["low"][:-1]
            )
            repeated = np.concatenate([[False], same])
            indices = np.sort(joined["index"][repeated])
            indices = indices[indices >= 0]
            self._append_by(indices // _INDICES_PER_CHUNK, indices.astype("<i8"), "repeated")
            kept = joined[~repeated]
            num_new += int((kept["index"] >= 0).sum()) - int((earlier["index"] >= 0).sum())
            self._chunks.remove(kept_before)
            self._chunks.append(kept_before, kept)
            self._chunks.remove(name)
        return num_new

    def among(self, first: int, number: int) -> NDArray[np.bool_]:
        """Whether each of the words `first .. first + number - 1` repeats an earlier one."""
        repeated = np.zeros(number, np.bool_)
        end = first + number
        for block in range(first // _INDICES_PER_CHUNK, (end - 1) // _INDICES_PER_CHUNK + 1):
            indices = self._chunks.read(f"{block}.repeated", "<i8")
            inside = indices[(indices >= first) & (indices < end)]
            repeated[inside - first] = True
        return repeated

    def _append(self, words: UnlabelledWords, indices: NDArray[np.int64]) -> None:
        records = np.empty(len(indices), _RECORD)
        width = words.symbols.shape[1]
        inside = np.arange(width) < words.lengths[:, None]
        numbers = (words.symbols.astype(np.uint64) + np.uint64(1)) * inside
        for name, factors in zip(("high", "low"), self._factors, strict=True):
            records[name] = _mixed(numbers @ factors[:width])  # sums modulo 2^64
        records["index"] = indices
        # a shift by all 64 bits is not defined, so it is made in two steps
        chunk = (records["high"] >> np.uint64(1)) >> np.uint64(63 - self._bits)
        order = np.argsort(chunk, kind="stable")
        self._append_by(chunk[order], records[order], "hashes")

    def _append_by(
        self, numbers: NDArray[np.integer], values: NDArray[np.generic], ending: str
    ) -> None:
        """Add each value to the chunk of its number; the numbers rise."""
        if len(numbers) == 0:
            return
        different, starts = np.unique(numbers, return_index=True)
        for number, first, end in zip(
            different.tolist(), starts, [*starts[1:], len(values)], strict=True
        ):
            self._chunks.append(f"{number}.{ending}", values[first:end])


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The values one to one, with every bit depending on all: the last steps of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return mixed


class Division:
    """Which words of a row are held out: those of the smallest random numbers."""

    def __init__(self, num_words: int, num_held_out: int, seed: int) -> None:
        self._bits = RandomBits(seed, "shuffle", _HELD_OUT_CHOICE)
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


def divide(num_words: int, num_held_out: int, seed: int) -> tuple[Integers, Integers]:
    """Divide the indices `0 .. num_words - 1` at random in two sets, the second of `num_held_out`.

    Both are in rising order.
    """
    held_out = Division(num_words, num_held_out, seed).next(num_words)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
