"""The worst word: the earliest wrong answer among words that models are likely to fail on.

Random words average away what one word repeats. So beside them are tried: all short words, runs
that change nothing, powers of short words, and words that never leave a group. For a linear model
the length at which a power of a word fails is predicted first, and the words that are predicted to
fail first are the ones that are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from statetrack.evidence.budget import Budget
from statetrack.evidence.long_words import Found, Reading, first_error
from statetrack.evidence.power_words import LinearForm, Prediction, predict_failures
from statetrack.evidence.primitive_words import Periodic, Word, explicit, periodic_words
from statetrack.evidence.rows import Failure, Family, WorstCase
from statetrack.evidence.short_words import search_short_words
from statetrack.evidence.shortening import shorten
from statetrack.evidence.subject import NO_ANSWER, Subject
from statetrack.evidence.suspect_words import idle_runs, sampled_words, words_in_groups
from statetrack.sources import Source
from statetrack.spec import Task

LONGEST = 100_000
"""How far the words that are most likely to fail are read."""

LEAST_PREDICTED = 200
"""Up to this length powers of words are read, and not predicted."""

SAY_EVERY = 50
"""After how many predictions their number is reported."""


@dataclass(frozen=True)
class Caps:
    """How many words are tried, and how far they are read: the work of a search."""

    stages: tuple[tuple[int, int], ...] = ((256, 2_000), (32, 16_000), (4, LONGEST))
    """How many words of a family are read, and how far; those with the least margin are read on,
    the last ones to the greatest length asked for."""
    predicted: int = 1_000
    """Powers of words whose failure is predicted for a linear model."""
    replayed: int = 16
    """Of these, how many are read: those that are predicted to fail first."""
    short: int = 48
    """The length of the words that are searched for the shortest failure."""
    beam: int = 256
    """How many of them are kept."""
    mixed: int = 64
    """How many words in groups, and random ones, are read."""
    mixed_length: int = 4_096
    """How long these are."""


SHORT_WORDS = "short words"
IDLE = "runs that change nothing"
POWERS = "powers of words"
GROUPS = "words in a group"
RANDOM = "random words"
MIXED = (GROUPS, RANDOM)
"""The families, and those of words that repeat nothing."""


@dataclass(frozen=True)
class _Failing:
    """A word with a wrong answer, and of which family it is."""

    word: Periodic
    found: Found
    family: str


def find_worst_case(
    subject: Subject,
    *,
    budget: Budget,
    seed: int = 0,
    longest: int = LONGEST,
    caps: Caps | None = None,
) -> WorstCase:
    """The earliest wrong answer to a word of at most `longest` symbols, within a budget.

    Only drawable words are tried. The failing word is read again on its own, as evaluation reads
    words, in the model's own precision and in float64.
    """
    return _Search(subject, budget, seed, longest, caps or Caps()).run()


def stress(
    model: nn.Module,
    task: Task | str | Source,
    *,
    seconds: float = 20.0,
    seed: int = 0,
    longest: int = LONGEST,
    report: Callable[[str], None] | None = None,
) -> WorstCase:
    """The word that a model answers wrongly earliest, of those that are likely to fail.

    The model maps symbols [B, T] to logits [B, T, C]; with `initial_state` and `step` or `scan` it
    is tried on words of up to `longest` symbols, without on words of up to 2,000. The search ends
    after about so many `seconds`; `report` is told what it is doing.

    Raises `SettingsError` where the task has no automaton.
    """
    budget = Budget(seconds, report)
    return find_worst_case(Subject(model, task), budget=budget, seed=seed, longest=longest)


class _Search:
    """One search: families of words, tried one after the other, up to the earliest failure."""

    def __init__(
        self, subject: Subject, budget: Budget, seed: int, longest: int, caps: Caps
    ) -> None:
        self._subject = subject
        self._budget = budget
        self._seed = seed
        self._longest = longest
        self._caps = caps
        self._limit = longest  # no wrong answer beyond this would be the earliest
        self._families: list[Family] = []
        self._failing: list[_Failing] = []
        self._complete = True
        self._draw = np.random.default_rng(seed)
        self._form = LinearForm.of(subject.model)

    def run(self) -> WorstCase:
        """Try all families."""
        started = time.monotonic()
        self._try(SHORT_WORDS, 0.2, self._short_words)
        self._try(IDLE, 0.25, self._idle_runs)
        self._try(POWERS, 0.6, self._powers)
        self._try(GROUPS, 0.3, self._words_in_groups)
        self._try(RANDOM, 0.4, self._random_words)
        failing, failure = self._confirmed()
        return WorstCase(
            horizon=self._tested if failure is None else failure.position - 1,
            tested=self._tested,
            longest=self._longest,
            failure=failure,
            family=None if failing is None else failing.family,
            predicted=None if failure is None else self._predicted(failure),
            position_float64=None if failure is None else self._position_float64(failure),
            families=tuple(self._families),
            drawable_only=True,
            seed=self._seed,
            complete=self._complete,
            seconds=round(time.monotonic() - started, 3),
        )

    def _try(self, name: str, share: float, family: Callable[[str, Budget], None]) -> None:
        if self._limit:
            self._budget.say(name)
            family(name, self._budget.part(share))

    @property
    def _tested(self) -> int:
        """The length of the longest word that was read."""
        return max((family.longest for family in self._families), default=0)

    def _short_words(self, name: str, budget: Budget) -> None:
        if not self._subject.has_state:
            return
        found = search_short_words(
            self._subject,
            longest=min(self._caps.short, self._limit),
            beam=self._caps.beam,
            budget=budget,
            draw=self._draw,
        )
        self._complete &= found.complete
        position = None if found.failing is None else len(found.failing)
        self._families.append(Family(name, found.words, found.longest, 0, position))
        if found.failing is not None:
            self._fails(explicit(found.failing), Found(0, len(found.failing)), name)

    def _idle_runs(self, name: str, budget: Budget) -> None:
        words = idle_runs(self._subject.automaton, self._caps.stages[0][0], self._draw)
        self._read_in_stages(name, words, budget)

    def _powers(self, name: str, budget: Budget) -> None:
        automaton = self._subject.automaton
        if self._form is not None and self._limit > LEAST_PREDICTED:
            words = periodic_words(automaton, self._caps.predicted, self._draw)
            predictions = self._predict(self._form, words, budget.part(0.6))
            suspects = sorted(
                (each for each in predictions if each.position is not None),
                key=lambda each: each.position or 0,
            )
            first = [each.word for each in suspects[: self._caps.replayed]]
            if first:
                self._read(f"{name}, predicted to fail first", first, self._limit, budget.part(0.6))
            unknown = [each.word for each in predictions if not each.known]
            words = unknown or words
        else:
            words = periodic_words(automaton, self._caps.stages[0][0], self._draw)
        self._read_in_stages(name, words[: self._caps.stages[0][0]], budget)

    def _predict(
        self, form: LinearForm, words: Sequence[Periodic], budget: Budget
    ) -> list[Prediction]:
        groups: dict[Word, list[Periodic]] = {}
        for word in words:
            rotated = word.with_first_rotation()
            groups.setdefault(rotated.period, []).append(rotated)
        predictions: list[Prediction] = []
        for number, group in enumerate(groups.values()):
            if budget.spent:
                self._complete = False
                break
            if number % SAY_EVERY == 0:
                self._budget.say(f"predicting powers of words, {number:,} of {len(groups):,}")
            predictions += predict_failures(form, self._subject.automaton, group, self._limit)
        return predictions

    def _words_in_groups(self, name: str, budget: Budget) -> None:
        length = min(self._caps.mixed_length, self._limit)
        words = words_in_groups(self._subject.automaton, self._caps.mixed, length, self._draw)
        if words:
            self._read(name, words, length, budget)

    def _random_words(self, name: str, budget: Budget) -> None:
        length = min(self._caps.mixed_length, self._limit)
        words = sampled_words(self._subject.automaton, self._caps.mixed, length, self._seed)
        self._read(name, words, length, budget)

    def _read_in_stages(self, name: str, words: Sequence[Periodic], budget: Budget) -> None:
        for number, (most, length) in enumerate(self._caps.stages):
            length = (
                min(length, self._limit) if number + 1 < len(self._caps.stages) else self._limit
            )
            title = name if number == 0 else f"{name}, least certain"
            if not words:
                return
            reading = self._read(title, words[:most], length, budget)
            if reading.found is not None or reading.read_to >= self._limit:
                return
            following = (
                self._caps.stages[number + 1][0] if number + 1 < len(self._caps.stages) else 0
            )
            open_words = [row for row in range(len(reading.words)) if not reading.settled[row]]
            if not open_words:  # all of them are right at every length
                self._families[-1] = replace(self._families[-1], longest=self._limit)
            open_words.sort(key=lambda row: float(reading.margins[row]))
            words = [reading.words[row] for row in open_words[:following]]

    def _read(self, name: str, words: Sequence[Periodic], length: int, budget: Budget) -> Reading:
        self._budget.say(f"{name}: {len(words):,} words to {length:,} symbols")
        reading = Reading(self._subject, words)
        self._complete &= reading.read(length, budget)
        found = reading.found
        self._families.append(
            Family(
                name,
                len(words),
                reading.read_to if found is None else found.position,
                int(reading.settled.sum()),
                None if found is None else found.position,
            )
        )
        if found is not None:
            self._fails(reading.words[found.word], found, name)
        return reading

    def _fails(self, word: Periodic, found: Found, family: str) -> None:
        self._failing.append(_Failing(word, found, family))
        self._limit = min(self._limit, found.position - 1)

    def _confirmed(self) -> tuple[_Failing | None, Failure | None]:
        """The earliest failure that the model repeats where the word is read on its own."""
        for failing in sorted(self._failing, key=lambda each: each.found.position):
            failure = self._replayed(failing)
            if failure is not None:
                return failing, failure
        return None, None

    def _replayed(self, failing: _Failing) -> Failure | None:
        """The failure of one word, read alone by the model in its own precision."""
        subject, word, found = self._subject, failing.word, failing.found
        if failing.family in MIXED:
            symbols = tuple(word.symbols(0, found.position).tolist())
            if not subject.first_errors(np.array([symbols]))[0]:
                return None
            word = explicit(shorten(subject, symbols, self._budget.part(0.3)))
            found = Found(0, len(word.prefix) + 1)
        else:
            most = found.position + found.position // 4 + 64
            alone = first_error(subject, word, min(most, self._longest), self._budget)
            if alone is None:
                return None
            found = alone
        word = word.with_shortest_prefix()
        length = found.position - len(found.question)
        symbols = (*word.symbols(0, length).tolist(), *found.question)
        answer = int(subject.answers(np.array([symbols]))[0, -1])
        label = int(subject.automaton.labels_of(np.array([symbols]))[0, -1])
        if answer == label:
            return None
        return Failure(
            word.prefix,
            word.period,
            found.position,
            label,
            None if answer == NO_ANSWER else answer,
            found.question,
        )

    def _predicted(self, failure: Failure) -> int | None:
        """Where a linear model is predicted to fail on the failing word, if that is repeated."""
        word = Periodic(failure.prefix, failure.period)
        if self._form is None or failure.suffix or not _repeats(failure):
            return None
        (found,) = predict_failures(self._form, self._subject.automaton, [word], self._longest)
        return found.position

    def _position_float64(self, failure: Failure) -> int | None:
        """Where the model fails on the failing word in float64."""
        exact = self._subject.in_precision(torch.float64)
        word = Periodic(failure.prefix, failure.period)
        longest = self._longest if _repeats(failure) else failure.position
        found = first_error(exact, word, longest, self._budget)
        return None if found is None else found.position


def _repeats(failure: Failure) -> bool:
    """Whether the period is read more than once up to the wrong answer."""
    return failure.position - len(failure.suffix) > len(failure.prefix) + len(failure.period)
