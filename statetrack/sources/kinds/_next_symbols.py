"""Languages told by their legal next symbols: the label is the set of symbols that may follow.

A word is read as the beginning of a member. Once an illegal symbol has come, the label is `none`
for ever. The letters of sizes are those of `statetrack.sources.sampler`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Final, Literal

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Booleans, Unsigned, smallest_type
from statetrack.sources.kinds import argument
from statetrack.sources.randomness import one_of, one_true
from statetrack.sources.sampler import Sampler

NONE: Final = "none"
"""The label of a word that no member begins with; the last label of every such language."""

WordsChoice = Annotated[
    Literal["members", "mixed"],
    argument(
        "members: every word begins a member; mixed: half of the words have an illegal symbol"
    ),
]


class Language(Sampler):
    """A sampler whose labels are sets of legal next symbols.

    `legal [C, V]` says which symbols may follow under which label (none under the last, `none`),
    and `legal_first [V]` which may begin a word.
    """

    def __init__(
        self,
        symbols: tuple[str, ...],
        labels: tuple[str, ...],
        legal: Booleans,
        legal_first: Booleans,
    ) -> None:
        assert legal.shape == (len(labels) + 1, len(symbols)) and not legal[-1].any(), legal.shape
        self.symbols = symbols
        self.labels = (*labels, NONE)
        self._legal = legal
        self._legal_first = legal_first

    @abstractmethod
    def _read_legal(self, words: Unsigned) -> npt.NDArray[np.int64]:
        """Labels `[N, T]` of words `[N, T]`, right as long as every symbol so far was legal."""

    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """The set of legal next symbols after every prefix; all are asked for."""
        given = np.asarray(words)
        rows = given.reshape(-1, given.shape[-1])
        flat = rows.astype(smallest_type(self.num_symbols), copy=False)
        labels = self._read_legal(flat)
        legal = np.take_along_axis(self._legal_next(labels), flat[..., None].astype(np.int64), 2)
        broken = np.logical_or.accumulate(~legal[..., 0], axis=1)
        labels[broken] = self.num_labels - 1
        return labels.astype(smallest_type(self.num_labels)).reshape(given.shape), np.ones(
            given.shape, bool
        )

    def _legal_next(self, labels: npt.NDArray[np.int64]) -> Booleans:
        """Which symbols were legal at each place, `[N, T, V]`, from the labels after it."""
        legal = np.empty((*labels.shape, self.num_symbols), bool)
        legal[:, 0] = self._legal_first
        legal[:, 1:] = self._legal[labels[:, :-1]]
        return legal

    def _with_an_illegal_symbol(
        self, words: Unsigned, lengths: npt.NDArray[np.int64], bits: Bits
    ) -> Unsigned:
        """Legal words `[N, T]`, half of them with one symbol replaced by an illegal one.

        The place is one of those inside the word at which some symbol is illegal, and the symbol
        one of those, all equally likely; the rest of the word stays as it was. A word without
        such a place stays whole. `bits [N, 3]`.
        """
        illegal = ~self._legal_next(self._read_legal(words))  # [N, T, V]
        inside = np.arange(words.shape[1]) < lengths[:, None]
        possible = illegal.any(axis=2) & inside
        place = one_true(possible, bits[:, 1])
        rows = np.arange(len(words))
        wrong = one_true(illegal[rows, place], bits[:, 2])
        chosen = possible.any(axis=1) & half(bits[:, 0])
        words[rows[chosen], place[chosen]] = wrong[chosen]
        return words


def half(bits: Bits) -> Booleans:
    """True for one half of all integers."""
    return bits < 2**31


def from_to(
    first: npt.NDArray[np.int64], last: npt.NDArray[np.int64], bits: Bits
) -> npt.NDArray[np.int64]:
    """A number from `first` to `last`, both included, all equally likely."""
    return first + one_of(last - first + 1, bits)
