"""The splits of a dataset: training, validation and test words that do not overlap.

They are drawn in memory, or over files where they are many: by the same steps, so the words are
the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from statetrack.data.distinct import (
    BYTES_PER_WORD,
    Division,
    check_list,
    distinct_words,
    divide,
    list_or_draw_words,
)
from statetrack.data.parts import Chunks, Part, Spool, SpooledPart, words_at_once
from statetrack.errors import SettingsError
from statetrack.sources import (
    Batch,
    LengthDistribution,
    RandomBits,
    Source,
    Supervision,
    UnlabelledWords,
    smallest_type,
)

TEST: Final = "test_len"
"""How the name of a split of test words begins; their length follows."""

Words = TypeVar("Words", Batch, Part, default=Batch)


class DrawingProgress(Protocol):
    """Told what is being done, how many words of it are done, and of how many."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show it."""
        ...


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


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

    def bytes_beside(self, source: Source) -> int:
        """How much room the words take on the disk while they are drawn there."""
        width = smallest_type(source.num_symbols).itemsize
        return self.num_symbols * width + (4 + BYTES_PER_WORD) * self.num_words


@dataclass(frozen=True, eq=False)
class Splits(Generic[Words]):
    """The words of every split, labelled, and how they were drawn.

    No word is in two splits. Words of `validation` and of every `test_len...` are all different;
    so are those of `train`, and `distinct` is True, unless there are too few words for that.
    """

    parts: dict[str, Words]  # each [N, T]
    lengths: LengthDistribution
    supervision: Supervision
    seed: int
    distinct: bool


def draw_splits(
    source: Source,
    lengths: LengthDistribution,
    num_train: int,
    num_validation: int,
    test_lengths: Sequence[int],
    num_test: int,
    supervision: Supervision,
    seed: int,
) -> Splits:
    """`train` and `validation` of one length distribution, and `test_len500` and so on.

    Where there are enough words, all are different. Where there are not, every word that can be
    drawn (where they cannot be listed, every one that occurred in many draws) is assigned to
    training or validation, at random and in the proportion of their sizes, and each draws from its
    own with repetition. A split of no words is left out.

    Raises `SettingsError` where too few words are left for a split.
    """
    tests = tuple(test_lengths)
    request = Request(lengths, num_train, num_validation, tests, num_test, supervision, seed)
    spools, distinct = _Drawing(source, request, Chunks(), silent).spools()
    parts = {name: SpooledPart.of(each, source, supervision) for name, each in spools.items()}
    held = {name: part.held() for name, part in parts.items()}
    return Splits(held, lengths, supervision, seed, distinct)


def spool_splits(
    source: Source, request: Request, folder: Path, progress: DrawingProgress
) -> Splits[Part]:
    """The splits that `draw_splits` draws, as files in a folder: memory does not grow with them.

    Where a split is small enough, `draw_splits` is quicker.

    Raises `SettingsError` as `draw_splits` does, and where so many words must be listed that the
    list takes more than `MOST_LISTED`.
    """
    spools, distinct = _Drawing(source, request, Chunks(folder), progress).spools()
    parts: dict[str, Part] = {
        name: SpooledPart.of(spool, source, request.supervision) for name, spool in spools.items()
    }
    return Splits(parts, request.lengths, request.supervision, request.seed, distinct)


def name_of_test(length: int) -> str:
    """The name of the split of test words of a length: `test_len500`."""
    return f"{TEST}{length}"


class _Drawing:
    """The steps of drawing one dataset."""

    def __init__(
        self, source: Source, request: Request, chunks: Chunks, progress: DrawingProgress
    ) -> None:
        self._trained, self._tested = source.part("train"), source.part("test")
        self._request, self._chunks, self._progress = request, chunks, progress

    def spools(self) -> tuple[dict[str, Spool], bool]:
        """The words of every split, and whether all of them are different."""
        request = self._request
        if request.num_train < 1:
            raise SettingsError(
                f"{request.num_train} training words are asked for: there must be some"
            )
        if request.num_validation < 0 or request.num_test < 0:
            raise SettingsError("the number of words of a split cannot be below 0")
        (_, lengths), _, *tests = request.sizes
        self._trained.check_length(lengths.longest)
        for _, only in tests:
            self._tested.check_length(only.longest)
        train, validation = (self._spool(name, lengths) for name in ("train", "validation"))
        distinct = self._different(train, validation)
        if not distinct:
            self._repeated(train, validation)
        spools = {"train": train}
        if request.num_validation:
            spools["validation"] = validation
        for _, only in tests:
            name = name_of_test(only.longest)
            spools[name] = self._spool(name, only)
            self._test(spools[name], only, (train, validation), distinct)
        return spools, distinct

    def _spool(self, name: str, lengths: LengthDistribution) -> Spool:
        return Spool(self._chunks.below(name), self._trained.num_symbols, lengths.longest)

    def _different(self, train: Spool, validation: Spool) -> bool:
        """Draw both without repetition, or nothing where there are not so many words.

        Where the source cannot count its words, they are drawn to see.
        """
        request, source = self._request, self._trained
        num_words = request.num_train + request.num_validation
        among = source.count_words(request.lengths)
        if among is not None and among < num_words:
            return False
        try:
            pieces = distinct_words(
                source,
                request.lengths,
                num_words,
                request.seed,
                self._chunks.below("seen"),
                told=lambda done: self._progress("drawing", done, num_words),
            )
        except SettingsError:
            if among is None:
                return False
            raise
        division = Division(num_words, request.num_validation, request.seed)
        done = 0
        for piece in pieces:
            held_out = division.next(len(piece.lengths))
            train.add(piece.take(np.flatnonzero(~held_out)))
            validation.add(piece.take(np.flatnonzero(held_out)))
            done += len(piece.lengths)
            self._progress("dividing", done, num_words)
        return True

    def _repeated(self, train: Spool, validation: Spool) -> None:
        """Draw both with repetition, each from words of its own."""
        request, lengths = self._request, self._request.lengths
        sizes = request.num_train, request.num_validation
        among = self._trained.count_words(lengths)
        check_list(self._trained, among, lengths, sum(sizes), self._chunks)
        words, chances = list_or_draw_words(self._trained, lengths, request.seed)
        bits = RandomBits(request.seed, "repeat")
        done = 0
        size = words_at_once(lengths.longest)
        for spool, indices, number in zip(
            (train, validation), _assigned(len(chances), request), sizes, strict=True
        ):
            upper_ends, end = chances[indices].cumsum(), done + number
            for first in range(done, end, size):
                count = min(size, end - first)
                places = (bits.read(first, count) + 0.5) / 2**32 * upper_ends[-1]
                drawn = indices[np.searchsorted(upper_ends, places, side="right")]
                spool.add(words.take(drawn))
                self._progress("drawing", first + count, sum(sizes))
            done = end

    def _test(
        self, spool: Spool, only: LengthDistribution, used: Sequence[Spool], distinct: bool
    ) -> None:
        """Draw the test words of a length, all different and none of them in use."""
        length, num_words = only.longest, self._request.num_test
        if not distinct:  # then there are so few that they could be listed
            used = [_different_words(used, length, self._trained.num_symbols)]
        pieces = distinct_words(
            self._tested,
            only,
            num_words,
            self._request.seed,
            self._chunks.below(f"seen{length}"),
            variant=length,
            excluded=used,
            told=lambda done: self._progress(f"drawing words of {length}", done, num_words),
        )
        for piece in pieces:
            spool.add(piece)


def _assigned(num_words: int, request: Request) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which words are for training and which for validation, in the proportion of their sizes.

    Raises `SettingsError` where there are too few.
    """
    share = request.num_validation / (request.num_train + request.num_validation)
    least = int(request.num_validation > 0)
    num_kept = int(np.clip(round(share * num_words), least, num_words))
    if num_kept == num_words:
        raise SettingsError(
            f"there are only {num_words} words of length {request.lengths}, too few for training "
            "and validation without a word in both: ask for other lengths, or for no validation"
        )
    return divide(num_words, num_kept, request.seed)


def _different_words(used: Sequence[Spool], length: int, num_symbols: int) -> Spool:
    """The different words of one length in spools."""
    different = Spool(Chunks(), num_symbols, length)
    pieces = [np.unique(each.symbols, axis=0) for spool in used for each in spool.of_length(length)]
    if pieces:
        symbols = np.unique(np.concatenate(pieces), axis=0)
        different.add(UnlabelledWords(symbols, np.full(len(symbols), length)))
    return different
