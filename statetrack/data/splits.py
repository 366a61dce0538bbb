"""The splits of a dataset: training, validation and test words that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from statetrack.data.distinct import draw_distinct, has_words, list_or_draw_words
from statetrack.data.fixed import divide
from statetrack.errors import SettingsError
from statetrack.sources import (
    Batch,
    LengthDistribution,
    RandomBits,
    Source,
    Supervision,
    UnlabelledWords,
)

TEST: Final = "test_len"
"""How the name of a split of test words begins; their length follows."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The words of every split, labelled, and how they were drawn.

    No word is in two splits. Words of `validation` and of every `test_len...` are all different;
    so are those of `train`, and `distinct` is True, unless there are too few words for that.
    """

    parts: dict[str, Batch]  # each [N, T]
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
    check_sizes(num_train, num_validation, num_test)
    trained = source.part("train")
    distinct = has_words(trained, lengths, num_train + num_validation, seed)
    draw = _draw_without_repetition if distinct else _draw_with_repetition
    train, validation = draw(trained, lengths, num_train, num_validation, seed)
    drawn = {"train": train}
    if num_validation:
        drawn["validation"] = validation
    used = frozenset(train.keys()) | frozenset(validation.keys())
    for length in sorted(set(test_lengths)) if num_test else ():
        only = LengthDistribution(length, length)
        drawn[name_of_test(length)] = draw_distinct(
            source.part("test"), only, num_test, seed, variant=length, excluded=used
        )
    parts = {
        name: source.label_words(words.symbols, words.lengths, supervision)
        for name, words in drawn.items()
    }
    return Splits(parts, lengths, supervision, seed, distinct)


def name_of_test(length: int) -> str:
    """The name of the split of test words of a length: `test_len500`."""
    return f"{TEST}{length}"


def check_sizes(num_train: int, num_validation: int, num_test: int) -> None:
    """Raises `SettingsError` for numbers of words that no dataset has."""
    if num_train < 1:
        raise SettingsError(f"{num_train} training words are asked for: there must be some")
    if num_validation < 0 or num_test < 0:
        raise SettingsError("the number of words of a split cannot be below 0")


def _draw_without_repetition(
    source: Source,
    lengths: LengthDistribution,
    num_train: int,
    num_validation: int,
    seed: int,
) -> tuple[UnlabelledWords, UnlabelledWords]:
    words = draw_distinct(source, lengths, num_train + num_validation, seed)
    train, validation = divide(num_train + num_validation, num_validation, seed)
    return words.take(train), words.take(validation)


def _draw_with_repetition(
    source: Source,
    lengths: LengthDistribution,
    num_train: int,
    num_validation: int,
    seed: int,
) -> tuple[UnlabelledWords, UnlabelledWords]:
    words, chances = list_or_draw_words(source, lengths, seed)
    of_train, of_validation = assign(chances, lengths, num_train, num_validation, seed)
    bits = RandomBits(seed, "repeat")
    train = Choice(of_train, chances).draw(bits.read(0, num_train))
    validation = Choice(of_validation, chances).draw(bits.read(num_train, num_validation))
    return words.take(train), words.take(validation)


def assign(
    chances: NDArray[np.float64],
    lengths: LengthDistribution,
    num_train: int,
    num_validation: int,
    seed: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which words are for training and which for validation, in the proportion of their sizes.

    Raises `SettingsError` where there are too few.
    """
    share = num_validation / (num_train + num_validation)
    num_kept = int(np.clip(round(share * len(chances)), int(num_validation > 0), len(chances)))
    if num_kept == len(chances):
        raise SettingsError(
            f"there are only {len(chances)} words of length {lengths}, too few for training and "
            "validation without a word in both: ask for other lengths, or for no validation"
        )
    return divide(len(chances), num_kept, seed)


class Choice:
    """One of some indices, by their chances, for each of any number of random integers."""

    def __init__(self, indices: NDArray[np.int64], chances: NDArray[np.float64]) -> None:
        self._indices = indices
        self._upper_ends = chances[indices].cumsum()

    def draw(self, bits: NDArray[np.uint32]) -> NDArray[np.int64]:
        """An index for each of the uniform 32-bit integers."""
        if len(bits) == 0:
            return np.empty(0, np.int64)
        places = (bits + 0.5) / 2**32 * self._upper_ends[-1]
        drawn: NDArray[np.int64] = self._indices[
            np.searchsorted(self._upper_ends, places, side="right")
        ]
        return drawn
