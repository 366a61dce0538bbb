"""Every word up to a length, and the least certain ones, by the tree of the states they lead to.

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

*The least certain words.* Among longer words the shortest wrong answer is sought by a tree whose
levels are cut down to the words whose right label has the least margin, and some of the others.

B words, D numbers of a state, S states and V symbols of the automaton.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.evidence.kinds.exhaustive import Exhaustive
from statetrack.evidence.long_words import margins_of
from statetrack.evidence.records import Failure, SearchBudget
from statetrack.evidence.subject import NO_ANSWER, Subject
from statetrack.evidence.words import Word
from statetrack.sources import UNCOUNTABLE, LengthDistribution

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
    budget: SearchBudget,
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

    def build(rows: int) -> _GrownTree:
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
        words=_num_words(subject, tree.length),
        forbids=not bool(automaton.drawable.all()),
        closed=tree.reason == "closed",
        states=tree.states,
        tolerance=tolerance,
        failure=tree.failure,
        reason=tree.reason,
        complete=tree.reason != "time",
        seconds=time.monotonic() - started,
    )


@dataclass
class _GrownTree:
    """What was found: `length` is the depth up to which every answer is right."""

    length: int
    states: int
    failure: Failure | None
    reason: str


@dataclass(frozen=True)
class _Level:
    """Nodes of one depth: the model's state, the automaton's [N], and the words [N, depth]."""

    state: Any
    reached: Indices
    words: Indices

    @classmethod
    def first(cls, subject: Subject) -> _Level:
        """The node of the empty word."""
        return cls(subject.first(1), np.array([subject.automaton.start]), np.zeros((1, 0), int))

    @classmethod
    def joined(cls, subject: Subject, levels: list[_Level]) -> _Level:
        """The nodes of several batches."""
        if len(levels) == 1:
            return levels[0]
        return cls(
            subject.join([each.state for each in levels]),
            np.concatenate([each.reached for each in levels]),
            np.concatenate([each.words for each in levels]),
        )

    def take(self, subject: Subject, rows: Indices) -> _Level:
        """Some of the nodes."""
        return _Level(
            subject.take(self.state, subject.tensor(rows)), self.reached[rows], self.words[rows]
        )

    def deeper(self, subject: Subject, rows: int = ROWS) -> Iterator[tuple[Tensor, _Level]]:
        """Logits [B, C] and nodes of all words one symbol longer, in their order, in batches."""
        automaton = subject.automaton
        every = np.nonzero(automaton.drawable[self.reached])
        for first in range(0, len(every[0]), rows):
            parents, symbols = (each[first : first + rows] for each in every)
            before = subject.take(self.state, subject.tensor(parents))
            logits, state = subject.step(symbols, before)
            reached = automaton.delta[self.reached[parents], symbols]
            words = np.column_stack([self.words[parents], symbols])
            yield logits, _Level(state, reached, words)


class _Met(Protocol):
    """The nodes that were met."""

    def add(self, state: Any, reached: Indices, room: int) -> Indices:
        """Which nodes of a batch are new, in their order, at most `room` of them; adds these."""


def _grown(
    subject: Subject,
    budget: SearchBudget,
    met: _Met,
    rows: int,
    max_states: int,
    max_length: int | None,
) -> _GrownTree:
    """The tree, level by level, until something ends it."""
    automaton = subject.automaton
    level = _Level.first(subject)
    room_of_a_level = max(1, MOST_BYTES // subject.bits(level.state)[0].nbytes)
    met.add(level.state, level.reached, 1)
    tree = _GrownTree(0, 1, None, "")
    while tree.length != max_length:
        budget.say(f"all words of {tree.length + 1} symbols, {tree.states:,} states")
        kept: list[_Level] = []
        full, room = False, min(max_states - tree.states, room_of_a_level)
        for logits, nodes in level.deeper(subject, rows):
            if budget.spent:
                tree.reason = "time"
                return tree
            answers, labels = subject.answers_of(logits), automaton.output[nodes.reached]
            wrong = automaton.scored[nodes.reached] & (answers != labels)
            if wrong.any():
                place = int(wrong.argmax())
                word, answer = tuple(nodes.words[place].tolist()), int(answers[place])
                given = None if answer == NO_ANSWER else answer
                tree.failure = Failure(word, (), len(word), int(labels[place]), given)
                tree.reason = "failure"
                return tree
            if full:
                continue
            new = met.add(nodes.state, nodes.reached, room + 1)
            full = len(new) > room
            if not full and len(new):
                room -= len(new)
                tree.states += len(new)
                kept.append(nodes.take(subject, new))
        tree.length += 1
        if full or not kept:
            tree.reason = "states" if full else "closed"
            return tree
        level = _Level.joined(subject, kept)
    tree.reason = "length"
    return tree


def _num_words(subject: Subject, length: int) -> int | None:
    if length == 0:
        return 0
    count = subject.automaton.count_words(LengthDistribution(1, length))
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
        self._met: dict[int, Tensor] = {}  # by state of the automaton: [N, D]

    def add(self, state: Any, reached: Indices, room: int) -> Indices:
        vectors = self._subject.vectors(state).double()
        if self._subject.scale_invariant:
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


# --- the least certain words ---


@dataclass(frozen=True)
class SearchedWords:
    """What the search found: a wrongly answered word, or None, of at most `longest` symbols.

    `words` were read; all words up to `all_up_to` symbols, equal states merged.
    """

    failing: Word | None
    words: int
    longest: int
    all_up_to: int
    complete: bool


def search_short_words(
    subject: Subject, *, longest: int, beam: int, budget: SearchBudget, draw: np.random.Generator
) -> SearchedWords:
    """Search words of rising length, until one is answered wrongly. The model needs a state.

    As long as the words fit into the beam, all of them are read, those with equal states as one;
    from then on those whose right label has the least margin, and some drawn from the others.
    """
    automaton = subject.automaton
    level = _Level.first(subject)
    num_read, all_up_to, pruned = 0, 0, False
    for length in range(1, longest + 1):
        if budget.spent:
            return SearchedWords(None, num_read, length - 1, all_up_to, complete=False)
        margins, parts = [], []
        for logits, nodes in level.deeper(subject):
            labels = automaton.output[nodes.reached, None]
            margins.append(margins_of(logits.unsqueeze(1), labels)[:, 0])
            parts.append(nodes)
        margin, level = np.concatenate(margins), _Level.joined(subject, parts)
        num_read += len(margin)
        scored = automaton.scored[level.reached]
        wrong = np.flatnonzero(~(margin > 0) & scored)
        if len(wrong):
            found = tuple(level.words[wrong[0]].tolist())
            right_to = all_up_to if pruned else length - 1
            return SearchedWords(found, num_read, length, right_to, complete=True)
        kept = _Bits(subject).add(level.state, level.reached, len(margin))
        if len(kept) > beam:
            margin = np.where(scored, margin, math.inf)
            kept, pruned = _least_certain(kept, margin, level.reached, beam, draw), True
        if not pruned:
            all_up_to = length
        level = level.take(subject, kept)
    return SearchedWords(None, num_read, longest, all_up_to, complete=True)


def _least_certain(
    rows: NDArray[np.int64],
    margin: NDArray[np.float64],
    states: NDArray[np.int64],
    beam: int,
    draw: np.random.Generator,
) -> NDArray[np.int64]:
    """Three quarters of the beam by margin, the rest drawn from the others.

    The least certain word of every state comes before the second of any: in some states a margin
    is large whatever the model has got wrong.
    """
    ordered = rows[np.argsort(margin[rows], kind="stable")]
    grouped = np.argsort(states[ordered], kind="stable")
    counts = np.unique(states[ordered], return_counts=True)[1]
    ranks = np.empty(len(ordered), np.int64)
    ranks[grouped] = np.arange(len(ordered)) - np.repeat(np.cumsum(counts) - counts, counts)
    ordered = ordered[np.argsort(ranks, kind="stable")]
    first = 3 * beam // 4
    others = ordered[first:]
    return np.concatenate([ordered[:first], draw.permutation(others)[: beam - first]])
