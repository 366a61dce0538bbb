"""One layer that is linear in its state: matrices, blocks, terms of rank one, gains, unit vectors.

V symbols, S states, n dimensions, K terms, D width.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from statetrack.algebra.representations import IrreduciblePart
from statetrack.sources import Floats
from tests.claims.constructions.base import (
    OPEN,
    SHUT,
    Case,
    NotBuilt,
    aim,
    mixer_inputs,
    one_hot_embedding,
    put,
    read_labels,
    separate,
)
from tests.claims.constructions.representations import (
    fewest_terms,
    observed,
    smallest_blocks,
    smallest_known,
)

MOST_SYMBOLS = 8
"""Most symbols for which all gains of 0 and 1 are tried."""


def finish(model: Any, case: Case, points: Floats) -> Any:
    """The first state and the readout of a model whose state is a point `[S, H]`."""
    machine = case.algebra.machine
    asked = case.asked
    put(model.first, points[machine.automaton.start])
    weight, _ = separate(
        points[asked], machine.automaton.output[asked], model.num_labels, with_bias=False
    )
    put(model.readout.weight, weight)
    return model


def bilinear(case: Case) -> Any:
    """A free matrix for every symbol, on the smallest representation that is known."""
    found = smallest_known(case.algebra).padded(case.size("hidden"))
    model = case.blank()
    put(model.weight, found.matrices)
    return finish(model, case, found.points)


def bilinear_block(case: Case) -> Any:
    """A block for every irreducible part."""
    size = case.size("block_size")
    parts = [part.padded(size) for part in smallest_blocks(case.algebra)]
    model = case.blank(hidden=size * len(parts))
    put(model.weight, np.stack([part.matrices for part in parts], 1))
    return finish(model, case, np.column_stack([part.points for part in parts]))


def bilinear_cp(case: Case) -> Any:
    """Terms of rank one, shared by all symbols, with gains for each."""
    representation, terms = fewest_terms(case.algebra)
    more = case.size("rank") - terms.rank
    if more < 0:
        raise NotBuilt(f"{terms.rank} terms are known, {case.size('rank')} are predicted")
    model = case.blank(hidden=representation.size)
    put(model.left, np.pad(terms.left, ((0, 0), (0, more))))
    put(model.right, np.pad(terms.right, ((0, 0), (0, more))))
    put(model.gains, np.pad(terms.gains, ((0, 0), (0, more))))
    return finish(model, case, representation.points)


def full_matrix(case: Case) -> Any:
    """The product of the symbols' matrices; the first point is a part of the readout."""
    found = smallest_known(case.algebra).padded(case.size("size"))
    machine, asked = case.algebra.machine, case.asked
    model = case.blank()
    put(model.matrices, found.matrices)
    weight, _ = separate(
        found.points[asked], machine.automaton.output[asked], model.num_labels, with_bias=False
    )
    first = found.points[machine.automaton.start]
    put(model.readout.weight, np.einsum("cn,m->cnm", weight, first).reshape(len(weight), -1))
    return model


# --- gains ---


def diagonal(case: Case) -> Any:
    """Characters of an abelian group, one for each gain or plane."""
    algebra = case.algebra
    if algebra.space is None:
        commutes = algebra.monoid is not None and algebra.monoid.commutative
        return _occurrences(case) if commutes else _resets(case)
    each = 1 if case.model in ("diagonal-real", "diagonal-positive") else 2
    choice = algebra.space.with_smallest_sum([each] * len(algebra.space.parts))
    choice = choice or algebra.space.with_smallest_largest(algebra.space.dimensions)
    if choice is None or each * len(choice.parts) > case.size("hidden"):
        raise NotBuilt("no known set of characters is as small as predicted")
    free = case.size("hidden") // each - len(choice.parts)
    gains, points = _planes(choice.parts, case)
    gains = np.pad(gains, ((0, 0), (0, free)), constant_values=1)
    points = np.pad(points, ((0, 0), (0, free), (0, 0)))[..., :each]
    model = case.blank()
    if case.model == "bilinear-rotation":
        put(model.angles, np.angle(gains))
    elif case.model == "diagonal-complex":
        put(model.gains, np.stack([gains.real, gains.imag], -1))
    elif case.model == "diagonal-real":
        put(model.gains, gains.real)
    else:  # a group of one element: every gain is 1
        put(model.gain_logits, np.full(gains.shape, OPEN))
    return finish(model, case, points.reshape(len(points), -1))


def _planes(parts: tuple[IrreduciblePart, ...], case: Case) -> tuple[Floats, Floats]:
    """Complex gains `[V, N]` and points `[S, N, 2]`: a plane for each part, a line fills half."""
    actions = case.algebra.machine.delta.T
    gains = np.ones((len(actions), len(parts)), complex)
    points = np.zeros((actions.shape[1], len(parts), 2))
    for place, part in enumerate(parts):
        matrices = part.matrices(actions)
        points[:, place, : part.dimension] = part.points
        gains[:, place] = matrices[:, 0, 0]
        if part.dimension == 2:
            gains[:, place] += 1j * matrices[:, 1, 0]
    return gains, points


def _resets(case: Case) -> Any:
    """A symbol that keeps the state has gains of 1; one that resets it gains of 0 and a term."""
    machine = case.algebra.machine
    points = np.eye(case.size("hidden"))[: len(machine.delta)]
    keeps = (machine.delta == np.arange(len(machine.delta))[:, None]).all(axis=0)
    terms = np.where(keeps[:, None], 0.0, points[machine.delta[0]])
    gains = np.repeat(keeps[:, None].astype(float), points.shape[1], axis=1)
    model = case.blank()
    _put_gains(model, gains)
    put(model.additive, terms)
    return finish(model, case, points)


def _occurrences(case: Case) -> Any:
    """Gains of 0 and 1: whether any of some symbols was read. For labels that depend on no more."""
    machine = case.algebra.machine
    if len(machine.delta.T) > MOST_SYMBOLS:
        raise NotBuilt("too many symbols for all products of gains of 0 and 1")
    gains, points = [], []
    for chosen in itertools.product([0.0, 1.0], repeat=len(machine.delta.T)):
        values = np.full(len(machine.delta), np.nan)
        values[machine.automaton.start] = 1
        while np.isnan(values).any():
            for symbol, gain in enumerate(chosen):
                known = ~np.isnan(values)
                values[machine.delta[known, symbol]] = values[known] * gain
        if (values[machine.delta] == values[:, None] * np.array(chosen)).all():
            gains.append(chosen)
            points.append(values)
    if len(gains) % 2:
        gains.append(gains[-1])
        points.append(points[-1])
    model = case.blank(hidden=len(gains) * (2 if case.model == "diagonal-complex" else 1))
    _put_gains(model, np.repeat(np.array(gains).T, model.settings.hidden // len(gains), axis=1))
    coordinates = np.array(points).T
    if case.model == "diagonal-complex":
        coordinates = np.stack([coordinates, 0 * coordinates], -1).reshape(len(coordinates), -1)
    return finish(model, case, coordinates)


def _put_gains(model: Any, gains: Floats) -> None:
    """Gains `[V, H]` of a diagonal model; of a complex one those of neighbours are equal."""
    if hasattr(model, "gain_logits"):
        put(model.gain_logits, np.where(gains > 0, OPEN, SHUT))
    elif model.gains.dim() == 3:
        put(model.gains, np.stack([gains[:, ::2], 0 * gains[:, ::2]], -1))
    else:
        put(model.gains, gains)


# --- in a residual block ---


def slice_blocks(case: Case) -> Any:
    """A block for every irreducible part, as (A(x) - I) / dt; symbols have coordinates apart.

    The first symbol is mapped to the point of the state that it leads to.
    """
    size = case.size("block_size")
    parts = [part.padded(size) for part in smallest_blocks(case.algebra)]
    begin = size * len(parts)
    width = -(-(begin + case.automaton.num_symbols) // size) * size
    model = case.blank(width=width)
    mixer = model.blocks[0].mixer
    one_hot_embedding(model, begin)
    fields = np.zeros((case.automaton.num_symbols, width // size, size, size))
    for place, part in enumerate(parts):
        fields[:, place] = (part.matrices - np.eye(size)) / mixer.dt
    aim(mixer.fields, mixer_inputs(model), fields.reshape(len(fields), -1))
    machine = case.algebra.machine
    first = np.zeros((case.automaton.num_symbols, width))
    points = np.column_stack([part.points for part in parts])
    first[:, :begin] = points[machine.delta[machine.automaton.start]]
    aim(mixer.first_of_symbol, mixer_inputs(model), first)
    read_labels(model, case, slice(begin))
    return model


def pd_ssm(case: Case) -> Any:
    """States as unit vectors: every symbol's matrix is a map of coordinates (Terzic et al. 2025).

    The start is the first coordinate. Moduli are 1 and phases 0.
    """
    machine = case.algebra.machine
    live = np.flatnonzero(machine.live)
    order = np.concatenate([[machine.automaton.start], live[live != machine.automaton.start]])
    place = np.zeros(len(machine.delta), np.int64)
    place[order] = np.arange(len(order))
    moves, which = np.unique(place[machine.delta[order]].T, axis=0, return_inverse=True)  # [K, S]
    size = case.size("state")
    dictionary = case.sizes.get("dictionary", len(moves))
    if size < len(order) or dictionary < len(moves):
        raise NotBuilt(f"{len(order)} coordinates and {len(moves)} matrices are known")
    num_symbols = case.automaton.num_symbols
    model = case.blank(width=size + num_symbols, dictionary=dictionary)
    mixer = model.blocks[0].mixer
    one_hot_embedding(model, size)
    matrices = np.zeros((dictionary, size, size))
    for number, targets in enumerate(moves):
        matrices[number, targets, np.arange(len(targets))] = 1
    put(mixer.dictionary, matrices)
    chosen = np.zeros((num_symbols, dictionary))
    chosen[np.arange(num_symbols), which.ravel()] = OPEN
    aim(mixer.selection, mixer_inputs(model), chosen)
    put(mixer.moduli[-2].bias, np.full(size, OPEN))
    put(mixer.phases[-2].bias, np.full(size, SHUT))
    out = np.zeros(mixer.outward.weight.shape)
    out[:size, :size] = np.eye(size)
    put(mixer.outward.weight, out)
    read_labels(model, case, slice(size))
    return model


def ids4(case: Case) -> Any:
    """The start's row of the product is read as a number per label, which a norm puts on a circle.

    Entries are gelu of what is set: 0 of 0, and 1 of its preimage.
    """
    machine = case.algebra.machine
    live = np.flatnonzero(machine.live)
    place = np.zeros(len(machine.delta), np.int64)
    place[live] = np.arange(len(live))
    size, num_symbols = case.size("state"), case.automaton.num_symbols
    if size < len(live):
        raise NotBuilt(f"{len(live)} coordinates are known")
    model = case.blank(width=4 * num_symbols)
    block, mixer = model.blocks[0], model.blocks[0].mixer
    one_hot_embedding(model)
    matrices = np.zeros(mixer.matrices.shape)
    for symbol in range(num_symbols):
        targets = place[machine.delta[live, symbol]]
        matrices[symbol, np.arange(len(live)), targets] = gelu_preimage(1.0)
    put(mixer.matrices, matrices)
    tangents = np.tan(np.linspace(-1.2, 1.2, model.num_labels))
    read = np.zeros(mixer.reading.weight.shape)
    read[0, : len(live)] = tangents[machine.automaton.output[live]]
    put(mixer.reading.weight, read)
    width = mixer.skip.in_features
    first, second = np.tile([1.0, -1.0], width // 2), np.tile([1.0, 1.0, -1.0, -1.0], width // 4)
    outward = np.zeros(mixer.outward.weight.shape)
    outward[:, place[machine.automaton.start]] = first
    put(mixer.outward.weight, outward)
    put(mixer.outward.bias, second)
    put(mixer.skip.weight, -np.eye(width))  # takes the residual stream back
    put(block.norm.weight, np.ones(width))
    points = tangents[:, None] * first + second
    put(model.readout.weight, points / np.linalg.norm(points, axis=1, keepdims=True))
    return model


def gelu_preimage(value: float) -> float:
    """The x > 0 with gelu(x) = value, by bisection."""
    low, high = 0.0, 9.0
    for _ in range(80):
        middle = (low + high) / 2
        reached = middle * (1 + math.erf(middle / 2**0.5)) / 2
        low, high = (middle, high) if reached < value else (low, middle)
    return low


def sd_ssm(case: Case) -> Any:
    """Unit vectors, and a constant that takes back what every input adds.

    As in `TransitionMatrices`: column and row of the constant are the last.
    """
    machine = case.algebra.machine
    live = np.flatnonzero(machine.live)
    place = np.zeros(len(machine.delta), np.int64)
    place[live] = np.arange(len(live))
    moves, which = np.unique(place[machine.delta[live]].T, axis=0, return_inverse=True)  # [K, S]
    size, dictionary = case.size("state"), case.size("dictionary")
    if size <= len(live) or dictionary < len(moves):
        raise NotBuilt(f"{len(live) + 1} coordinates and {len(moves)} matrices are known")
    num_symbols = case.automaton.num_symbols
    model = case.blank(width=size + num_symbols)
    mixer = model.blocks[0].mixer
    one_hot_embedding(model)
    matrices = np.zeros(mixer.dictionary.shape)
    matrices[:] = np.eye(size)  # where there are more coordinates than are used
    for number, targets in enumerate(moves):
        matrices[number] = np.eye(size)
        matrices[number, :, : len(targets)] = np.eye(size)[:, targets]
        matrices[number, :, -1] = -np.eye(size)[targets[place[machine.automaton.start]]]
    put(mixer.dictionary, matrices)
    chosen, written = np.zeros((num_symbols, dictionary)), np.zeros((num_symbols, size))
    chosen[np.arange(num_symbols), which.ravel()] = OPEN
    start = place[machine.automaton.start]
    written[np.arange(num_symbols), moves[which.ravel(), start]] = 1
    written[:, -1] = 1
    aim(mixer.selection, mixer_inputs(model), chosen)
    aim(mixer.writings, mixer_inputs(model), written)
    out = np.zeros(mixer.outward.weight.shape)
    out[:size, :size] = np.eye(size)
    put(mixer.outward.weight, out)
    put(mixer.state_norm.weight, np.ones(size))
    read_labels(model, case, slice(size))
    return model


def token_gated(case: Case) -> Any:
    """Points that affine maps move as symbols move states, the start's at 0."""
    return _gated(case, smallest_affine(case))


def state_gated(case: Case) -> Any:
    """As the token-gated RNN; behind tanh, a unit for each state, 1 in it and -1 in others.

    One more unit is always -1: so the first vector, 0, is in general position to the others, and an
    affine map can move it as it moves the start. Before tanh 60 stands for 1, so errors vanish.
    """
    if case.options.get("activation") == "identity":
        return _gated(case, smallest_affine(case))
    live = case.algebra.machine.live
    return _gated(case, (2 * np.eye(len(live) + 1) - 1)[: len(live)], steep=OPEN)


def corners(case: Case) -> Floats:
    """The start at 0, and every other live state at a unit vector, `[S, H]`.

    One dimension fewer than there are states: affine maps are free on points in general position.
    """
    machine = case.algebra.machine
    others = [int(s) for s in np.flatnonzero(machine.live) if s != machine.automaton.start]
    points = np.zeros((len(machine.delta), max(len(others), 1)))
    points[others, np.arange(len(others))] = 1
    return points


def smallest_affine(case: Case) -> Floats:
    """The points of a linear representation, less the start's, in the space that they span."""
    machine = case.algebra.machine
    found = [corners(case)]
    for representation in (smallest_known(case.algebra), observed(case.algebra)):
        points = representation.points - representation.points[machine.automaton.start]
        points[~machine.live] = 0
        sizes, rows = np.linalg.svd(points)[1:]
        found.append(points @ rows[: max(1, int((sizes > 1e-9 * max(sizes.max(), 1e-9)).sum()))].T)
    return min(found, key=lambda each: each.shape[1])


def _gated(case: Case, points: Floats, *, steep: float = 1.0) -> Any:
    """Affine maps, each solved from the moves of its symbol; the gate is open."""
    machine = case.algebra.machine
    size, num_symbols = case.size("hidden"), case.automaton.num_symbols
    if size < points.shape[1]:
        raise NotBuilt(f"{points.shape[1]} units are known, {size} are predicted")
    points = np.pad(points, ((0, 0), (0, size - points.shape[1])))
    matrices, terms = np.zeros((num_symbols, size, size)), np.zeros((num_symbols, size))
    start = machine.automaton.start
    for symbol, targets in enumerate(machine.delta.T):
        drawn = machine.live & machine.live[targets]
        terms[symbol] = points[targets[start]]  # where the first vector, 0, is moved
        moved = points[targets[drawn]] - terms[symbol]
        solved = np.linalg.lstsq(points[drawn], moved, rcond=1e-10)[0]
        if np.abs(points[drawn] @ solved - moved).max(initial=0) > 1e-8:
            raise NotBuilt("no affine map moves the points as a symbol moves states")
        matrices[symbol] = solved.T
    model = case.blank(width=size + num_symbols)
    mixer = model.blocks[0].mixer
    width = model.settings.width
    one_hot_embedding(model, width - num_symbols)
    inputs = mixer_inputs(model)
    aim(mixer.matrices.map, inputs, steep * matrices.reshape(num_symbols, -1))
    aim(mixer.bias, inputs, steep * terms)
    put(mixer.gate.bias, np.full(size, OPEN))
    put(mixer.output.weight, np.eye(width, size))
    read_labels(model, case, slice(size))
    return model
