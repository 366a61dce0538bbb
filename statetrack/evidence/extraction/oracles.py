"""A network as a machine that can be asked, and words on which a hypothesis and it may differ.

Many words are read at a time, each of them once. No oracle can prove that there is no word on which
they differ; each says what it tried.

N words, L symbols of a word, S states, V symbols.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from aalpy import SUL, Oracle

from statetrack.algebra import needed_machine
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.extraction.machine import (
    BEFORE,
    UNASKED,
    Hypothesis,
    Indices,
    Word,
    smallest,
)
from statetrack.evidence.records import Failure
from statetrack.evidence.subject import NO_ANSWER, Reader
from statetrack.sources import Automaton, Booleans, LengthDistribution, shortest_difference

SYMBOLS_AT_ONCE = 2**15
"""Words times symbols that are read between two looks at the time."""


class Stop(Exception):
    """The end of learning, before there was nothing left to do; `args[0]` is the reason."""


class Teacher(SUL):  # type: ignore[misc]
    """Answers about a network: the code (`machine`) after every symbol of a word.

    Where there is an automaton, only the labels that it asks for are read, and the shortest word
    that the network is seen to answer wrongly is kept as `failure`. Every word that the learner
    asks for is read once. Raises `Stop` where the time or the words are spent.
    """

    def __init__(
        self, reader: Reader, automaton: Automaton | None, budget: SearchBudget, max_words: int
    ) -> None:
        super().__init__()
        self.alphabet = list(range(reader.num_symbols))
        self.num_labels = reader.num_labels
        self.needed = None if automaton is None else needed_machine(automaton).automaton
        self.failure: Failure | None = None
        self.words = self.longest = 0
        reader.counts_for(budget)
        self._reader = reader
        self._budget = budget
        self._max_words = max_words
        self._known = _WordsRead()
        self._word: Word = ()

    def read(self, words: Indices) -> Indices:
        """The codes after every symbol of words [N, L], by the network: [N, L]."""
        if self.words + len(words) > self._max_words:
            raise Stop("words")
        self.words += len(words)
        self.longest = max(self.longest, words.shape[1])
        size = max(1, SYMBOLS_AT_ONCE // words.shape[1])
        parts = [words[first : first + size] for first in range(0, len(words), size)]
        return np.concatenate([self._read_part(part) for part in parts])

    def _read_part(self, words: Indices) -> Indices:
        if self._budget.spent:
            raise Stop("time")
        labels, asked = np.zeros(words.shape, np.int64), np.ones(words.shape, bool)
        if self.needed is not None:
            unsigned, asked = self.needed.read(words)
            labels = unsigned.astype(np.int64)
        codes = np.full(words.shape, UNASKED)
        rows = asked.any(1)
        if rows.any():
            answers = self._reader.answers(words[rows])
            answers[answers == NO_ANSWER] = self.num_labels
            codes[rows] = np.where(asked[rows], answers, UNASKED)
        if self.needed is not None:
            self._note_failure(words, asked & (codes != labels), labels, codes)
        return codes

    def _note_failure(
        self, words: Indices, wrong: Booleans, labels: Indices, codes: Indices
    ) -> None:
        """Keep the shortest word that is answered wrongly, the first in the order of symbols."""
        if not wrong.any():
            return
        position = int(wrong.any(0).argmax())
        word, row = min(
            (tuple(words[row, : position + 1].tolist()), row)
            for row in np.flatnonzero(wrong[:, position]).tolist()
        )
        if self.failure is None or (len(word), word) < (self.failure.position, self.failure.word):
            label, code = int(labels[row, position]), int(codes[row, position])
            answer = None if code == self.num_labels else code
            self.failure = Failure(word, (), position + 1, label, answer)

    def remember(self, word: Word, codes: Sequence[int]) -> None:
        """Give these codes whenever the word is asked for, unless it is known already."""
        self._known.add(word, codes)

    def ask(self, words: Iterable[Word]) -> None:
        """Read those words that are not known yet, all of one length at once."""
        by_length: dict[int, set[Word]] = {}
        for word in words:
            if self._known.codes(word) is None:
                by_length.setdefault(len(word), set()).add(word)
        for same in by_length.values():
            rows = np.array(sorted(same))
            for word, codes in zip(rows.tolist(), self.read(rows).tolist(), strict=True):
                self._known.add(word, codes)

    def query(self, word: Word) -> list[int]:
        """The codes after every symbol of a word; before the first symbol, `BEFORE`.

        Words that differ in the last symbol alone are read at once, as learners ask for them.
        """
        self.num_queries += 1
        if not word:
            return [BEFORE]
        known = self._known.codes(word)
        if known is None:
            self.ask((*word[:-1], symbol) for symbol in self.alphabet)
            known = self._known.codes(word)
            assert known is not None
        return known

    def pre(self) -> None:
        """Begin a word."""
        self._word = ()

    def post(self) -> None:
        """End a word."""

    def step(self, letter: int | None) -> int:
        """The code after one more symbol; of None, that of the word so far."""
        self._word = self._word if letter is None else (*self._word, letter)
        return self.query(self._word)[-1]


class _WordsRead:
    """Words that were read, as a tree of their prefixes, each with its code."""

    def __init__(self) -> None:
        self._children: list[dict[int, int]] = [{}]
        self._codes: list[int] = [BEFORE]

    def add(self, word: Sequence[int], codes: Sequence[int]) -> None:
        node = 0
        for symbol, code in zip(word, codes, strict=True):
            child = self._children[node].get(symbol)
            if child is None:
                child = self._children[node][symbol] = len(self._codes)
                self._children.append({})
                self._codes.append(code)
            node = child

    def codes(self, word: Word) -> list[int] | None:
        """The codes after every symbol; None where the word was not read."""
        node, found = 0, []
        for symbol in word:
            child = self._children[node].get(symbol)
            if child is None:
                return None
            node = child
            found.append(self._codes[node])
        return found


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
        endings = hypothesis.distinguishing_words
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
        self,
        teacher: Teacher,
        oracles: Sequence[BatchedOracle],
        budget: SearchBudget,
        max_states: int,
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
