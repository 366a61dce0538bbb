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
one closed, too. For the same reason words whose right label leads by less than `NARROW` are also
read alone, symbol by symbol and at once, and fail where one of the answers is wrong. The others are
right as they were read: in batches, symbol by symbol. All that is proven about the model as it is
computed here, by `Subject.step`, in its own precision, on this machine: another machine, or a scan
over many symbols at once, may round otherwise. Models whose operators do not contract keep the
rounding of every step, so that their states rarely repeat bit by bit, and a state that counts
positions never does.

*What is heuristic.* With a tolerance, nodes are equal where the automaton's states are, and the
model's are no further apart than that share of the size of the one that was met first. Nothing
then says that continuations are answered alike, so that a wrong word may be missed, and the one
that is found need not be the shortest. States of a scale-invariant linear model are
compared after division by their norm: the argmax does not depend on it, but its rounding does, so
that is done with a tolerance only.

*The least certain words.* Among longer words the shortest wrong answer is sought by a tree whose
levels are cut down to the words whose right label has the least margin in every state.

*Words on which errors add up.* Beside the states of a rounded model, those of the same model in
float64 are followed, and levels are cut down to the words whose two states are furthest apart. A
word along which rounding always errs to one side fails after about the margin over the unit
roundoff, where random words fail after about the square of that, and powers of short words never,
since their states come back to themselves. No state is kept twice, or the search would not leave
those that are far off and lead nowhere.

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

from statetrack.errors import SettingsError
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.kinds.exhaustive import Exhaustive
from statetrack.evidence.long_words import margins_of
from statetrack.evidence.records import Failure
from statetrack.evidence.subject import NO_ANSWER, Subject
from statetrack.evidence.words import Word
from statetrack.sources import UNCOUNTABLE, LengthDistribution

Indices = NDArray[np.int64]

ROWS = 4096
"""Words that are read at once."""

NARROW = 2.0**-10
"""The margin, as a share of the largest logit of a batch, up to which words are also read alone."""

MOST_STATES = 2**18
"""Most nodes that are met, by default."""

MOST_BYTES = 2**28
"""Most bytes of the model's states of one depth."""

PROJECTIONS, CELL = 3, 0.1
"""On how many random lines states are compared, in cells of which part of their spread there."""

EVERY = 4
"""After so many of the least certain words of a state, the most certain one is kept, too."""


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
    subject.counts_for(budget)
    started = time.monotonic()

    def build(rows: int) -> _GrownTree:
        met: _Met = _Bits(subject) if tolerance == 0 else _Neighbourhoods(subject, tolerance)
        return _grown(subject, budget, met, rows, max_states, max_length)

    tree = batched = build(ROWS)
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
        alone=tree.alone,
        read=f"{str(subject.dtype).removeprefix('torch.')} on {subject.device.type}",
        one_by_one=tree is not batched,
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
    alone: int = 0


@dataclass(frozen=True)
class _Trail:
    """How words were continued: of each its last symbol, and the place of the word before it."""

    parents: Indices
    symbols: Indices
    before: _Trail | None

    def word(self, row: int) -> Word:
        """The word in a row."""
        symbols: list[int] = []
        trail: _Trail | None = self
        while trail is not None:
            symbols.append(int(trail.symbols[row]))
            row, trail = int(trail.parents[row]), trail.before
        return tuple(reversed(symbols))


@dataclass(frozen=True)
class _Level:
    """Nodes of one depth: the model's state, the automaton's [N], and the way to them."""

    state: Any
    reached: Indices
    trail: _Trail | None

    @classmethod
    def first(cls, subject: Subject) -> _Level:
        """The node of the empty word."""
        return cls(subject.first(1), np.array([subject.automaton.start]), None)

    @classmethod
    def joined(cls, subject: Subject, levels: list[_Level]) -> _Level:
        """The nodes of several batches, which continue the same words."""
        if len(levels) == 1:
            return levels[0]
        trails = [each.trail for each in levels if each.trail is not None]
        return cls(
            subject.join([each.state for each in levels]),
            np.concatenate([each.reached for each in levels]),
            _Trail(
                np.concatenate([each.parents for each in trails]),
                np.concatenate([each.symbols for each in trails]),
                trails[0].before,
            ),
        )

    def word(self, row: int) -> Word:
        """The word that leads to a node."""
        return () if self.trail is None else self.trail.word(row)

    def take(self, subject: Subject, rows: Indices) -> _Level:
        """Some of the nodes."""
        trail = self.trail
        if trail is not None:
            trail = _Trail(trail.parents[rows], trail.symbols[rows], trail.before)
        return _Level(subject.take(self.state, subject.tensor(rows)), self.reached[rows], trail)

    def deeper(self, subject: Subject, rows: int = ROWS) -> Iterator[tuple[Tensor, _Level]]:
        """Logits [B, C] and nodes of all words one symbol longer, in their order, in batches."""
        automaton = subject.automaton
        every = np.nonzero(automaton.drawable[self.reached])
        for first in range(0, len(every[0]), rows):
            parents, symbols = (each[first : first + rows] for each in every)
            before = subject.take(self.state, subject.tensor(parents))
            logits, state = subject.step(symbols, before)
            reached = automaton.delta[self.reached[parents], symbols]
            yield logits, _Level(state, reached, _Trail(parents, symbols, self.trail))


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
    room_of_a_level = max(1, MOST_BYTES // max(1, subject.bits(level.state)[0].nbytes))
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
            scored = automaton.scored[nodes.reached]
            wrong = scored & (answers != labels)
            narrow = scored & ~wrong & _narrow(logits, labels)
            for place in np.flatnonzero(narrow).tolist():
                if wrong[:place].any() or budget.spent:
                    break
                tree.alone += 1
                answers[place] = _answer_alone(
                    subject, np.array(nodes.word(place)), int(labels[place])
                )
                wrong[place] = answers[place] != labels[place]
            if wrong.any():
                place = int(wrong.argmax())
                word, answer = nodes.word(place), int(answers[place])
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


def _narrow(logits: Tensor, labels: Indices) -> NDArray[np.bool_]:
    """Where the right one of logits [B, C] leads by little, beside the largest of the batch."""
    right = torch.from_numpy(labels).to(logits.device)[:, None]
    leads = logits.gather(1, right) - logits.scatter(1, right, -math.inf).amax(1, keepdim=True)
    found: NDArray[np.bool_] = (leads <= NARROW * logits.abs().max())[:, 0].cpu().numpy()
    return found


def _answer_alone(subject: Subject, word: Indices, label: int) -> int:
    """The answer to a word that is read alone, at once and symbol by symbol: the wrong one."""
    at_once = int(subject.answers(word[None])[0, -1])
    state = subject.first(1)
    for symbol in word:
        logits, state = subject.step(np.array([symbol]), state)
    return at_once if at_once != label else int(subject.answers_of(logits)[0])


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

    `words` were read. A search that is not `complete` was ended by its budget.
    """

    failing: Word | None
    words: int
    longest: int
    complete: bool


def search_short_words(
    subject: Subject, *, longest: int, beam: int, budget: SearchBudget, seed: int = 0
) -> SearchedWords:
    """Search words of rising length, until one is answered wrongly. The model needs a state.

    As long as the words fit into the beam, all of them are read; from then on the least certain
    ones of every state of the automaton, of which none is like another (`_Strata`).
    """
    automaton, of_any_scale = subject.automaton, subject.scale_invariant
    level, num_read = _Level.first(subject), 0
    size = subject.bits(level.state)[0].nbytes * automaton.num_symbols
    strata = _Strata(subject, min(beam, max(1, MOST_BYTES // max(1, size))), seed)
    for length in range(1, longest + 1):
        if budget.spent:
            return SearchedWords(None, num_read, length - 1, complete=False)
        margins, parts = [], []
        for logits, nodes in level.deeper(subject):
            labels = automaton.output[nodes.reached, None]
            found = margins_of(logits.unsqueeze(1), labels, of_any_scale=of_any_scale)[:, 0]
            margins.append(np.where(automaton.scored[nodes.reached], found, math.inf))
            parts.append(nodes)
        margin, level = np.concatenate(margins), _Level.joined(subject, parts)
        num_read += len(margin)
        wrong = np.flatnonzero(~(margin > 0))
        if len(wrong):
            return SearchedWords(level.word(int(wrong[0])), num_read, length, complete=True)
        if len(margin) > strata.beam:
            level = level.take(subject, strata.chosen(level, margin))
    return SearchedWords(None, num_read, longest, complete=True)


def search_drifting_words(
    subject: Subject, exact: Subject, *, longest: int, beam: int, budget: SearchBudget
) -> SearchedWords:
    """Search words along which the states of a model leave those of `exact`, the same model.

    Of all words one symbol longer, those are kept whose states are furthest apart, as a share of
    their size, and no state twice. Both have states.
    """
    automaton, met, num_read = subject.automaton, _Bits(subject), 0
    level, exactly = _Level.first(subject), exact.first(1)
    for length in range(1, longest + 1):
        parents, symbols = np.nonzero(automaton.drawable[level.reached])
        if budget.spent or not len(parents):
            return SearchedWords(None, num_read, length - 1, complete=not len(parents))
        logits, state = subject.step(symbols, subject.take(level.state, subject.tensor(parents)))
        _, exactly = exact.step(symbols, exact.take(exactly, exact.tensor(parents)))
        reached = automaton.delta[level.reached[parents], symbols]
        level = _Level(state, reached, _Trail(parents, symbols, level.trail))
        num_read += len(symbols)
        wrong = automaton.scored[reached] & (
            subject.answers_of(logits) != automaton.output[reached]
        )
        if wrong.any():
            found = level.word(int(wrong.argmax()))
            return SearchedWords(found, num_read, length, complete=True)
        order = np.argsort(-_drift(subject, state, exact, exactly), kind="stable")
        level = level.take(subject, order)
        new = met.add(level.state, level.reached, beam)
        level = level.take(subject, new)
        exactly = exact.take(exactly, exact.tensor(order[new]))
    return SearchedWords(None, num_read, longest, complete=True)


def _drift(subject: Subject, state: Any, exact: Subject, exactly: Any) -> NDArray[np.float64]:
    """How far states [B] are from exact ones, as a share of their size."""
    one, other = subject.vectors(state).double(), exact.vectors(exactly).double()
    size = other.norm(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    if subject.scale_invariant or exact.scale_invariant:
        one = one / one.norm(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        other, size = other / size, torch.ones_like(size)
    found: NDArray[np.float64] = ((one - other).norm(dim=1) / size[:, 0]).cpu().numpy()
    return found


class _Strata:
    """The least certain nodes of a level, as many of every state of the automaton as there is room.

    The least certain node of every state comes before the second of any: in some states a margin is
    large whatever the model has got wrong. What drifts towards a wrong label is most certain where
    that is right for once, so that some of the most certain nodes are taken, too. Of nodes of one
    state whose model states are alike, only the least certain is taken, as their continuations will
    be alike: they are where a few random projections fall into the same cells, whose width is a
    part of the spread in the level.
    """

    def __init__(self, subject: Subject, beam: int, seed: int) -> None:
        self.beam = beam
        self._subject = subject
        self._seed = seed
        self._projections: Tensor | None = None

    def chosen(self, level: _Level, margin: NDArray[np.float64]) -> Indices:
        """The rows of the chosen nodes."""
        order = np.argsort(margin, kind="stable")
        keys = np.column_stack([level.reached, self._cells(level.state)])[order]
        alike = np.lexsort(keys.T)  # of equal rows, the least certain comes first
        new = np.ones(len(alike), bool)
        new[1:] = (np.diff(keys[alike], axis=0) != 0).any(1)
        order = order[np.sort(alike[new])]
        states = level.reached[order]
        grouped = np.argsort(states, kind="stable")
        counts = np.unique(states, return_counts=True)[1]
        least, most = np.empty((2, len(order)), np.int64)
        least[grouped] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        most[grouped] = np.repeat(counts, counts) - 1 - least[grouped]
        ranks = np.minimum(least, EVERY * most + EVERY - 1)
        return np.sort(order[np.argsort(ranks, kind="stable")[: self.beam]])

    def _cells(self, state: Any) -> NDArray[np.float64]:
        """The cells that states fall into, [B, P]."""
        try:
            rows = self._subject.vectors(state).double()
        except SettingsError:  # whole numbers alone
            rows = torch.from_numpy(self._subject.bits(state)[0].astype(np.float64))
        if self._subject.scale_invariant:
            rows = rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-300)
        if self._projections is None or len(self._projections) != rows.shape[1]:
            draw = torch.Generator().manual_seed(self._seed)
            shape = rows.shape[1], PROJECTIONS
            self._projections = torch.randn(shape, generator=draw, dtype=torch.float64).to(rows)
        places = np.nan_to_num((rows @ self._projections).cpu().numpy())
        widths = np.maximum(CELL * places.std(0), 1e-9 * abs(places).max(0)) + 1e-300
        cells: NDArray[np.float64] = np.floor(places / widths)
        return cells
