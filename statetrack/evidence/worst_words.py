"""The worst word: the earliest wrong answer among words that models are likely to fail on.

Random words average away what one word repeats. So beside them are tried: all short words, runs
that change nothing, powers of short words, and words that never leave a group; under a rounding
model also words on which its errors add up. For a linear model
the length at which a power of a word fails is predicted first, and the words that are predicted to
fail first are the ones that are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.kinds.worst_case import Expected, Family, WorstCase
from statetrack.evidence.long_words import PIECE, Reading, WrongAt, first_error
from statetrack.evidence.power_words import (
    LinearForm,
    PredictedFailure,
    predict_failure,
    predict_failures,
    predict_failures_on_leaving,
    work_of_predicting,
)
from statetrack.evidence.records import Failure
from statetrack.evidence.subject import NO_ANSWER, Subject
from statetrack.evidence.word_tree import SearchedWords, search_drifting_words, search_short_words
from statetrack.evidence.words import (
    Periodic,
    Word,
    explicit,
    idle_runs,
    periodic_words,
    repeating_part,
    sampled_words,
    words_in_groups,
)
from statetrack.rounding import Rounding
from statetrack.sources import Automaton, Source
from statetrack.spec import Task

LONGEST_TRIED = 100_000
"""How far the words that are most likely to fail are read."""

FARTHEST = 10**9
"""How far failures of powers of words are predicted."""

LEAST_PREDICTED = 200
"""Up to this length powers of words are read, and not predicted."""

GRACE = 5.0
"""Seconds for reading a failing word again where no time is left."""

SAY_EVERY = 50
"""After how many predictions their number is reported."""

MOST_TRIES = 64
"""Most words that are tried at once while a failing word is made shorter."""

MOST_SYMBOLS = 1 << 21
"""Most symbols that are read for that in all."""


@dataclass(frozen=True)
class Caps:
    """How many words are tried, and how far they are read: the work of a search."""

    stages: tuple[tuple[int, int], ...] = ((256, 2_000), (32, 16_000), (4, LONGEST_TRIED))
    """How many words of a family are read, and how far; those with the least margin are read on,
    the last ones to the greatest length asked for."""
    predicted: int = 1_000
    """Powers of words whose failure is predicted for a linear model."""
    expected: int = 60
    """Of these, for how many it is predicted far beyond what is read."""
    replayed: int = 16
    """Of these, how many are read: those that are predicted to fail first."""
    replayed_alone: int = 4
    """How many of those that are predicted to fail where they leave their period are read."""
    beams: tuple[tuple[int, int], ...] = ((256, 128), (64, 2_000), (1_024, 256), (4_096, 128))
    """How many of the least certain words are kept while words are grown, and to which length."""
    drifting: tuple[int, int] = (16, LONGEST_TRIED)
    """How many words on which errors add up are kept while they are grown, and to which length."""
    mixed: int = 64
    """How many words in groups, and random ones, are read."""
    mixed_length: int = 4_096
    """How long these are."""


IDLE = "runs that change nothing"
POWERS = "powers of words"
UNCERTAIN = "least certain words"
DRIFTING = "words on which errors add up"
GROUPS = "words in a group"
RANDOM = "random words"
EXPLICIT = (UNCERTAIN, DRIFTING, GROUPS, RANDOM)
"""The families, and those of words that are tried as they are written."""


def find_worst_case(
    subject: Subject,
    *,
    budget: SearchBudget,
    seed: int = 0,
    longest: int | None = None,
    beyond: int = 0,
    caps: Caps | None = None,
) -> WorstCase:
    """The earliest wrong answer to a word of at most `longest` symbols, within a budget.

    Without a length, words have up to `LONGEST_TRIED` symbols; where a power of a word is predicted
    to fail later, it is read as far as the budget allows. Where all words of up to `beyond` symbols
    are known to be right, longer ones are sought, up to a tenth more at least. Only drawable words
    are tried. The failing word is read again on its own, as evaluation reads words, in the model's
    own precision and in float64.
    """
    return _WorstWordSearch(subject, budget, seed, longest, beyond, caps or Caps()).run()


def stress(
    model: nn.Module,
    task: Task | str | Path | Source,
    *,
    seconds: float = 20.0,
    seed: int = 0,
    longest: int | None = None,
    report: Callable[[str], None] | None = None,
    rounding: Rounding | str | Path | None = None,
) -> WorstCase:
    """The word that a model answers wrongly earliest, of those that are likely to fail.

    The model maps symbols [B, T] to logits [B, T, C]; with `initial_state` and `step` or `scan` it
    is tried on words of up to `longest` symbols (100,000, and further where a failure is predicted
    there), without on words of up to 2,000. The search ends after so many `seconds` of work;
    `report` is told what it is doing. `rounding` is that of `evaluate`.

    Raises `SettingsError` where the task has no automaton, and for what is no time or no seed.
    """
    budget = SearchBudget.asked("stress", seconds, seed, report)
    return WorstCase.search(
        Subject(model, task, rounding=rounding), budget=budget, seed=seed, longest=longest
    )


class _WorstWordSearch:
    """One search: families of words, tried one after the other, up to the earliest failure."""

    def __init__(
        self,
        subject: Subject,
        budget: SearchBudget,
        seed: int,
        longest: int | None,
        beyond: int,
        caps: Caps,
    ) -> None:
        self._subject = subject
        subject.counts_for(budget)
        self._budget = budget
        self._seed = seed
        self._bounded = longest is not None
        self._longest = max(LONGEST_TRIED if longest is None else longest, beyond + beyond // 10)
        self._beyond = beyond
        self._expected: Expected | None = None
        self._caps = caps
        self._limit = self._longest  # no wrong answer beyond this would be the earliest
        self._families: list[Family] = []
        self._complete = True
        self._draw = np.random.default_rng(seed)
        self._form = LinearForm.of(subject)

    def run(self) -> WorstCase:
        """Try all families, each with a share of the time that is left."""
        started = time.monotonic()
        families: tuple[tuple[str, float, Callable[[str, SearchBudget], None]], ...] = (
            (UNCERTAIN, 0.4, self._least_certain_words),
            (DRIFTING, 0.4, self._drifting_words),
            (IDLE, 0.25, self._periodic_words),
            (POWERS, 0.6, self._periodic_words),
            (GROUPS, 0.4, self._mixed_words),
            (RANDOM, 0.5, self._mixed_words),
        )
        for name, share, family in families:
            if self._limit:
                self._budget.say(name)
                family(name, self._budget.part(share))
        failing = [family for family in self._families if family.failure is not None]
        worst = min(failing, key=lambda family: family.longest, default=None)
        failure = None if worst is None else worst.failure
        errors = [family.first_error for family in self._families if family.first_error]
        return WorstCase(
            horizon=min(errors) - 1 if errors else self._tested,
            tested=self._tested,
            longest=self._longest,
            failure=failure,
            family=None if worst is None else worst.name,
            predicted=None if worst is None else worst.predicted,
            position_float64=None if failure is None else self._position_float64(failure),
            families=tuple(self._families),
            drawable_only=True,
            seed=self._seed,
            beyond=self._beyond,
            expected=self._expected if worst is None else None,
            complete=self._complete,
            seconds=round(time.monotonic() - started, 3),
        )

    @property
    def _tested(self) -> int:
        """The length of the longest word that was read."""
        return max((family.longest for family in self._families), default=0)

    def _least_certain_words(self, name: str, budget: SearchBudget) -> None:
        for beam, length in self._caps.beams if self._subject.has_state else ():
            if min(length, self._limit) <= self._beyond:
                continue
            found = search_short_words(
                self._subject,
                longest=min(length, self._limit),
                beam=beam,
                budget=budget,
                seed=self._seed,
            )
            self._searched(name, found)

    def _drifting_words(self, name: str, budget: SearchBudget) -> None:
        """Of a model under a rounding model: without one, errors add up beyond what is read."""
        beam, longest = self._caps.drifting
        longest = min(longest, self._limit)
        if self._subject.rounding is None or longest <= self._beyond:
            return
        exact = self._subject.in_precision(torch.float64)
        found = search_drifting_words(
            self._subject, exact, longest=longest, beam=beam, budget=budget
        )
        self._searched(name, found)

    def _searched(self, name: str, found: SearchedWords) -> None:
        self._complete &= found.complete
        family = Family(name, found.words, found.longest, 0, None)
        if found.failing is None:
            self._families.append(family)
        else:
            self._fails(family, explicit(found.failing), WrongAt(0, len(found.failing)))

    def _periodic_words(self, name: str, budget: SearchBudget) -> None:
        automaton, most = self._subject.automaton, self._caps.stages[0][0]
        if name == IDLE:
            words = idle_runs(automaton, most, self._draw)
        elif self._form is not None and self._limit > LEAST_PREDICTED:
            words = periodic_words(automaton, self._caps.predicted, self._draw)
            predictions, leaving = self._predict(self._form, words, self._limit, budget.part(0.5))
            first = _first_to_fail(predictions, self._limit)[: self._caps.replayed]
            if first:
                most = (first[-1].position or 0) * 101 // 100 + PIECE
                title = f"{name}, predicted to fail first"
                within = [each.word for each in first]
                self._read(title, within, min(most, self._limit), budget.part(0.6))
            self._leave_periods(name, _first_to_fail(leaving, self._limit))
            few = words[: self._caps.expected]
            far = self._predict(self._form, few, FARTHEST, budget.part(0.4))
            self._expect(name, _first_to_fail([*far[0], *far[1]]), budget)
            unknown = [each.word for each in predictions if not each.known]
            words = unknown or words
        else:
            words = periodic_words(automaton, most, self._draw)
        self._read_in_stages(name, words[:most], budget)

    def _expect(self, name: str, failing: Sequence[PredictedFailure], budget: SearchBudget) -> None:
        """Read the word that is predicted to fail first of those that are longer, or keep it."""
        if not failing or self._limit < self._longest:
            return
        word, suffix, position = failing[0].word, failing[0].suffix, failing[0].position
        assert position is not None
        if position <= self._limit:
            return
        work = self._subject.work_of(1, position)
        if work > budget.left or self._bounded:
            self._expected = Expected(word.prefix, word.period, suffix, position, round(work, 1))
            return
        self._limit = self._longest = position * 101 // 100 + PIECE
        if suffix:
            self._leave_periods(name, failing[:1])
        else:
            self._read(f"{name}, predicted to fail later", [word], self._limit, budget)

    def _leave_periods(self, name: str, suspects: Sequence[PredictedFailure]) -> None:
        """Read the words that are predicted to fail first on a symbol outside their period."""
        tried = longest = 0
        for each in suspects[: self._caps.replayed_alone]:
            assert each.position is not None
            if each.position > self._limit or self._budget.spent:
                break
            found = self._left(each.word, each.position, each.suffix)
            tried += 1
            longest = max(longest, each.position)
            if found is not None:
                title = f"{name} and one other symbol, predicted to fail first"
                self._fails(Family(title, tried, longest, 0, None), each.word, found)
                return

    def _left(self, word: Periodic, position: int, suffix: Word) -> WrongAt | None:
        """The first of some lengths near a position at which a word fails that ends there."""
        turns = (position - len(word.prefix)) // len(word.period)
        shifts = {0, 1, 2, -1, -2, turns // 100, turns // 50, turns // 20}
        for shift in sorted(shifts):
            length = position - len(suffix) + shift * len(word.period)
            if length < len(word.prefix) or length + len(suffix) > self._limit:
                continue
            symbols = np.append(word.symbols(0, length), suffix)
            error = int(self._subject.first_errors(symbols[None])[0])
            if error:
                return WrongAt(0, error, suffix if error == len(symbols) else ())
        return None

    def _predict(
        self, form: LinearForm, words: Sequence[Periodic], longest: int, budget: SearchBudget
    ) -> tuple[list[PredictedFailure], list[PredictedFailure]]:
        """What is predicted for words that stay in their period, and for those that leave it."""
        groups: dict[Word, list[Periodic]] = {}
        for word in words:
            rotated = word.with_first_rotation()
            groups.setdefault(rotated.period, []).append(rotated)
        automaton = self._subject.automaton
        staying: list[PredictedFailure] = []
        leaving: list[PredictedFailure] = []
        for number, group in enumerate(groups.values()):
            if budget.spent:
                self._complete = False
                break
            if number % SAY_EVERY == 0:
                self._budget.say(f"predicting powers of words, {number:,} of {len(groups):,}")
            self._budget.use(work_of_predicting(form, automaton, group, longest))
            staying += predict_failures(form, automaton, group, longest)
            leaving += predict_failures_on_leaving(form, automaton, group, longest)
        return staying, leaving

    def _mixed_words(self, name: str, budget: SearchBudget) -> None:
        automaton, most = self._subject.automaton, self._caps.mixed
        length = min(self._caps.mixed_length, self._limit)
        if name == GROUPS:
            words = words_in_groups(automaton, most, length, self._draw)
        else:
            words = sampled_words(automaton, most, length, self._seed)
        if words and length > self._beyond:
            self._read(name, words, length, budget)

    def _read_in_stages(self, name: str, words: Sequence[Periodic], budget: SearchBudget) -> None:
        """Read many words a little way, and those with the least margin on and on."""
        stages = self._caps.stages
        for number, (most, length) in enumerate(stages):
            if not words:
                return
            is_last = number + 1 == len(stages)
            title = name if number == 0 else f"{name}, least certain"
            length = self._limit if is_last else min(length, self._limit)
            reading = self._read(title, words[:most], length, budget)
            if reading.found is not None or reading.read_to >= self._limit:
                return
            open_words = np.flatnonzero(~reading.settled).tolist()
            if not open_words:  # all of them are right at every length
                self._families[-1] = replace(self._families[-1], longest=self._limit)
            open_words.sort(key=lambda row: float(reading.margins[row]))
            following = 0 if is_last else stages[number + 1][0]
            words = [reading.words[row] for row in open_words[:following]]

    def _read(
        self, name: str, words: Sequence[Periodic], length: int, budget: SearchBudget
    ) -> Reading:
        self._budget.say(f"{name}: {len(words):,} words to {length:,} symbols")
        reading = Reading(self._subject, words)
        self._complete &= reading.read(length, budget)
        found = reading.found
        settled = int(reading.settled.sum())
        family = Family(name, len(words), reading.read_to, settled, None)
        if found is None:
            self._families.append(family)
        else:
            self._fails(family, reading.words[found.word], found)
        return reading

    def _fails(self, family: Family, word: Periodic, found: WrongAt) -> None:
        """Keep a family with a wrong answer, and the word if the model also fails on it alone."""
        failure = self._confirmed(word, found, family.name)
        predicted = None
        if failure is not None and self._form is not None and _repeats(failure):
            automaton = self._subject.automaton
            predicted = predict_failure(self._form, automaton, failure, self._longest)
            if predicted is not None and predicted < failure.position:
                # repeated up to about there only, if it fails there too
                repeated = Periodic(failure.prefix, failure.period)
                earlier = self._left(repeated, predicted, failure.suffix)
                if earlier is not None and earlier.position < failure.position:
                    failure = self._confirmed(repeated, earlier, POWERS) or failure
        position = found.position if failure is None else failure.position
        self._families.append(
            replace(
                family,
                longest=position,
                first_error=position,
                failure=failure,
                predicted=predicted,
            )
        )
        self._limit = min(self._limit, position - 1)

    def _confirmed(self, word: Periodic, found: WrongAt, family: str) -> Failure | None:
        """The failure of one word, read alone by the model in its own precision."""
        subject = self._subject
        if not found.question and family not in EXPLICIT:  # on its own, it may fail later
            most = found.position + found.position // 4 + 64
            alone = self._alone(subject, word, min(most, self._longest))
            if alone is None:
                return None
            word, found = word.with_shortest_prefix(), alone
        elif found.question and not subject.automaton.all_scored:
            alone = self._alone(subject, word, found.position)
            word, found = word.with_shortest_prefix(), alone or found
        length = found.position - len(found.question)
        symbols = (*word.symbols(0, length).tolist(), *found.question)
        position = int(subject.first_errors(np.array([symbols]))[0])
        if not position:
            return None
        symbols = symbols[:position]
        if family in (GROUPS, RANDOM):
            symbols = shorten(subject, symbols, self._budget.part(0.3))
        parts = repeating_part(symbols)
        if family not in EXPLICIT and position == found.position:
            parts = word.prefix, word.period, found.question
        answer = int(subject.answers(np.array([symbols]))[0, -1])
        label = int(subject.automaton.labels_of(np.array([symbols]))[0, -1])
        return Failure(
            prefix=parts[0],
            period=parts[1],
            position=len(symbols),
            label=label,
            answer=None if answer == NO_ANSWER else answer,
            suffix=parts[2],
        )

    def _position_float64(self, failure: Failure) -> int | None:
        """Where the model fails on the failing word in float64."""
        exact = self._subject.in_precision(torch.float64)
        if (failure.suffix and exact.automaton.all_scored) or not _repeats(failure):
            return int(exact.first_errors(np.array([failure.word]))[0]) or None
        word = Periodic(failure.prefix, failure.period)
        found = self._alone(exact, word, self._longest)
        return None if found is None else found.position

    def _alone(self, subject: Subject, word: Periodic, longest: int) -> WrongAt | None:
        """The first wrong answer to one word that is known to fail, read alone.

        That takes a few seconds at most, which it also has where the time is spent.
        """
        budget = self._budget.at_least(GRACE)
        found = first_error(subject, word, longest, budget)
        self._complete &= found is not None or not budget.spent
        return found


def shorten(subject: Subject, word: Word, budget: SearchBudget) -> Word:
    """A word whose last answer is wrong, and the first wrong one: at most as long as `word`.

    Pieces of half the word are left out first, then of a quarter, and so on; only drawable words
    are tried. It ends where no piece can be left out, or the work or the time is spent.
    """
    size, left = len(word) // 2, MOST_SYMBOLS
    while size and left > 0 and not budget.spent:
        begins = np.unique(np.linspace(0, len(word) - size, MOST_TRIES).astype(int)).tolist()
        tried = dict.fromkeys(word[:begin] + word[begin + size :] for begin in begins)
        words = [each for each in tried if each and _is_drawable(subject.automaton, each)]
        shorter: list[Word] = []
        if words:
            left -= len(words) * len(words[0])
            ends = subject.first_errors(np.array(words)).tolist()
            shorter = [each[:end] for each, end in zip(words, ends, strict=True) if end]
        if shorter:
            word = min(shorter, key=len)
            size = min(size, len(word) // 2)
        else:
            size //= 2
    return word


def _is_drawable(automaton: Automaton, word: Word) -> bool:
    states = automaton.states_after(np.array(word)).astype(np.int64)
    before = np.concatenate([[automaton.start], states[:-1]])
    return bool(automaton.drawable[before, np.array(word)].all())


def _first_to_fail(
    predictions: Sequence[PredictedFailure], longest: int = FARTHEST
) -> list[PredictedFailure]:
    """Those that are predicted to fail up to a length, the earliest first."""
    failing = [each for each in predictions if each.position and each.position <= longest]
    return sorted(failing, key=lambda each: each.position or 0)


def _repeats(failure: Failure) -> bool:
    """Whether the period is read more than once up to the wrong answer."""
    return failure.position - len(failure.suffix) > len(failure.prefix) + len(failure.period)
