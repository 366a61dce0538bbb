"""Moore machines as tables, while they are learned and when they are kept.

The *code* of a state is what it says after a word: a label, or one of the numbers below.

N words, L symbols of a word, S states, V symbols, C labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.algebra import needed_machine
from statetrack.evidence.kinds.extraction import Extraction
from statetrack.sources import Automaton, BreadthFirst, places_of

Indices = NDArray[np.int64]
Word = tuple[int, ...]

UNASKED = -1
"""The code where the task asks for no label, or the word has a symbol that it never draws."""

BEFORE = -2
"""The code before the first symbol: a network has no answer there."""

NOT_FINITE = "not-finite"
"""The name of the label C: the network's logits are not all finite."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A machine in which every state can be reached; the start is state 0.

    `access` has a shortest word to every state, the first of these in the order of the symbols,
    and states are numbered in the order of these words.
    """

    delta: Indices  # [S, V]
    codes: Indices  # [S]
    access: tuple[Word, ...]

    @classmethod
    def of(cls, moore: Any) -> Hypothesis:
        """The tables of one of AALpy's Moore machines, without states that cannot be reached."""
        search = BreadthFirst(
            [moore.initial_state], lambda state: sorted(state.transitions.items())
        )
        steps = [[reached for _, reached, _ in taken] for _, taken in search]
        number = {state: place for place, state in enumerate(search.nodes)}
        return cls(
            np.array([[number[reached] for reached in row] for row in steps]),
            np.array([state.output for state in search.nodes]),
            tuple(search.word_to(state) for state in search.nodes),
        )

    def read(self, words: Indices) -> Indices:
        """The code after every symbol of words [N, L]: [N, L]."""
        state = np.zeros(len(words), np.int64)
        codes = np.empty(words.shape, np.int64)
        for position, symbols in enumerate(words.T):
            state = self.delta[state, symbols]
            codes[:, position] = self.codes[state]
        return codes

    def automaton(self, num_labels: int) -> Automaton | None:
        """The same with label C where logits are not finite; None where no label is asked for."""
        if not (self.codes[self.delta] >= 0).any():
            return None
        return Automaton(
            self.delta,
            self.codes.clip(0),
            scored=self.codes >= 0,
            labels=[*map(str, range(num_labels)), NOT_FINITE],
        )

    @cached_property
    def distinguishing_words(self) -> list[Word]:
        """Words that tell apart every two states that can be told apart, the empty one first."""
        found: list[Word] = [()]
        columns = [self.codes]
        blocks = _numbered(self.codes[:, None])
        for word, column in zip(found, columns, strict=False):  # both grow meanwhile
            for symbol, targets in enumerate(self.delta.T):
                finer = _numbered(np.column_stack([blocks, column[targets]]))
                if finer.max() > blocks.max():
                    blocks = finer
                    found.append((symbol, *word))
                    columns.append(column[targets])
        return found


def smallest(hypothesis: Hypothesis, num_labels: int) -> Automaton | None:
    """The smallest automaton with the same answers; None where it never answers.

    A start that is never entered again is left out where another state continues alike, and words
    after which nothing is asked any more lead to one state (`needed_machine`).
    """
    automaton = hypothesis.automaton(num_labels)
    return None if automaton is None else needed_machine(automaton).automaton


def num_needed(automaton: Automaton) -> int:
    """How many states the smallest machine with these answers has, without the sink."""
    return int(needed_machine(automaton).live.sum())


def machine_of(found: Extraction, task: Automaton | None = None) -> Automaton:
    """The machine that was extracted, with the names of the task's symbols and labels.

    States have the names of the task's where the machines are equivalent, else they are numbered.
    Symbols that the task never draws in a state, or after which it asks for no label any more, have
    the weight 0 there; where all symbols of a state are such, they lead to a state of their own, in
    which no label is asked for. Raises `ValueError` where nothing was extracted.
    """
    if not found.states:
        raise ValueError("no machine was extracted")
    delta = np.array(found.delta)
    asked = np.array([label is not None for label in found.output])
    output = np.array([0 if label is None else label for label in found.output])
    sink = ~asked & (delta == np.arange(len(delta))[:, None]).all(1)
    if sink[delta[~sink]].all(1).any():
        sink[:] = False
    live = np.flatnonzero(~sink)
    place = places_of(live, len(delta))
    allowed = ~sink[delta[live]]
    targets = np.where(allowed, place[delta[live]], np.arange(len(live))[:, None])
    num_labels = int(output.max()) + 1
    labels = list(map(str, range(num_labels))) if task is None else list(task.labels)
    if task is not None and num_labels > len(labels):
        labels.append(NOT_FINITE)
    return Automaton(
        targets,
        output[live],
        start=int(place[found.start]),
        symbols=None if task is None else task.symbols,
        states=_names(found, task, live),
        labels=labels,
        weights=None if allowed.all() else allowed.astype(float),
        scored=asked[live],
    )


def _names(found: Extraction, task: Automaton | None, live: Indices) -> list[str]:
    """The names of the states that are kept."""
    if task is None or not found.equivalent:
        return list(map(str, range(len(live))))
    needed = needed_machine(task).automaton
    names: dict[int, str] = {}
    pairs = BreadthFirst(
        [(found.start, needed.start)],
        lambda pair: enumerate(
            zip(found.delta[pair[0]], needed.delta[pair[1]].tolist(), strict=True)
        ),
    )
    for _, taken in pairs:
        for _, (own, other), _ in taken:
            names[own] = needed.states[other]
    spare = {name for name in needed.states if name not in names.values()}
    return [names[state] if state in names else sorted(spare)[0] for state in live.tolist()]


def _numbered(rows: Indices) -> Indices:
    """Equal rows of [S, K] get one number: [S]."""
    _, numbers = np.unique(rows, axis=0, return_inverse=True)
    return numbers.reshape(-1)
