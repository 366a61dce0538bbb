"""The subspace in which a linear model keeps the automaton's state, and its operators there.

Let psi_s be the mean hidden state where the automaton is in state s, over words whose symbols are
uniform among those that can be drawn: E[h_t | s_t = s], averaged over positions t. It is computed
exactly from the operators, as the sum over the states and symbols that lead to s, and not from
samples. Let Q be the mean over words w of A_w^T C^T C A_w, so that |h|^2 = h^T Q h is the mean of
the squared logits that a hidden state h still leads to. The *used subspace* is spanned by the
directions of the psi_s, measured in that norm, along which the psi_s are farther from 0 than the
hidden states of one automaton state are from each other (on sampled words): what lies in other
directions says nothing of the state, or is not read.

Its basis balances the two (balanced truncation: Moore 1981, IEEE Trans. Autom. Control 26). In it
Q is the identity, so that operators of an exact representation of a group are orthogonal matrices.
Where the readout is not linear in the state, Q is the identity of all coordinates instead.

V symbols, S states, K coordinates (a constant 1 included where something is added), k dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from statetrack.algebra import Machine
from statetrack.evidence.affine import AffineMaps
from statetrack.evidence.random_words import RandomWords, drawable_symbols
from statetrack.sources import Booleans, Floats, Integers

WINDOW = 60
"""Positions before the averaging begins, and over which it goes: a multiple of short periods."""

READ_AHEAD = 32
"""Symbols of the words that Q is the mean over, at most."""

MOST_WORK = 10**11
"""Multiplications for Q: wide models read less far ahead."""

NUM_WORDS, LENGTH, LAST = 256, 64, 16
"""Sampled words at most, their length, and how many of their last positions count."""

MOST_STEPS = 5 * 10**9
"""Multiplications for their hidden states: of wide models fewer words are sampled."""

ROUNDING = 1e-9
"""Directions weaker than this part of the strongest are none."""

NO_MASS = 1e-12
"""A state less likely than this is not visited again."""


@dataclass(frozen=True, eq=False)
class UsedSpace:
    """The used subspace of a model: a basis, and what the model does in it."""

    matrices: Floats  # [V, K, K]: the model's operators, over their mean growth
    growth: Floats  # [V]: that growth, 1 where answers depend on the size of states
    centres: Floats  # [S, K]: the mean hidden states psi_s
    lift: Floats  # [K, k]: from the subspace into hidden states
    project: Floats  # [k, K]: and back, project lift = 1
    weigh: Floats  # [K', K]: W with W^T W = Q
    strengths: Floats  # all singular values, largest first
    spreads: Floats  # along the same directions, the spread of hidden states of one state
    samples: Floats  # [words, LAST, K]: sampled hidden states

    @property
    def dimension(self) -> int:
        """The number k of its dimensions."""
        return int(self.lift.shape[1])

    @cached_property
    def operators(self) -> Floats:
        """The operators in the subspace, `[V, k, k]`."""
        found: Floats = self.project @ self.matrices @ self.lift
        return found

    @cached_property
    def points(self) -> Floats:
        """The states' points in it, `[S, k]`."""
        found: Floats = self.centres @ self.project.T
        return found


def used_space(maps: AffineMaps, machine: Machine, *, seed: int = 0) -> UsedSpace:
    """The used subspace of a model with these maps, for the states of a machine."""
    matrices, first, readout = maps.homogeneous
    drawable = drawable_symbols(machine)
    centres, again = _centres(matrices, first, machine, drawable, rescale=maps.scale_invariant)
    growth = np.ones(len(matrices))
    if maps.scale_invariant:
        growth = _growth(matrices, centres, machine.delta, drawable & again[:, None])
        matrices = matrices / growth[:, None, None]
    weigh = np.eye(len(first)) if readout is None else _root(_read_ahead(matrices, readout))
    samples, states = _sampled(matrices, first, machine, seed)
    live = np.flatnonzero(machine.live)
    points = centres[live] @ weigh.T / len(live) ** 0.5  # [S, K']
    right, strengths, left = np.linalg.svd(points, full_matrices=False)  # left [., K'] rows
    known = centres[states]
    scale = 1.0
    if maps.scale_invariant:
        scale = float((samples * known).sum() / max(float((known**2).sum()), 1e-300)) or 1.0
    away = (samples / scale - known) @ weigh.T @ left.T
    spreads = np.sqrt((away**2).mean(axis=(0, 1)))
    strongest = max(float(strengths[0]), 1e-300) if len(strengths) else 1.0
    kept = (strengths > ROUNDING * strongest) & (strengths > spreads)
    lift = centres[live].T @ right[:, kept] / strengths[kept] / len(live) ** 0.5
    return UsedSpace(
        matrices=matrices,
        growth=growth,
        centres=centres,
        lift=lift,
        project=left[kept] @ weigh,
        weigh=weigh,
        strengths=strengths,
        spreads=spreads,
        samples=samples,
    )


def _centres(
    matrices: Floats, first: Floats, machine: Machine, drawable: Booleans, *, rescale: bool
) -> tuple[Floats, Booleans]:
    """The mean hidden state of every state of the machine, `[S, K]`; 0 for the void one.

    m_t(s) = E[h_t; s_t = s] and the chance of s follow from those of the position before. Where
    answers do not depend on size (`rescale`), m is divided by the rate at which it grows. A state
    that is not visited again has the mean over early positions; `[S]` says which others are.
    """
    num_states, num_symbols = machine.delta.shape
    chance = drawable / np.maximum(drawable.sum(axis=1, keepdims=True), 1)  # [S, V]
    mean = np.zeros((num_states, len(first)))
    mass = np.zeros(num_states)
    mean[machine.automaton.start], mass[machine.automaton.start] = first, 1.0
    means, masses, scales = [mean], [mass], [0.0]
    moves = [
        sparse.csr_array(
            (chance[:, symbol], (machine.delta[:, symbol], np.arange(num_states))),
            shape=(num_states, num_states),
        )
        for symbol in range(num_symbols)
    ]
    for _ in range(2 * WINDOW):
        after, following = np.zeros_like(mean), np.zeros_like(mass)
        for move, matrix in zip(moves, matrices, strict=True):
            after += move @ (mean @ matrix.T)
            following += move @ mass
        size = float(np.linalg.norm(after)) if rescale else 1.0
        size = size if size > 0 else 1.0
        mean, mass = after / size, following
        means.append(mean)
        masses.append(mass)
        scales.append(scales[-1] + float(np.log(size)))
    rate = (scales[-1] - scales[WINDOW]) / WINDOW
    places = np.arange(2 * WINDOW + 1)
    factors = np.exp(np.array(scales) - scales[WINDOW] - rate * (places - WINDOW))
    weighed = factors[:, None, None] * np.stack(means)
    late, seen = weighed[WINDOW + 1 :].sum(axis=0), np.sum(masses[WINDOW + 1 :], axis=0)
    early, seen_early = weighed[: WINDOW + 1].sum(axis=0), np.sum(masses[: WINDOW + 1], axis=0)
    once = seen < NO_MASS
    late[once], seen[once] = early[once], seen_early[once]
    centres: Floats = late / np.maximum(seen, NO_MASS)[:, None]
    centres[~machine.live] = 0.0
    return centres, ~once


def _growth(matrices: Floats, centres: Floats, delta: Integers, counted: Booleans) -> Floats:
    """By which factor every symbol's operator multiplies the centres, in least squares: `[V]`.

    `counted` [S, V] are the states and symbols that count.
    """
    growth = np.ones(len(matrices))
    for symbol, matrix in enumerate(matrices):
        states = np.flatnonzero(counted[:, symbol])
        targets = centres[delta[states, symbol]]
        square = float((targets**2).sum())
        factor = float((targets * (centres[states] @ matrix.T)).sum()) / max(square, 1e-300)
        if factor > 0 and np.isfinite(factor):
            growth[symbol] = factor
    return growth


def _read_ahead(matrices: Floats, readout: Floats) -> Floats:
    """Q, `[K, K]`: the mean over uniform words of up to `READ_AHEAD` symbols."""
    num_symbols, width, _ = matrices.shape
    steps = int(np.clip(MOST_WORK // (num_symbols * width**3), 1, READ_AHEAD))
    gram = readout.T @ readout / len(readout)
    total = gram.copy()
    for _ in range(steps):
        gram = np.mean([matrix.T @ gram @ matrix for matrix in matrices], axis=0)
        total += gram
    found: Floats = total / (steps + 1)
    return found


def _root(gram: Floats) -> Floats:
    """W with W^T W = Q, without rows that are rounding."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-15 * max(float(values[-1]), 1e-300)
    root: Floats = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    return root


def _sampled(
    matrices: Floats, first: Floats, machine: Machine, seed: int
) -> tuple[Floats, Integers]:
    """Hidden states `[words, LAST, K]` at the last positions of sampled words, and the states."""
    num_words = int(np.clip(MOST_STEPS // (LENGTH * len(first) ** 2), 16, NUM_WORDS))
    symbols, states = RandomWords(machine, num_words, seed).read(LENGTH)
    hidden = np.tile(first, (num_words, 1))
    kept = []
    for position in range(LENGTH):
        for symbol in np.unique(symbols[:, position]):
            chosen = symbols[:, position] == symbol
            hidden[chosen] = hidden[chosen] @ matrices[symbol].T
        if position >= LENGTH - LAST:
            kept.append(hidden.copy())
    return np.stack(kept, axis=1), states[:, LENGTH - LAST :]
