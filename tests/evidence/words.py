"""Words that are meant to break a network, and where it breaks.

B words, T time, V symbols, H numbers of the state.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from numpy.typing import NDArray

from statetrack.models import Scanning
from tests.evidence.machines import Table

Words = NDArray[np.int64]


def all_words(num_symbols: int, length: int) -> Words:
    """Every word of a length, [V^T, T]."""
    return np.array(list(itertools.product(range(num_symbols), repeat=length)), np.int64)


def short_words(
    num_symbols: int, longest: int, most: int, draws: np.random.Generator
) -> list[Words]:
    """Every word up to a length; where there are more than `most`, some of the longest ones."""
    found = [row for length in range(1, longest + 1) for row in all_words(num_symbols, length)]
    if len(found) <= most:
        return found
    chosen = set(draws.choice(len(found), most, replace=False).tolist()) | set(range(num_symbols))
    return [found[index] for index in sorted(chosen)]


def powers(periods: list[Words], length: int) -> Words:
    """Each word again and again, up to a length: [B, T]."""
    return np.stack([np.resize(period, length) for period in periods])


def labels_of(table: Table, words: Words) -> Words:
    """The labels after every symbol, [B, T], state by state."""
    delta, output = np.array(table.delta), np.array(table.output)
    state = np.full(len(words), table.start)
    labels = np.empty_like(words)
    for position in range(words.shape[1]):
        state = delta[state, words[:, position]]
        labels[:, position] = output[state]
    return labels


@torch.no_grad()
def first_errors(model: Scanning, table: Table, words: Words, piece: int = 1000) -> Words:
    """The position, from 1, of the first wrong or unclear answer to each word; 0 without one.

    An answer is unclear where the greatest logit is shared, or a logit is not finite.
    """
    labels = labels_of(table, words)
    found = np.zeros(len(words), np.int64)
    state = model.initial_state(len(words))
    for start in range(0, words.shape[1], piece):
        here = slice(start, start + piece)
        logits, state = model.scan(torch.from_numpy(words[:, here].copy()), state)
        rivals = logits.clone()
        places = torch.from_numpy(labels[:, here]).unsqueeze(-1)
        own = rivals.gather(-1, places).squeeze(-1)
        rivals.scatter_(-1, places, -torch.inf)
        right = (own > rivals.amax(-1)) & logits.isfinite().all(-1)
        wrong = (~right).numpy()
        new = wrong.any(1) & (found == 0)
        found[new] = start + wrong[new].argmax(1) + 1
        if found.all():
            break
    return found


def spoiling_words(
    matrices: NDArray[np.float64],
    points: NDArray[np.float64],
    table: Table,
    length: int,
    *,
    beam: int = 8,
    seed: int = 0,
) -> Words:
    """Words along which a linear model leaves the points of its exact states fastest, [B, T].

    The error is measured after the best rescaling of the state, since logits may be rescaled.
    At every symbol the `beam` words with the greatest errors are kept, of different last symbols
    as far as possible.
    """
    draws = np.random.default_rng(seed)
    delta = np.array(table.delta)
    states = np.full(1, table.start)
    vectors = points[states]
    words = np.zeros((1, 0), np.int64)
    symbols = len(matrices)
    for _ in range(length):
        reached = np.einsum("xij,bj->bxi", matrices, vectors)
        target = delta[states]  # [B, V]
        aims = points[target]
        scale = (reached * aims).sum(-1, keepdims=True) / (aims**2).sum(-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.linalg.norm(reached / scale - aims, axis=-1)
        error = np.where(np.isfinite(error), error, np.inf).ravel()
        error = error * (1 + 1e-9 * draws.random(len(error)))
        best = np.argsort(-error)[: beam * 4]
        kept: list[int] = []
        seen: set[tuple[int, int]] = set()
        for index in best.tolist():
            key = (int(target.ravel()[index]), index % symbols)
            if key not in seen or len(best) - len(kept) < beam:
                seen.add(key)
                kept.append(index)
            if len(kept) == beam:
                break
        chosen = np.array(kept)
        words = np.concatenate([words[chosen // symbols], chosen[:, None] % symbols], 1)
        states = target.ravel()[chosen]
        vectors = reached.reshape(-1, reached.shape[-1])[chosen]
        vectors = vectors / np.abs(vectors).max(-1, keepdims=True)
    return words
