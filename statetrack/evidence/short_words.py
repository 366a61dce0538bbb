"""The shortest wrong answer among short words, by a search that keeps the least certain ones.

All words are read symbol by symbol, side by side; two that led model and automaton to the same
state are one. As long as the words fit into the beam, all of them are read; from then on those
whose right label has the least margin, and some that are drawn from the others.

B words, D numbers of a state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from statetrack.evidence.long_words import margins_of
from statetrack.evidence.primitive_words import Word
from statetrack.evidence.searches import Budget
from statetrack.evidence.subject import Subject

AT_ONCE = 4096
"""Words that are read at once."""


@dataclass(frozen=True)
class ShortWords:
    """What the search found: a wrongly answered word, or None, of at most `longest` symbols.

    `words` were read; all words up to `all_up_to` symbols, equal states merged.
    """

    failing: Word | None
    words: int
    longest: int
    all_up_to: int
    complete: bool


def search_short_words(
    subject: Subject, *, longest: int, beam: int, budget: Budget, draw: np.random.Generator
) -> ShortWords:
    """Search words of rising length, until one is answered wrongly. The model needs a state."""
    automaton = subject.automaton
    states = np.array([automaton.start])
    model_state = subject.first(1)
    trail: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # parents and symbols
    num_read, all_up_to, pruned = 0, 0, False
    for length in range(1, longest + 1):
        if budget.spent:
            return ShortWords(None, num_read, length - 1, all_up_to, complete=False)
        parents, symbols = np.nonzero(automaton.drawable[states])
        num_read += len(parents)
        reached = automaton.delta[states[parents], symbols]
        margins, parts = [], []
        for begin in range(0, len(parents), AT_ONCE):
            piece = slice(begin, begin + AT_ONCE)
            index = torch.from_numpy(parents[piece]).to(subject.device)
            logits, state = subject.step(symbols[piece], subject.take(model_state, index))
            labels = automaton.output[reached[piece], None]
            margins.append(margins_of(logits.unsqueeze(1), labels)[:, 0])
            parts.append(state)
        margin = np.concatenate(margins)
        scored = automaton.scored[reached]
        wrong = np.flatnonzero(~(margin > 0) & scored)
        if len(wrong):
            found = _word(trail, int(parents[wrong[0]]), int(symbols[wrong[0]]))
            return ShortWords(
                found, num_read, length, length - 1 if not pruned else all_up_to, True
            )
        model_state = parts[0] if len(parts) == 1 else subject.join(parts)
        kept = _first_of_each(subject.bits(model_state)[0], reached)
        if len(kept) > beam:
            margin = np.where(scored, margin, math.inf)
            kept, pruned = _least_certain(kept, margin, reached, beam, draw), True
        if not pruned:
            all_up_to = length
        model_state = subject.take(model_state, torch.from_numpy(kept).to(subject.device))
        states = reached[kept]
        trail.append((parents[kept], symbols[kept]))
        if not len(kept):
            break
    return ShortWords(None, num_read, longest, all_up_to, complete=True)


def _first_of_each(bits: NDArray[np.uint8], states: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first of the words whose states, of model and automaton, are equal."""
    rows = np.ascontiguousarray(bits)
    seen: dict[bytes, int] = {}
    for row in range(len(rows)):
        seen.setdefault(rows[row].tobytes() + int(states[row]).to_bytes(8, "little"), row)
    return np.array(list(seen.values()), np.int64)


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


def _word(
    trail: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], row: int, last: int
) -> Word:
    word = [last]
    for parents, symbols in reversed(trail):
        word.append(int(symbols[row]))
        row = int(parents[row])
    return tuple(reversed(word))
