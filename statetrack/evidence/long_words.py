"""Many long words read side by side, until one is answered wrongly.

Words are read piece by piece, as in evaluation, and only as far as the earliest wrong answer found:
a later one does not change how far all words are right. A word is *settled* where, after a number
of whole periods, the model's state and the automaton's are exactly those of an earlier such point,
with no wrong answer before: read on, it repeats itself, and is right at every length.

Where labels are asked for in some states only, a word may run on for long without any. Then, after
every piece, each word is also continued by the shortest word that is asked for its label (a
*question*), and goes on without it.

B words, T time, C labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.subject import Subject
from statetrack.evidence.words import Periodic, Word
from statetrack.sources import Automaton
from statetrack.training import answers_of

PIECE = 960
"""Most symbols of a word between two looks at the clock: whole periods of most lengths."""

LOGITS_AT_ONCE = 1 << 21
"""Most logits of a piece of all words."""

LONGEST_WHOLE = 2_000
"""How far words are read by a model without a state, which reads them from the start."""


@dataclass(frozen=True)
class WrongAt:
    """A wrong answer: that to word number `word`, at `position` from 1, after `question`."""

    word: int
    position: int
    question: Word = ()


class Reading:
    """Words read from the start, by a model with a state or one without."""

    def __init__(self, subject: Subject, words: Sequence[Periodic]) -> None:
        self.words = list(words)
        self.read_to = 0
        self.settled = np.zeros(len(words), bool)
        self.margins = np.full(len(words), math.inf)
        """The least margin of the right label in the last piece."""
        self.found: WrongAt | None = None
        self._subject = subject
        self._automaton = subject.automaton
        self._states = np.full(len(words), subject.automaton.start)
        self._state = subject.first(len(words)) if subject.has_state else None
        self._open = np.arange(len(words))  # the words that are not settled
        self._snapshot: _Snapshot | None = None
        self._next_snapshot = 1
        self._num_pieces = 0

    def read(self, longest: int, budget: SearchBudget) -> bool:
        """Read on up to this length, or a wrong answer; False where the budget ended it."""
        subject = self._subject
        if not subject.has_state:
            return self._read_whole(min(longest, LONGEST_WHOLE), budget)
        most = LOGITS_AT_ONCE // (len(self.words) * self._automaton.num_labels)
        if not self._automaton.all_scored:
            most = min(most, PIECE // 4)
        size = max(24, min(PIECE, most) // 120 * 120)
        while self.read_to < longest and self.found is None and len(self._open):
            if budget.spent:
                return False
            symbols = self._symbols(self.read_to, min(self.read_to + size, longest))
            logits, self._state = subject.scan(symbols, self._state)
            self._compare(symbols, logits)
            self.read_to += symbols.shape[1]
            if self.found is None and not self._automaton.all_scored:
                self._ask()
            if self.found is None and symbols.shape[1] == size:
                self._settle()
        if self.found is None and not len(self._open):
            self.read_to = longest
        return True

    def _symbols(self, begin: int, end: int) -> NDArray[np.int64]:
        return np.stack([self.words[row].symbols(begin, end) for row in self._open])

    def _read_whole(self, longest: int, budget: SearchBudget) -> bool:
        length = 16
        while self.read_to < longest and self.found is None:
            if budget.spent:
                return False
            length = min(longest, 2 * length)
            symbols = self._symbols(0, length)
            self._states[:] = self._automaton.start
            at_once = max(1, LOGITS_AT_ONCE // (length * self._automaton.num_labels))
            parts = [
                self._subject.logits(symbols[row : row + at_once])
                for row in range(0, len(symbols), at_once)
            ]
            self.read_to = 0
            self._compare(symbols, torch.cat(parts))
            self.read_to = length
        return True

    def _compare(self, symbols: NDArray[np.int64], logits: Tensor) -> None:
        """Compare the answers to the next symbols [B, T] with the labels."""
        states = self._automaton.states_after(symbols, self._states[self._open]).astype(np.int64)
        scored = self._automaton.scored[states]
        margins = self._margins_of(logits, states)
        wrong = ~(margins > 0) & scored
        margins = np.where(scored, margins, math.inf)
        self.margins[self._open] = np.nan_to_num(margins, nan=-1.0).min(1)
        self._states[self._open] = states[:, -1]
        if wrong.any():
            place = int(wrong.any(0).argmax())
            row = int(wrong[:, place].argmax())
            self.found = WrongAt(int(self._open[row]), self.read_to + place + 1)

    def _margins_of(self, logits: Tensor, states: NDArray[np.int64]) -> NDArray[np.float64]:
        of_any_scale = self._subject.scale_invariant
        return margins_of(logits, self._automaton.output[states], of_any_scale=of_any_scale)

    def _ask(self) -> None:
        """Continue every word by a question, and forget that it was asked."""
        questions = questions_of(self._automaton)
        states = self._states[self._open]
        for length in sorted({len(questions[state]) for state in set(states.tolist())} - {0}):
            rows = np.array(
                [row for row, state in enumerate(states) if len(questions[state]) == length]
            )
            asked = np.array([questions[states[row]] for row in rows])
            kept = self._subject.take(self._state, torch.from_numpy(rows).to(self._subject.device))
            logits, _ = self._subject.scan(asked, kept)
            reached = self._automaton.states_after(asked, states[rows]).astype(np.int64)[:, -1:]
            margins = self._margins_of(logits[:, -1:], reached)[:, 0]
            names = self._open[rows]
            self.margins[names] = np.minimum(self.margins[names], np.nan_to_num(margins, nan=-1.0))
            wrong = np.flatnonzero(~(margins > 0))
            if len(wrong):
                row, question = int(names[wrong[0]]), tuple(asked[wrong[0]].tolist())
                found = WrongAt(row, self.read_to + length, question)
                if self.found is None or found.position < self.found.position:
                    self.found = found

    def _settle(self) -> None:
        """Leave out the words whose states are what they were; keep states to compare with."""
        self._num_pieces += 1
        own, shared = self._subject.bits(self._state)
        phases = np.array(
            [
                (self.read_to - len(self.words[row].prefix)) % len(self.words[row].period)
                for row in self._open
            ]
        )
        begun = self.read_to >= max(len(self.words[row].prefix) for row in self._open)
        now = _Snapshot(own, shared, self._states[self._open].copy(), phases)
        if self._snapshot is not None:
            same = now.equals(self._snapshot)
            if same.any():
                self.settled[self._open[same]] = True
                left = np.flatnonzero(~same)
                self._open = self._open[left]
                if not len(left):
                    return
                index = torch.from_numpy(left).to(self._subject.device)
                self._state = self._subject.take(self._state, index)
                now, self._snapshot = now.rows(left), self._snapshot.rows(left)
        if begun and self._num_pieces >= self._next_snapshot:  # Brent's way to find a cycle
            self._snapshot, self._next_snapshot = now, 2 * self._num_pieces


def first_error(
    subject: Subject, word: Periodic, longest: int, budget: SearchBudget
) -> WrongAt | None:
    """The first wrong answer to one word, read alone; None where none was found.

    Where it follows a question, questions are asked after every symbol of the last piece, and the
    earliest is taken that is answered wrongly.
    """
    reading = Reading(subject, [word])
    reading.read(longest, budget)
    if reading.found is None or not reading.found.question:
        return reading.found
    end = reading.found.position - len(reading.found.question)
    return _first_question(subject, word, max(0, end - PIECE // 4), end) or reading.found


def _first_question(subject: Subject, word: Periodic, begin: int, end: int) -> WrongAt | None:
    """The first question that is answered wrongly, of those after `begin + 1 .. end` symbols."""
    automaton, questions = subject.automaton, questions_of(subject.automaton)
    state = subject.first(1)
    symbols = word.symbols(0, end)[None]
    if begin:
        _, state = subject.scan(symbols[:, :begin], state)
    reached = automaton.states_after(symbols)[0].astype(int).tolist()
    for place in range(begin, end):
        _, state = subject.step(symbols[:, place], state)
        question = questions[reached[place]]
        if question:
            logits, _ = subject.scan(np.array([question]), state)
            label = automaton.labels_of(np.array(question), reached[place])[-1]
            if subject.answers_of(logits)[0, -1] != label:
                return WrongAt(0, place + 1 + len(question), question)
    return None


@dataclass(frozen=True)
class _Snapshot:
    """The states of some words after a piece."""

    own: NDArray[np.uint8]  # [B, N]: the bytes of every word's state
    shared: bytes  # those of what all words share
    states: NDArray[np.int64]  # [B]
    phases: NDArray[np.int64]  # [B]: positions inside the periods

    def equals(self, other: _Snapshot) -> NDArray[np.bool_]:
        """Which words' states are exactly those of another snapshot, [B]."""
        if self.own.shape != other.own.shape or self.shared != other.shared:
            return np.zeros(len(self.states), bool)
        equal: NDArray[np.bool_] = (
            (self.own == other.own).all(1)
            & (self.states == other.states)
            & (self.phases == other.phases)
        )
        return equal

    def rows(self, rows: NDArray[np.int64]) -> _Snapshot:
        """The snapshot of some of the words."""
        return _Snapshot(self.own[rows], self.shared, self.states[rows], self.phases[rows])


def margins_of(
    logits: Tensor, labels: NDArray[np.int64], *, of_any_scale: bool = False
) -> NDArray[np.float64]:
    """By how much the right label's logit is the largest, of logits [B, T, C]: [B, T].

    The difference to the largest of the others, divided by that of the largest and the least of
    all. Of two labels that would always be 1: theirs is divided by the length of both logits where
    these are `of_any_scale`, and otherwise by nothing. Not above 0 where the answer is wrong, as
    `argmax` takes the first of equal ones; NaN where a logit is not finite.
    """
    if not logits.is_floating_point():
        logits = logits.double()
    wanted = torch.from_numpy(labels).to(logits.device).unsqueeze(-1)
    right = logits.gather(-1, wanted)
    others = logits.scatter(-1, wanted, -math.inf)
    best, place = others.max(-1, keepdim=True)
    tiny = torch.finfo(logits.dtype).tiny
    margins = right - best
    if logits.shape[-1] > 2:
        spread = logits.amax(-1, keepdim=True) - logits.amin(-1, keepdim=True)
        margins = (margins / spread.clamp(min=tiny)).clamp(-1, 1)
    elif of_any_scale:
        margins = margins / torch.linalg.vector_norm(logits, dim=-1, keepdim=True).clamp(min=tiny)
    margins = margins.masked_fill((right == best) & (wanted < place), tiny).squeeze(-1)
    _, finite = answers_of(logits)
    return margins.masked_fill(~finite, math.nan).cpu().double().numpy()


def questions_of(automaton: Automaton) -> list[Word]:
    """For every state, the shortest drawable word that ends where a label is asked for.

    The empty word where none does.
    """
    words: list[Word] = [()] * automaton.num_states
    known = np.zeros(automaton.num_states, bool)
    leads = automaton.drawable & automaton.scored[automaton.delta]
    while True:
        fresh = leads.any(1) & ~known
        if not fresh.any():
            return words
        for state in np.flatnonzero(fresh).tolist():
            symbol = int(leads[state].argmax())
            target = int(automaton.delta[state, symbol])
            words[state] = (symbol, *(() if automaton.scored[target] else words[target]))
        known |= fresh
        leads = automaton.drawable & known[automaton.delta]
