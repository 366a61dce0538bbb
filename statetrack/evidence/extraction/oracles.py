"""Words on which a hypothesis and the network may differ: many of them read at once.

None of these oracles can prove that there is no such word; each says what it tried.

N words, L symbols of a word, S states, V symbols.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from aalpy import Oracle

from statetrack.evidence.extraction.machine import Hypothesis, Indices, Word, smallest
from statetrack.evidence.extraction.teacher import Stop, Teacher
from statetrack.evidence.searches import Budget
from statetrack.sources import Automaton, LengthDistribution, shortest_difference

MOST_SHORT_WORDS = 4096
"""Most words that are tried because they are all words of their length."""

MOST_IN_SUITE = 2**14
"""Most words of a W-method suite of one depth."""

LONGEST_SHORT = 64
"""The longest of these words."""

LONGEST_PERIOD = 6
"""The longest word whose powers are among the random words."""

GROWTH = ((1 / 16, 1 / 8), (1 / 4, 1 / 2), (11 / 16, 1.0))
"""How random words grow: shares of their number, and of their greatest length."""


class BatchedOracle(Oracle):  # type: ignore[misc]
    """Reads batches of words with the network and with a hypothesis, until they differ."""

    def __init__(self, teacher: Teacher) -> None:
        super().__init__(teacher.alphabet, teacher)
        self.teacher = teacher

    @abstractmethod
    def batches(self, hypothesis: Hypothesis) -> Iterator[Indices]:
        """The words [N, L] to try."""

    def codes(self, words: Indices) -> Indices:
        """The network's codes [N, L] of words."""
        return self.teacher.read(words)

    def find_cex(self, hypothesis: Any) -> Word | None:
        """The word of AALpy's interface on which a Moore machine of its own differs."""
        return self.difference(Hypothesis.of(hypothesis))

    def difference(self, hypothesis: Hypothesis) -> Word | None:
        """A word after which the codes differ, the shortest of the batch that has any, or None."""
        for words in self.batches(hypothesis):
            codes = self.codes(words)
            self.num_queries += len(words)
            differ = codes != hypothesis.read(words)
            while differ.any():
                position = int(differ.any(0).argmax())
                row = int(differ[:, position].argmax())
                word = tuple(words[row, : position + 1].tolist())
                self.teacher.remember(word, codes[row, : position + 1].tolist())
                # what the learner was told before counts, should this batch have rounded otherwise
                if self.teacher.query(word)[-1] != hypothesis.read(np.array([word]))[0, -1]:
                    return word
                differ[row] = False
        return None


class TaskOracle(BatchedOracle):
    """The shortest word on which a hypothesis and the task differ, replayed on the network."""

    def batches(self, hypothesis: Hypothesis) -> Iterator[Indices]:
        """That word alone, or none."""
        needed = self.teacher.needed
        machine = smallest(hypothesis, self.teacher.num_labels)
        if needed is None or machine is None:
            return
        word = shortest_difference(machine, needed)
        if word is not None:
            yield np.array([word])


class ShortWordsOracle(BatchedOracle):
    """All words up to a length that are drawn; the network reads them once."""

    def __init__(self, teacher: Teacher, drawing: Automaton) -> None:
        super().__init__(teacher)
        self.all_to = 0
        self._drawing = drawing
        self._codes: dict[int, Indices] = {}

    def batches(self, hypothesis: Hypothesis) -> Iterator[Indices]:
        """Those of one length after the other."""
        for length in range(1, LONGEST_SHORT + 1):
            lengths = LengthDistribution(length, length)
            if self._drawing.count_words(lengths) > MOST_SHORT_WORDS:
                return
            words, _ = self._drawing.list_words(lengths)
            yield words.symbols.astype(np.int64)

    def codes(self, words: Indices) -> Indices:
        """The network's codes of all words of one length."""
        length = words.shape[1]
        if length not in self._codes:
            self._codes[length] = self.teacher.read(words)
            self.all_to = length
        return self._codes[length]


class KnownWordsOracle(BatchedOracle):
    """Words that the network is known to answer wrongly; those up to a length are learned from."""

    def __init__(self, teacher: Teacher, words: Sequence[Word], longest: int) -> None:
        super().__init__(teacher)
        ordered = sorted(set(words), key=lambda word: (len(word), word))
        self._short = [word for word in ordered if len(word) <= longest]
        self._long = [word for word in ordered if len(word) > longest]
        self._codes: dict[bytes, Indices] = {}

    def batches(self, hypothesis: Hypothesis) -> Iterator[Indices]:
        """Those that are learned from, one by one, the shortest first."""
        for word in self._short:
            yield np.array([word])

    def codes(self, words: Indices) -> Indices:
        """The network's codes of a word, which is read once."""
        key = words.tobytes()
        if key not in self._codes:
            self._codes[key] = self.teacher.read(words)
        return self._codes[key]

    def long_words_differ(self, hypothesis: Hypothesis) -> bool:
        """Whether network and hypothesis differ on words that are too long to be learned from.

        False also where the time or the words are spent before one is read that they differ on.
        """
        with suppress(Stop):
            for word in self._long:
                words = np.array([word])
                if (self.codes(words) != hypothesis.read(words)).any():
                    return True
        return False


class RandomWordsOracle(BatchedOracle):
    """Words drawn symbol by symbol, and words that repeat a short one, up to a length."""

    def __init__(
        self,
        teacher: Teacher,
        drawing: Automaton,
        numbers: np.random.Generator,
        num_words: int,
        longest: int,
    ) -> None:
        super().__init__(teacher)
        self._drawing = drawing
        self._numbers = numbers
        self._num_words = num_words
        self._longest = longest

    def batches(self, hypothesis: Hypothesis) -> Iterator[Indices]:
        """Few short words, then more that are longer: new ones for every hypothesis."""
        for share, length in GROWTH:
            yield self._words(
                max(1, round(share * self._num_words)), max(1, round(length * self._longest))
            )

    def _words(self, num_words: int, length: int) -> Indices:
        """Words [N, L]; a symbol that cannot be drawn is replaced by one that can."""
        delta, drawable = self._drawing.delta, self._drawing.drawable
        numbers, num_symbols = self._numbers, delta.shape[1]
        wanted = numbers.integers(num_symbols, size=(num_words, length))
        periods = numbers.integers(1, LONGEST_PERIOD + 1, size=num_words // 2)
        begins = numbers.integers(0, min(length, 2 * LONGEST_PERIOD), size=num_words // 2)
        for row, (period, begin) in enumerate(zip(periods.tolist(), begins.tolist(), strict=True)):
            repeated = wanted[row, begin : begin + period]
            wanted[row, begin:] = np.resize(repeated, length - begin)
        state = np.full(num_words, self._drawing.start)
        for position in range(length):
            symbols = wanted[:, position]
            lost = ~drawable[state, symbols]
            if lost.any():
                chances = numbers.random((int(lost.sum()), num_symbols)) * drawable[state[lost]]
                symbols[lost] = chances.argmax(1)
            state = delta[state, symbols]
        return wanted


class WMethodOracle(BatchedOracle):
    """Chow's test suites (1978, IEEE Trans. Softw. Eng. 4(3)): P {words of d symbols} W.

    P has the empty word, a word to every state, and these with one more symbol; W tells all states
    apart. A machine that agrees on the suites of depths 0 to d, and has at most d states more than
    the hypothesis, agrees on every word. `extra_states` is the depth to which suites were tried on
    the last hypothesis, None where the first would be too large.
    """

    def __init__(self, teacher: Teacher) -> None:
        super().__init__(teacher)
        self.extra_states: int | None = None

    def batches(self, hypothesis: Hypothesis) -> Iterator[Indices]:
        """The suites, depth by depth, in batches of one length."""
        self.extra_states = None
        symbols = self.teacher.alphabet
        endings = hypothesis.telling_apart
        cover = [(), *((*word, symbol) for word in hypothesis.access for symbol in symbols)]
        for depth in itertools.count():
            size = len(cover) * len(symbols) ** depth * len(endings)
            if size > MOST_IN_SUITE or depth > len(hypothesis.codes):
                return
            yield from _by_length(
                {
                    (*first, *middle, *last)
                    for first in cover
                    for middle in itertools.product(symbols, repeat=depth)
                    for last in endings
                }
            )
            self.extra_states = depth


class Chain(BatchedOracle):
    """Several oracles, one after the other; keeps the last hypothesis that is small enough."""

    def __init__(
        self, teacher: Teacher, oracles: Sequence[BatchedOracle], budget: Budget, max_states: int
    ) -> None:
        super().__init__(teacher)
        self.last: Hypothesis | None = None
        self._oracles = oracles
        self._budget = budget
        self._max_states = max_states

    def batches(self, hypothesis: Hypothesis) -> Iterator[Indices]:
        """Those of all oracles."""
        for oracle in self._oracles:
            yield from oracle.batches(hypothesis)

    def difference(self, hypothesis: Hypothesis) -> Word | None:
        """The first word that one of the oracles finds; `Stop` where there are too many states."""
        if len(hypothesis.codes) > self._max_states:
            raise Stop("states")
        self.last = hypothesis
        self._budget.say(f"{len(hypothesis.codes)} states, {self.teacher.words:,} words")
        for oracle in self._oracles:
            word = oracle.difference(hypothesis)
            if word is not None:
                return word
        return None


def _by_length(words: set[Word]) -> Iterator[Indices]:
    """Words as tables of one length each, in order; the empty word is left out."""
    ordered = sorted(words, key=lambda word: (len(word), word))
    for length, same in itertools.groupby(ordered, len):
        if length:
            yield np.array(list(same))
