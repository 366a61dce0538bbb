"""A network as a machine that can be asked: many words at a time, each of them once.

N words, L symbols of a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from aalpy import SUL

from statetrack.algebra import needed_machine
from statetrack.evidence.extraction.machine import BEFORE, UNASKED, Indices, Word
from statetrack.evidence.records import Failure
from statetrack.evidence.searches import Budget
from statetrack.evidence.subject import NO_ANSWER, Reader
from statetrack.sources import Automaton, Booleans

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
        self, reader: Reader, automaton: Automaton | None, budget: Budget, max_words: int
    ) -> None:
        super().__init__()
        self.alphabet = list(range(reader.num_symbols))
        self.num_labels = reader.num_labels
        self.needed = None if automaton is None else needed_machine(automaton).automaton
        self.failure: Failure | None = None
        self.words = self.longest = 0
        self._reader = reader
        self._budget = budget
        self._max_words = max_words
        self._known = _Tree()
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


class _Tree:
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
