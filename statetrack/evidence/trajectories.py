"""States along one word again and again: whether a model keeps those apart that it should.

A word v, here of one symbol if there is any such, permutes the states R that it leads back to:
all of them if it is invertible, those of a memory if it leaves the memory as it is. So the words
w_q v^t, with w_q a shortest word to q in R, are in different states after the same t, for every t.
Grazzi et al. (2024, arXiv:2411.12537, Figure 2 and Theorem 1) show the case of parity: where no
eigenvalue of A(1) is negative, the states along 1 1 1 1 ... converge, or grow in one direction.

B words, T time, D numbers of a state.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from statetrack.algebra import Machine, needed_machine
from statetrack.errors import SettingsError
from statetrack.evaluation import CHUNK
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.kinds.trajectory import Along, Traced, Trajectory
from statetrack.evidence.subject import Subject
from statetrack.evidence.words import Word, shortest_words
from statetrack.sources import Floats

TIMES = (1, 10, 100, 1000)
"""How often a word was read where states are compared."""

LONGEST, MOST_WORDS, MOST_STATES = 3, 16, 8
"""The longest words that are repeated, how many of them, and how many states along each."""

TRACED, MOST_TRACED, TRACED_WORDS = 40, 4, 3
"""So many repetitions of so many words are kept, of those whose states end nearest."""


@dataclass(frozen=True)
class _Start:
    """A state that a word leads back to, and a shortest word to it."""

    again: Word
    state: int
    word: Word


class _Course:
    """The states of one word after so many repetitions, and its first wrong answer."""

    def __init__(self) -> None:
        self.rows: dict[int, Floats] = {}
        self.states: dict[int, int] = {}
        self.first_error: int | None = None


Seen = Mapping[_Start, _Course]


def find_trajectory(
    subject: Subject, *, budget: SearchBudget, seed: int = 0, times: Sequence[int] = TIMES
) -> Trajectory:
    """How far apart a model keeps states along words that are read as often as the last of `times`.

    Nothing is drawn: `seed` changes nothing. Raises `SettingsError` where the model has no state,
    or none of its own for every word, where its state grows, and where no short word keeps two
    states apart.
    """
    began = time.monotonic()
    subject.require_state("a trajectory")
    subject.require_constant_size()
    subject.counts_for(budget)
    machine = needed_machine(subject.automaton)
    starts = _starts(machine)
    if not starts:
        raise SettingsError(
            f"every word of up to {LONGEST} symbols that can be repeated leads all states to one"
        )
    groups: dict[tuple[int, int], list[_Start]] = defaultdict(list)
    for start in starts:
        groups[len(start.word), len(start.again)].append(start)
    seen = {start: _Course() for start in starts}
    complete = [_read(subject, machine, group, seen, times, budget) for group in groups.values()]
    words = list(dict.fromkeys(start.again for start in starts))
    found = [_along(word, machine, seen, times) for word in words]
    nearest = sorted(found, key=lambda each: each.apart[-1][1] if each.apart else 0.0)
    drawn = {each.word for each in nearest[:TRACED_WORDS]}
    return Trajectory(
        words=tuple(found),
        traced=tuple(
            one for word in words if word in drawn for one in _traced(word, machine, seen)
        ),
        complete=all(complete),
        seconds=time.monotonic() - began,
    )


def _starts(machine: Machine) -> list[_Start]:
    """States that words lead back to, where they are several: of the shortest words with any."""
    shortest = shortest_words(machine.automaton)
    for length in range(1, LONGEST + 1):
        found: dict[Word, list[_Start]] = {}
        for word in itertools.product(range(machine.automaton.num_symbols), repeat=length):
            states = [int(each) for each in machine.recurring(word) if int(each) in shortest]
            if len(states) > 1:
                kept = states[:MOST_STATES]
                found[word] = [_Start(word, state, shortest[state]) for state in kept]
            if len(found) == MOST_WORDS:
                break
        if found:
            return [start for starts in found.values() for start in starts]
    return []


def _read(
    subject: Subject,
    machine: Machine,
    starts: Sequence[_Start],
    seen: Seen,
    times: Sequence[int],
    budget: SearchBudget,
) -> bool:
    """Read words w v^t, all w of one length and all v of one; whether all of it was read."""
    automaton = machine.automaton
    state: Any = subject.first(len(starts))
    before = np.array([start.word for start in starts], np.int64)
    if before.shape[1]:
        _, state = subject.scan(before, state)
    again = np.array([start.again for start in starts])
    now = np.array([start.state for start in starts])
    at_once = max(1, CHUNK // again.size)
    done = 0
    for wanted in sorted({*range(min(TRACED, times[-1]) + 1), *times}):
        while done < wanted:
            if done >= TRACED and budget.spent:
                return False
            count = min(at_once, wanted - done)
            symbols = np.tile(again, count)
            logits, state = subject.scan(symbols, state)
            for step, answers in enumerate(subject.answers_of(logits).T):
                now = machine.delta[now, symbols[:, step]]
                wrong = (answers != automaton.output[now]) & automaton.scored[now]
                for row in np.flatnonzero(wrong):
                    one = seen[starts[int(row)]]
                    one.first_error = one.first_error or done * again.shape[1] + step + 1
            done += count
        rows = subject.compared(subject.vectors(state))
        for start, row, reached in zip(starts, rows, now, strict=True):
            seen[start].rows[wanted] = row
            seen[start].states[wanted] = int(reached)
    return True


def _along(word: Word, machine: Machine, seen: Seen, times: Sequence[int]) -> Along:
    own = [one for start, one in seen.items() if start.again == word]
    compared = _compared(own)
    read = [each for each in times if each in compared]
    errors = [one.first_error for one in own if one.first_error is not None]
    return Along(
        word=word,
        states=len(machine.recurring(word)),
        followed=len(own),
        apart=tuple((t, _least_distance(np.stack([one.rows[t] for one in own]))) for t in read),
        first_error=min(errors, default=None),
    )


def _compared(courses: Sequence[_Course]) -> list[int]:
    """After how many repetitions the states of all words are known, and finite."""
    return [
        each
        for each in courses[0].rows
        if all(each in one.rows and np.isfinite(one.rows[each]).all() for one in courses)
    ]


def _least_distance(rows: Floats) -> float:
    """The least distance of two rows, over the length of the longest; 0 where all are zero."""
    rows = np.ldexp(rows, -np.frexp(np.abs(rows).max())[1])  # exact, and squares are finite
    longest = float(np.linalg.norm(rows, axis=1).max())
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    least = float(distances[np.triu_indices(len(rows), 1)].min())
    return least / longest if longest > 0 else 0.0


def _traced(word: Word, machine: Machine, seen: Seen) -> list[Traced]:
    """Some words by repetitions, on the line along which their states differ most."""
    own = [one for start, one in seen.items() if start.again == word][:MOST_TRACED]
    times = [each for each in _compared(own) if each <= TRACED]
    rows = np.stack([[one.rows[each] for each in times] for one in own])
    flat = rows.reshape(-1, rows.shape[-1])
    line = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)[2][0]
    line = line * (np.sign(line[np.abs(line).argmax()]) or 1.0)
    names, symbols = machine.automaton.states, machine.automaton.symbols
    return [
        Traced(
            word=" ".join(symbols[symbol] for symbol in word),
            states=tuple(names[one.states[each]] for each in times),
            places=tuple(float(f"{value:.4g}") for value in along @ line),
        )
        for one, along in zip(own, rows, strict=True)
    ]
