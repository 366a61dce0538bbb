"""Source: where the words of a task, and the labels of their prefixes, come from.

An automaton is a source, and so is anything else that draws words and labels them: a sampler of a
language that is not regular, a corpus of recorded words. A new one is a subclass of `Source` that
says how words are drawn and read; whatever else it leaves out has a default that is right for
every source.

Letters: N words, T time, V symbols, C labels, W random integers for a word.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from statetrack.errors import SettingsError, TaskError
from statetrack.sources.arrays import Bits, Booleans, Floats, Integers, Unsigned
from statetrack.sources.batch import Batch, Supervision, UnlabelledWords
from statetrack.sources.lengths import LengthDistribution
from statetrack.sources.randomness import RandomBits
from statetrack.text import LONGEST_NAME, flaw_in, shortened

if TYPE_CHECKING:
    from statetrack.sources.automaton import Automaton

Purpose = Literal["train", "validation", "test"]
"""What words are for."""

LONGEST_WHOLE: Final = 100_000
"""The longest word of a source that draws whole words."""

_HASHED_LENGTHS, _HASHED_WORDS = (1, 2, 5, 12, 37), 64
"""The words that a source without tables is told apart by: so many of each length."""


class Source(ABC):
    """A distribution over words of each length, and a label after each prefix of any word.

    A drawn word is a function of the random integers given for it: the same integers give the
    same word on every machine, whichever words are drawn beside it.
    """

    noun: ClassVar[str] = "a source without states"
    """What messages call it."""

    prefixes_are_words: ClassVar[bool] = False
    """Whether the first n symbols of a longer word are distributed like a word of length n."""

    symbols: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def longest_word(self) -> int:
        """The greatest length that words can have."""
        return LONGEST_WHOLE

    @property
    def usual_length(self) -> int:
        """A length that words often have, where they come from elsewhere."""
        return self.longest_word

    @property
    def num_symbols(self) -> int:
        """V."""
        return len(self.symbols)

    @property
    def num_labels(self) -> int:
        """C, including labels that no drawn word has."""
        return len(self.labels)

    @abstractmethod
    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """The label after every symbol of words `[..., T]`, and whether it is asked for.

        Any word can be read, also one that is never drawn. A label depends on the symbols up to
        its own position alone. Labels have the smallest unsigned type that holds C.
        """

    @abstractmethod
    def num_bits(self, longest: int) -> int:
        """W: how many 32-bit integers a word takes, when no word is longer than `longest`."""

    @abstractmethod
    def draw(self, bits: Bits, lengths: Integers, longest: int) -> Unsigned:
        """Words `[N, longest]` of the given lengths `[N]`, from uniform integers `[N, W]`.

        What stands behind a word's end means nothing. The result has the smallest unsigned type
        that holds V symbols.
        """

    def stream(self, bits: RandomBits, num_words: int, length: int, chunk: int) -> Iterator[Batch]:
        """Words of one length, labelled after every symbol: consecutive pieces `[N, <=T]`.

        Joined along T the pieces are whole words, the same whatever the `chunk` (how many symbols
        a piece may hold). A source that can continue a word draws piece by piece, in constant
        memory; by default the words are drawn whole and then cut.
        """
        width = self.num_bits(length)
        lengths = np.full(num_words, length)
        drawn = bits.read(0, num_words * width).reshape(num_words, width)
        words = self.label_words(self.draw(drawn, lengths, length), lengths)
        size = max(1, chunk // num_words)
        for first in range(0, length, size):
            yield words.cut(first, min(first + size, length))

    def label_words(
        self, symbols: Unsigned, lengths: Integers, supervision: Supervision = "every"
    ) -> Batch:
        """The batch of the words `symbols[..., :lengths]`: labelled, masked and padded with zeros.

        `every` asks for the label of each prefix, `last` for that of the last prefix only; a
        prefix whose label the source does not ask for is left out, so `last` then means the last
        that is asked for.
        """
        inside = np.arange(symbols.shape[-1]) < lengths[..., None]  # [..., N, T]
        labels, asked = self.read(symbols)
        scored = asked & inside
        if supervision == "last":
            scored = _last_of_each(scored)
        return Batch(symbols * inside, labels * inside, scored, lengths)

    def check_length(self, length: int) -> None:
        """Raises `SettingsError` for a length that words cannot have."""
        if length > self.longest_word:
            reason = "" if self.prefixes_are_words else ", for they are drawn whole"
            raise SettingsError(
                f"length {length}: words that come from {self.noun} have at most "
                f"{self.longest_word} symbols{reason}"
            )

    def part(self, purpose: Purpose) -> Source:
        """Where the words for a purpose come from: by default the source itself.

        A source of few words, such as a corpus, keeps those for tests apart.
        """
        return self

    @property
    def automaton(self) -> Automaton | None:
        """The automaton that the source is, if it is one."""
        return None

    def count_words(self, lengths: LengthDistribution) -> int | None:
        """How many words of these lengths can be drawn; None where that is not known.

        A source that counts returns `counting.UNCOUNTABLE` for any number as large or larger.
        """
        return None

    def list_words(self, lengths: LengthDistribution) -> tuple[UnlabelledWords, Floats] | None:
        """All words of these lengths that can be drawn, and how likely each is: `[N]`, sum 1.

        None where they are not known. Asked for only where `count_words` says that they are few.
        """
        return None

    def floors(self, lengths: Iterable[int]) -> dict[int, float] | None:
        """The accuracy of the best constant answer at the last scored position, by length.

        Exact to rounding, for words as they are drawn; None where it is not known and has to be
        measured on words.
        """
        return None

    def fingerprint(self) -> str:
        """SHA-256 over all that words and labels depend on.

        By default over the first words of several lengths, their labels and all names.
        """
        digest = hashlib.sha256()
        for length in sorted({min(length, self.longest_word) for length in _HASHED_LENGTHS}):
            raw = np.random.PCG64(np.random.SeedSequence(length))
            width = self.num_bits(length)
            bits = (raw.random_raw(_HASHED_WORDS * width) >> np.uint64(32)).astype(np.uint32)
            symbols = self.draw(bits.reshape(-1, width), np.full(_HASHED_WORDS, length), length)
            for array in (symbols, *self.read(symbols)):
                digest.update(np.asarray(array, "<i8").tobytes())
        digest.update(json.dumps([self.symbols, self.labels]).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(V={self.num_symbols}, C={self.num_labels})"


def _last_of_each(scored: Booleans) -> Booleans:
    """`scored` with only the last True of every row left; a row without one stays empty."""
    from_the_end = scored[..., ::-1]
    last = scored.shape[-1] - 1 - from_the_end.argmax(axis=-1)
    only_last = np.zeros_like(scored)
    np.put_along_axis(only_last, last[..., None], scored.any(axis=-1, keepdims=True), axis=-1)
    return only_last


def check_names(names: Iterable[str], what: str) -> None:
    """Raise `TaskError` for a name that is not one printable word of at most `LONGEST_NAME`.

    `what` says whose name it is: a state, a symbol or a label.
    """
    for name in names:
        if not name or name.split() != [name]:
            raise TaskError(
                f"{what}s: '{shortened(name)}' is no name: it must be text without spaces"
            )
        if flaw := flaw_in(name, most=LONGEST_NAME):
            raise TaskError(f"{what}s: the name '{shortened(name)}' {flaw}")
