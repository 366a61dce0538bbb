"""Every word up to a length, by the tree of the states that a model can reach.

A node of the tree is a state of the automaton and a state of the model, reached by the same word.
The answers to all words of n symbols are those at the edges from the nodes of depth n - 1. Where
two words lead to equal nodes, every continuation is answered alike, so only the word that is
shorter, or comes first, is continued. Breadth first, with the symbols in their order, the first
wrong answer then ends the shortest word that is answered wrongly, and the first of these in the
order of the symbols: merging never removes it, for the word that replaces a prefix of it would
make a wrong word that is shorter, or of the same length and earlier.

*What is exact.* With tolerance 0, nodes are equal where every bit of the model's state is. If no
edge leads to a new node, the tree is closed: every word of any length leads through nodes that were
met, over edges whose answers are right. Rounding may depend on how many words are read at once, so
a tree that closes in batches is built again from words that are read alone; closed means that this
one closed, too. It is a proof about the model as it is computed here, symbol by symbol by
`Subject.step`, in its own precision, on this machine: another machine, or a scan over many symbols
at once, may round otherwise. Models whose operators do not contract keep the rounding of every
step, so that their states rarely repeat bit by bit, and a state that counts positions never does.

*What is heuristic.* With a tolerance, nodes are equal where the automaton's states are, and the
model's are no further apart than that share of the size of the one that was met first. Nothing
then says that continuations are answered alike, so that a wrong word may be missed, and the one
that is found need not be the shortest. States of a scale-invariant linear model are
compared after division by their norm: the argmax does not depend on it, but its rounding does, so
that is done with a tolerance only.

B words, D numbers of a state, S states and V symbols of the automaton.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.evidence.kinds.exhaustive import Exhaustive
from statetrack.evidence.records import Failure
from statetrack.evidence.searches import Budget
from statetrack.evidence.subject import NO_ANSWER, Subject
from statetrack.models import LinearModel
from statetrack.sources import UNCOUNTABLE, Automaton, LengthDistribution

Indices = NDArray[np.int64]

ROWS = 4096
"""Words that are read at once."""

MOST_STATES = 2**18
"""Most nodes that are met, by default."""

MOST_BYTES = 2**28
"""Most bytes of the model's states of one depth."""


def find_exhaustive(
    subject: Subject,
    *,
    budget: Budget,
    seed: int = 0,
    tolerance: float = 0.0,
    max_states: int = MOST_STATES,
    max_length: int | None = None,
) -> Exhaustive:
    """Read every word that the task draws, up to the greatest length that the caps allow.

    Nothing is drawn at random: `seed` is that of every kind of evidence, and changes nothing.
    Raises `SettingsError` for a model without a state.
    """
    subject.require_state("reading every word")
    started = time.monotonic()

    def build(rows: int) -> _Tree:
        met: _Met = _Bits(subject) if tolerance == 0 else _Neighbourhoods(subject, tolerance)
        return _grown(subject, budget, met, rows, max_states, max_length)

    tree = build(ROWS)
    if tree.reason == "closed" and tolerance == 0:
        alone = build(1)
        if alone.reason in ("closed", "failure"):
            tree = alone
        else:
            tree.reason = "time" if alone.reason == "time" else "alone"
    automaton = subject.automaton
    return Exhaustive(
        length=tree.length,
        words=_num_words(automaton, tree.length),
        forbids=not bool(automaton.drawable.all()),
        closed=tree.reason == "closed",
        states=tree.states,
        tolerance=tolerance,
        failure=tree.failure,
        reason=tree.reason,
        complete=tree.reason != "time",
        seconds=time.monotonic() - started,
    )


def shortest_failure(
    subject: Subject, *, max_length: int, max_states: int = MOST_STATES
) -> Failure | None:
    """The shortest word with a wrong answer, first in the order of the symbols; None to a length.

    Raises `SettingsError` where there are too many states to tell.
    """
    unlimited = Budget(float("inf"))
    found = find_exhaustive(subject, budget=unlimited, max_states=max_states, max_length=max_length)
    assert found.failure is not None or found.reason != "states", found
    return found.failure


@dataclass
class _Tree:
    """What was found: `length` is the depth up to which every answer is right."""

    length: int
    states: int
    failure: Failure | None
    reason: str


@dataclass(frozen=True)
class _Level:
    """The nodes of one depth: the model's state, the automaton's [N], and the words [N, depth]."""

    state: Any
    reached: Indices
    words: Indices


class _Met(Protocol):
    """The nodes that were met."""

    def add(self, state: Any, reached: Indices, room: int) -> Indices:
        """Which nodes of a batch are new, in their order, at most `room` of them; adds these."""


def _grown(
    subject: Subject,
    budget: Budget,
    met: _Met,
    rows: int,
    max_states: int,
    max_length: int | None,
) -> _Tree:
    """The tree, level by level, until something ends it."""
    automaton = subject.automaton
    level = _Level(subject.first(1), np.array([automaton.start]), np.zeros((1, 0), np.int64))
    room_of_a_level = max(1, MOST_BYTES // subject.bits(level.state)[0].nbytes)
    met.add(level.state, level.reached, 1)
    tree = _Tree(0, 1, None, "")
    while tree.length != max_length:
        budget.say(f"all words of {tree.length + 1} symbols, {tree.states:,} states")
        deeper: list[_Level] = []
        full, room = False, min(max_states - tree.states, room_of_a_level)
        for parents, symbols in _edges(automaton, level, rows):
            if budget.spent:
                tree.reason = "time"
                return tree
            before = subject.take(level.state, subject.tensor(parents))
            logits, state = subject.step(symbols, before)
            answers, reached = (
                subject.answers_of(logits),
                automaton.delta[level.reached[parents], symbols],
            )
            wrong = automaton.scored[reached] & (answers != automaton.output[reached])
            if wrong.any():
                place = int(wrong.argmax())
                word = (*level.words[parents[place]].tolist(), int(symbols[place]))
                tree.failure = _failure(word, automaton, int(reached[place]), int(answers[place]))
                tree.reason = "failure"
                return tree
            if full:
                continue
            new = met.add(state, reached, room + 1)
            if len(new) > room:
                full = True
                continue
            room -= len(new)
            tree.states += len(new)
            if len(new):
                words = np.column_stack([level.words[parents[new]], symbols[new]])
                kept = subject.take(state, subject.tensor(new))
                deeper.append(_Level(kept, reached[new], words))
        tree.length += 1
        if full:
            tree.reason = "states"
            return tree
        if not deeper:
            tree.reason = "closed"
            return tree
        level = _joined(subject, deeper)
    tree.reason = "length"
    return tree


def _edges(automaton: Automaton, level: _Level, rows: int) -> Iterator[tuple[Indices, Indices]]:
    """The parents and symbols of all edges from a level, in the order of the words, in batches."""
    parents, symbols = np.nonzero(automaton.drawable[level.reached])
    for first in range(0, len(parents), rows):
        yield parents[first : first + rows], symbols[first : first + rows]


def _joined(subject: Subject, levels: list[_Level]) -> _Level:
    return _Level(
        subject.join([each.state for each in levels]),
        np.concatenate([each.reached for each in levels]),
        np.concatenate([each.words for each in levels]),
    )


def _failure(word: tuple[int, ...], automaton: Automaton, reached: int, answer: int) -> Failure:
    label = int(automaton.output[reached])
    return Failure(word, (), len(word), label, None if answer == NO_ANSWER else answer)


def _num_words(automaton: Automaton, length: int) -> int | None:
    if length == 0:
        return 0
    count = automaton.count_words(LengthDistribution(1, length))
    return None if count == UNCOUNTABLE else count


class _Bits:
    """Nodes that are equal where all bits are, each kept as a 256-bit hash of them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._met: set[bytes] = set()

    def add(self, state: Any, reached: Indices, room: int) -> Indices:
        rows, shared = self._subject.bits(state)
        whole = np.hstack([reached.astype("<i8")[:, None].view(np.uint8), rows])
        new: list[int] = []
        for place, row in enumerate(whole):
            if len(new) == room:
                break
            digest = hashlib.blake2b(shared + row.tobytes(), digest_size=32).digest()
            if digest not in self._met:
                self._met.add(digest)
                new.append(place)
        return np.array(new, np.int64)


class _Neighbourhoods:
    """Nodes that are equal where the model's states are as near as a tolerance says."""

    def __init__(self, subject: Subject, tolerance: float) -> None:
        self._subject = subject
        self._tolerance = tolerance
        model = subject.model
        self._normalised = isinstance(model, LinearModel) and model.scale_invariant
        self._met: dict[int, Tensor] = {}  # by state of the automaton: [N, D]

    def add(self, state: Any, reached: Indices, room: int) -> Indices:
        vectors = self._subject.vectors(state).double()
        if self._normalised:
            vectors = vectors / vectors.norm(dim=1, keepdim=True)
        new: list[int] = []
        for automaton_state in np.unique(reached):
            places = np.flatnonzero(reached == automaton_state)
            own = vectors[torch.from_numpy(places)]
            known = self._met.get(int(automaton_state), own[:0])
            unknown = places[~self._near(own, known).any(1).numpy()]
            while len(unknown):
                first, rest = vectors[unknown[:1]], vectors[unknown]
                new.append(int(unknown[0]))
                known = torch.cat([known, first])
                unknown = unknown[~self._near(rest, first).any(1).numpy()]
            self._met[int(automaton_state)] = known
        return np.array(sorted(new)[:room], np.int64)

    def _near(self, vectors: Tensor, known: Tensor) -> Tensor:
        """Whether each of vectors [N, D] is near each of known ones [M, D]: [N, M]."""
        exact = "donot_use_mm_for_euclid_dist"  # products would lose half of the digits
        apart = torch.cdist(vectors, known, compute_mode=exact)
        near: Tensor = apart <= self._tolerance * known.norm(dim=1)
        return near
