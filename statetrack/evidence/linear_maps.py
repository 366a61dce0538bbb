"""The affine maps by which a linear model's recurrent part moves, one for each symbol.

    p_t = A(x_t) p_{t-1} + u(x_t)

They are asked of the model (`WithTransition`), in float64, and then compared with what the model
does after random words: a recurrence whose maps also depend on the symbols before has none.

*The used subspace.* Let psi_s be the mean hidden state where the automaton is in state s, over
words whose symbols are uniform among those that can be drawn: E[h_t | s_t = s], averaged over
positions t. It is computed exactly from the operators, as the sum over the states and symbols that
lead to s, and not from samples. Let Q be the mean over words w of A_w^T C^T C A_w, so that |h|^2 =
h^T Q h is the mean of the squared logits that a hidden state h still leads to. The *used subspace*
is spanned by the directions of the psi_s, measured in that norm, along which the psi_s are farther
from 0 than the hidden states of one automaton state are from each other (on sampled words): what
lies in other directions says nothing of the state, or is not read.

Its basis balances the two (balanced truncation: Moore 1981, IEEE Trans. Autom. Control 26). In it
Q is the identity, so that operators of an exact representation of a group are orthogonal matrices.
Where the readout is not linear in the state, Q is the identity of all coordinates instead.

V symbols, H numbers of the recurrent part, C labels, B words, S states, K coordinates (a constant 1
included where something is added), k dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.algebra import Machine
from statetrack.errors import SettingsError
from statetrack.evidence.subject import Subject, exactly
from statetrack.evidence.words import RandomWords, drawable_symbols
from statetrack.models import Block, BlockModel, WithTransition, is_linear
from statetrack.sources import Booleans, Floats, Integers

MOST_ENTRIES = 2**23
"""The largest V H^2: seconds for the means of hidden states, and 64 megabytes."""

CHECKED_WORDS, CHECKED_LENGTH = 16, 12
"""The random words after which the maps are compared with what the model does."""

AGREES = 1e-6
"""How far they may be from it, as a part of the numbers compared."""


@dataclass(frozen=True, eq=False)
class AffineMaps:
    """One affine map of R^H for every symbol, the first point, and the readout if it is linear."""

    matrices: Floats  # [V, H, H]
    terms: Floats  # [V, H]
    first: Floats  # [H]
    readout: Floats | None  # [C, H]
    bias: Floats | None  # [C]
    scale_invariant: bool
    """Whether no answer changes when the point is multiplied by a positive number."""

    @property
    def is_linear(self) -> bool:
        """Whether nothing is added."""
        return not self.terms.any()

    @property
    def in_planes(self) -> bool:
        """Whether every operator keeps each plane of two neighbouring coordinates."""
        width = self.matrices.shape[1]
        if width % 2:
            return False
        outside = np.kron(np.eye(width // 2), np.ones((2, 2))) == 0
        return not self.matrices[:, outside].any()

    @cached_property
    def homogeneous(self) -> tuple[Floats, Floats, Floats | None]:
        """Linear maps `[V, K, K]`, the first point `[K]`, and the readout `[C, K]`.

        Where something is added, or the readout has a bias, points have a further coordinate that
        is always 1, and K = H + 1; else K = H.
        """
        if self.is_linear and self.bias is None:
            return self.matrices, self.first, self.readout
        num_symbols, width = self.terms.shape
        matrices = np.zeros((num_symbols, width + 1, width + 1))
        matrices[:, :width, :width] = self.matrices
        matrices[:, :width, width] = self.terms
        matrices[:, width, width] = 1.0
        readout = self.readout
        if readout is not None:
            bias = np.zeros(len(readout)) if self.bias is None else self.bias
            readout = np.column_stack([readout, bias])
        return matrices, np.append(self.first, 1.0), readout


def affine_maps(subject: Subject, *, seed: int = 0) -> AffineMaps:
    """The maps of a model whose recurrence is linear in its state, with maps of the symbols alone.

    That is every linear model, every other module with `WithTransition`, and every model of one
    block with such a mixer. Raises `SettingsError` for any other, and where they are too large.
    """
    model = subject.in_precision(torch.float64).model
    carrier = _carrier(model)
    if carrier is None:
        raise SettingsError(
            "the model is no linear recurrence of one layer: nothing says by which matrices its "
            "state moves"
        )
    reader, inputs = carrier
    num_symbols = subject.automaton.num_symbols
    symbols = inputs(torch.arange(num_symbols, device=subject.device).unsqueeze(1))
    with torch.no_grad():
        state = reader.initial_state(num_symbols)
        part = reader.recurrent_part(state)
        width = part[0].numel()
        if num_symbols * width**2 > MOST_ENTRIES:
            raise SettingsError(
                f"{num_symbols} matrices of {width} x {width} are too large: "
                f"{MOST_ENTRIES:,} entries are the most"
            )
        matrices = reader.transition(symbols).dense()
        zero = reader.with_recurrent_part(state, torch.zeros_like(part))
        _, moved = reader.step(symbols.squeeze(1), zero)
        terms = reader.recurrent_part(moved).flatten(1)
        _require_same(reader, inputs, matrices, terms, num_symbols, seed)
    readout = model.readout if is_linear(model) else None
    return AffineMaps(
        matrices=exactly(matrices),
        terms=exactly(terms),
        first=exactly(part[0].flatten()),
        readout=None if readout is None else exactly(readout.weight),
        bias=None if readout is None or readout.bias is None else exactly(readout.bias),
        scale_invariant=subject.scale_invariant,
    )


def _carrier(model: nn.Module) -> tuple[Any, Any] | None:
    """What has the state, and the function from symbols [B, T] to its inputs."""
    if isinstance(model, WithTransition):
        return model, lambda symbols: symbols
    if isinstance(model, BlockModel) and len(model.mixers) == 1:
        mixer = model.mixers[0]
        if isinstance(mixer, WithTransition):
            (block,) = model.blocks
            assert isinstance(block, Block)
            norm = block.mixer_norm
            return mixer, lambda symbols: norm(model.embedding(symbols))
    return None


def _require_same(
    reader: Any, inputs: Any, matrices: Tensor, terms: Tensor, num_symbols: int, seed: int
) -> None:
    """Raise `SettingsError` unless the maps do what the model does after some other symbols."""
    draw = torch.Generator().manual_seed(seed)
    words = torch.randint(num_symbols, (CHECKED_WORDS, CHECKED_LENGTH), generator=draw).to(
        matrices.device
    )
    last = torch.randint(num_symbols, (CHECKED_WORDS,), generator=draw).to(matrices.device)
    _, state = reader.scan(inputs(words), reader.initial_state(CHECKED_WORDS))
    part = reader.recurrent_part(state)
    shift = torch.randn(part.shape, generator=draw, dtype=torch.float64).to(part)
    before = part + shift * part.abs().amax().clamp_min(1.0)
    moved = reader.with_recurrent_part(state, before)
    _, after = reader.step(inputs(last.unsqueeze(1)).squeeze(1), moved)
    found = reader.recurrent_part(after).flatten(1)
    expected = torch.einsum("bij,bj->bi", matrices[last], before.flatten(1)) + terms[last]
    scale = float(expected.abs().amax().clamp_min(1.0))
    if not float((found - expected).abs().amax()) <= AGREES * scale:
        raise SettingsError(
            "the matrices by which the state moves depend on the symbols before (a convolution, "
            "a token shift) or on the state: there is not one for each symbol"
        )


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
    """The mean hidden state of every state of the machine, `[S, K]`; 0 for the sink.

    m_t(s) = E[h_t; s_t = s] and the chance of s follow from those of the position before. Where
    answers do not depend on size (`rescale`), m is divided by the rate at which it grows. A state
    that is not visited again has the mean over early positions; `[S]` says which others are.
    """
    from scipy import sparse  # which takes a tenth of a second

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
