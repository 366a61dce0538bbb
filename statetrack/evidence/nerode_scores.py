"""Whether a network keeps apart the words that the task keeps apart, and no others.

Vafa, Chen, Rambachan, Kleinberg and Mullainathan (2024, arXiv:2406.03689) measure this of models
that generate tokens. Two words of which an automaton accepts the same continuations are one state
(Myhill, Nerode). The *boundary* between two states is the set of shortest suffixes that tell them
apart: after them, and after no proper prefix of them, only one of the two goes on to be accepted. A
model has such a boundary between two words, by the continuations that it allows. Then

- *compression precision*, of two words that reach the same state: 1 where the model's boundary
  between them is empty, else 0;
- *distinction recall*, of two words that reach different states: the share of the automaton's
  boundary that the model tells apart;
- *distinction precision*: the share of the model's boundary that the automaton tells apart, 1 where
  that boundary is empty.

Each is a mean over the pairs of words that reach one state, or two, and then over the states, or
the pairs of states.

*Departures.* A network that labels words allows no tokens: it gives answers. So a suffix tells two
words apart where the answers after it differ, as a difference in either direction; for the
automaton, where both states reached are asked for a label and these differ. Suffixes have a symbol
or more, so that the present answers do not count. Where the task draws no such suffix, or asks for
no label, nothing is compared, and pairs of states that no suffix tells apart are left out.

*Exact and sampled.* The paper samples words, suffixes and pairs, and knows the automaton's boundary
up to suffixes of 5 symbols. Here the automaton is known: suffixes have up to as many symbols as it
takes to tell apart every two states that can be, all of these are read, and all words up to a
length stand before them. Words after which the state is the same and so are all answers are counted
together, so that all pairs are. Beside these stand the scores of random words, as in the paper,
with as many random suffixes as it takes, the same for all words; these words are longer.

P words, M suffixes, k symbols of the longest, S states, V symbols.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statetrack.algebra import Machine, needed_machine
from statetrack.errors import SettingsError
from statetrack.evidence.budget import MULTIPLICATION, SearchBudget
from statetrack.evidence.kinds.myhill_nerode import MyhillNerode, NerodeScores
from statetrack.evidence.subject import Subject
from statetrack.sources import Booleans, leading_to

Indices = NDArray[np.int64]

UNASKED = -2
"""The answer where none is asked for; -1 is that of a network whose logits are not finite."""

MOST_STATES = 500
"""Most states of a task whose pairs are measured."""

MOST_PREFIXES, MOST_SUFFIXES, MOST_WORDS = 1024, 1024, 2**16
"""Most words, most suffixes of the greatest length, and most words with such a suffix."""

RANDOM_PREFIXES, RANDOM_LENGTH, RANDOM_SUFFIXES = 300, 100, 30
"""Random words, the most symbols that they have, and random suffixes."""

ROWS = 4096
"""Words with a suffix that are read at once."""

PAIRS_AT_ONCE = 2**24
"""Pairs of words times suffixes that are compared between two looks at the time."""


def find_myhill_nerode(
    subject: Subject,
    *,
    budget: SearchBudget,
    seed: int = 0,
    max_prefixes: int = MOST_PREFIXES,
    max_suffixes: int = MOST_SUFFIXES,
    random_prefixes: int = RANDOM_PREFIXES,
    random_length: int = RANDOM_LENGTH,
    random_suffixes: int = RANDOM_SUFFIXES,
) -> MyhillNerode:
    """Measure compression and distinction, on all words up to a length and on random ones.

    Words and suffixes are as long as the caps allow. Raises `SettingsError` for a task with more
    than `MOST_STATES` states.
    """
    started = time.monotonic()
    subject.counts_for(budget)
    machine = needed_machine(subject.automaton)
    num_states, num_symbols = machine.delta.shape
    if num_states > MOST_STATES:
        raise SettingsError(
            f"the task needs {num_states:,} states: pairs of at most {MOST_STATES} are measured"
        )
    needed_length = _distinguishing_length(machine)
    length, count = 1, num_symbols
    while length < needed_length and count * num_symbols <= max_suffixes:
        length, count = length + 1, count * num_symbols
    suffixes = np.stack(np.unravel_index(np.arange(count), (num_symbols,) * length), 1)
    words, complete = _Words(subject, machine, _Suffixes.of(suffixes)), True
    prefix_length = -1
    for prefixes in _all_words(machine, max_prefixes):
        too_many = len(prefixes) * count > MOST_WORDS
        if budget.spent or (too_many and prefix_length >= 0):
            complete = not budget.spent
            break
        budget.say(f"{len(prefixes):,} words of {prefixes.shape[1]} symbols, {count:,} suffixes")
        words.add(prefixes)
        prefix_length = prefixes.shape[1]
    exact = words.scores(budget)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(num_symbols, size=(random_suffixes, length))
    sample = _Words(subject, machine, _Suffixes.of(np.unique(drawn, axis=0)))
    num_sampled = 0
    for prefixes in _random_words(machine, random_prefixes, random_length, generator):
        if budget.spent:
            complete = False
            break
        sample.add(prefixes)
        num_sampled += len(prefixes)
    sampled = sample.scores(budget)
    return MyhillNerode(
        exact=exact,
        sampled=sampled,
        states=int(machine.live.sum()),
        reached=words.reached,
        prefixes=words.number,
        prefix_length=max(0, prefix_length),
        suffixes=words.suffixes.number,
        suffix_length=length,
        tells_apart=length >= needed_length,
        sampled_prefixes=num_sampled,
        sampled_length=random_length,
        sampled_suffixes=len(sample.suffixes.longest),
        complete=complete and not budget.spent,
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True, eq=False)
class _Suffixes:
    """Suffixes of one length, and the different prefixes of these, shorter ones first.

    Suffix m is the first `ends[m] + 1` symbols of the longest one `rows[m]`; `parents[m]` is the
    one that is a symbol shorter, -1 for a single symbol.
    """

    longest: Indices  # [R, k]
    rows: Indices  # [M]
    ends: Indices  # [M]
    parents: Indices  # [M]

    @property
    def number(self) -> int:
        """M."""
        return len(self.rows)

    @classmethod
    def of(cls, longest: Indices) -> _Suffixes:
        """All prefixes, but the empty one, of suffixes [R, k]."""
        rows, ends, parents = [], [], []
        known = np.full(len(longest), -1)  # of every row: its prefix of the length before
        for end in range(longest.shape[1]):
            _, first, number = np.unique(
                longest[:, : end + 1], axis=0, return_index=True, return_inverse=True
            )
            rows.append(first)
            ends.append(np.full(len(first), end))
            parents.append(known[first])
            known = sum(map(len, rows[:-1])) + number.reshape(-1)
        return cls(longest, np.concatenate(rows), np.concatenate(ends), np.concatenate(parents))

    def boundary(self, differ: Booleans) -> Booleans:
        """The suffixes that differ while no shorter prefix of them does: [N, M] of [N, M]."""
        before = np.zeros_like(differ)  # whether a proper prefix differs
        for end in range(1, self.longest.shape[1]):
            own = np.flatnonzero(self.ends == end)
            parents = self.parents[own]
            before[:, own] = before[:, parents] | differ[:, parents]
        boundary: Booleans = differ & ~before
        return boundary


class _Words:
    """Words by the state that they reach and by all answers after suffixes, with their numbers."""

    def __init__(self, subject: Subject, machine: Machine, suffixes: _Suffixes) -> None:
        self.suffixes = suffixes
        self.number = 0
        self._subject = subject
        self._machine = machine
        self._counts: dict[tuple[int, bytes], int] = {}
        states = np.arange(len(machine.delta))
        rows, ends = suffixes.rows, suffixes.ends
        reached = np.empty((len(states), *suffixes.longest.shape), np.int64)
        for position, symbols in enumerate(suffixes.longest.T):
            states = machine.delta[states if position else states[:, None], symbols]
            reached[:, :, position] = states
        automaton = machine.automaton
        labels = np.where(automaton.scored, automaton.output, UNASKED)[reached]
        self._labels = labels[:, rows, ends]  # [S, M]

    @property
    def reached(self) -> int:
        """How many states some word reaches."""
        return len({state for state, _ in self._counts})

    def add(self, prefixes: Indices) -> None:
        """Read words [P, n] with every suffix behind them."""
        longest = self.suffixes.longest
        size = max(1, ROWS // len(longest))
        answers = np.concatenate(
            [
                self._answers(prefixes[first : first + size], longest)
                for first in range(0, len(prefixes), size)
            ]
        )
        answers = answers[:, self.suffixes.rows, self.suffixes.ends].astype("<i4")
        states = np.full(len(prefixes), self._machine.automaton.start)
        for symbols in prefixes.T:
            states = self._machine.delta[states, symbols]
        answers[self._labels[states] == UNASKED] = UNASKED
        for state, row in zip(states.tolist(), answers, strict=True):
            key = (state, row.tobytes())
            self._counts[key] = self._counts.get(key, 0) + 1
        self.number += len(prefixes)

    def _answers(self, prefixes: Indices, longest: Indices) -> Indices:
        """The network's answers to suffixes [R, k] behind words [P, n]: [P, R, k]."""
        subject, shape = self._subject, (len(prefixes), *longest.shape)
        behind = np.tile(longest, (len(prefixes), 1))
        before = np.repeat(np.arange(len(prefixes)), len(longest))
        if not subject.has_state:
            whole = np.hstack([prefixes[before], behind])
            return subject.answers(whole)[:, prefixes.shape[1] :].reshape(shape)
        state = subject.first(len(prefixes))
        if prefixes.shape[1]:
            _, state = subject.scan(prefixes, state)
        logits, _ = subject.scan(behind, subject.take(state, subject.tensor(before)))
        return subject.answers_of(logits).reshape(shape)

    def scores(self, budget: SearchBudget) -> NerodeScores:
        """The means over pairs of words, and then over states and pairs of states."""
        classes = sorted(self._counts)
        if not classes:
            return NerodeScores(
                compression_precision=None, distinction_precision=None, distinction_recall=None
            )
        states = np.array([state for state, _ in classes])
        counts = np.array([self._counts[each] for each in classes], np.float64)
        answers = np.stack([np.frombuffer(row, "<i4") for _, row in classes])
        together = []  # of every state, the share of pairs of words that are in one class
        for state in np.unique(states):
            own = counts[states == state]
            if pairs := own.sum() * (own.sum() - 1):
                together.append(float((own * (own - 1)).sum() / pairs))
        distinction = self._distinction(states, counts, answers, budget)
        return NerodeScores(
            compression_precision=float(np.mean(together)) if together else None,
            distinction_precision=distinction[0],
            distinction_recall=distinction[1],
        )

    def _distinction(
        self, states: Indices, counts: NDArray[np.float64], answers: Indices, budget: SearchBudget
    ) -> tuple[float | None, float | None]:
        """Precision and recall over pairs of classes of words that reach different states."""
        num_states = len(self._machine.delta)
        totals = np.zeros((3, num_states, num_states))  # weights, precision, recall
        step = max(1, PAIRS_AT_ONCE // answers.size)
        for first in range(0, len(states), step):
            if budget.spent:
                break
            budget.use(8 * MULTIPLICATION * step * answers.size)
            own = slice(first, first + step)
            ones, twos = map(
                np.ravel, np.meshgrid(np.arange(len(states))[own], np.arange(len(states)))
            )
            ones, twos = ones[states[ones] < states[twos]], twos[states[ones] < states[twos]]
            pair = states[ones], states[twos]
            world = _differ(self._labels[pair[0]], self._labels[pair[1]])
            network = _differ(answers[ones], answers[twos])
            wanted = self.suffixes.boundary(world)
            told = wanted.any(1)
            given = self.suffixes.boundary(network)
            precision = np.where(given.any(1), _share(given & world, given), 1.0)
            weights = counts[ones] * counts[twos] * told
            recall = _share(wanted & network, wanted)
            for total, values in zip(
                totals, (weights, weights * precision, weights * recall), strict=True
            ):
                np.add.at(total, pair, values)
        told_apart = totals[0] > 0
        if not told_apart.any():
            return None, None
        means = totals[1:, told_apart] / totals[0, told_apart]
        return float(means[0].mean()), float(means[1].mean())


def _differ(ones: Indices, twos: Indices) -> Booleans:
    """Where answers [N, M] differ that are asked for in both."""
    differ: Booleans = (ones != twos) & (ones != UNASKED) & (twos != UNASKED)
    return differ


def _share(part: Booleans, whole: Booleans) -> NDArray[np.float64]:
    """The share of every row: [N] of [N, M]; 0 for rows without any."""
    shares: NDArray[np.float64] = part.sum(1) / np.maximum(whole.sum(1), 1)
    return shares


def _distinguishing_length(machine: Machine) -> int:
    """The length of suffixes that tell apart every two states that any suffix tells apart."""
    automaton, delta = machine.automaton, machine.delta
    labels = np.where(automaton.scored, automaton.output, UNASKED)
    now = _differ(labels[:, None], labels[None, :])
    known, length = np.zeros_like(now), 0
    while True:
        following = leading_to(delta.T, now | known)
        if (following <= known).all():
            return max(1, length)
        known, length = known | following, length + 1


def _all_words(machine: Machine, most: int) -> list[Indices]:
    """All words that are drawn, length by length from 0, as long as they are no more than `most`.

    Of the length that would exceed it there are none.
    """
    words = [np.zeros((1, 0), np.int64)]
    states = np.array([machine.automaton.start])
    total = 1
    while True:
        targets = machine.delta[states]
        parents, symbols = np.nonzero(machine.live[targets])
        total += len(parents)
        if total > most or not len(parents):
            return words
        words.append(np.column_stack([words[-1][parents], symbols]))
        states = targets[parents, symbols]


def _random_words(
    machine: Machine, number: int, longest: int, generator: np.random.Generator
) -> list[Indices]:
    """Random words that are drawn, of 1 to `longest` symbols, as tables of one length each."""
    lengths = np.sort(generator.integers(1, longest + 1, size=number))
    words = np.zeros((number, longest), np.int64)
    states = np.full(number, machine.automaton.start)
    for position in range(longest):
        live = machine.live[machine.delta[states]]
        words[:, position] = (generator.random(live.shape) * live).argmax(1)
        states = machine.delta[states, words[:, position]]
    return [words[lengths == length, :length] for length in np.unique(lengths).tolist()]
