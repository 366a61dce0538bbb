"""Delta rules: a reflection for each key, or a beta of 1 that replaces the state's first row.

The state H of a head starts at zero, so it follows G - M, where G = A(x_t) .. A(x_1) M and M is a
multiple of the identity: with A = I - 2 k k^T, G - M goes to A (G - M) + 2 k v^T for v = -M^T k.

V symbols, S states, d dimension of a part, n factors, N heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.reflections import reflections_of
from statetrack.constructions.representations import LinearRepresentation
from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import (
    LONG,
    OPEN,
    SHUT,
    aim,
    identity_convolution,
    mixer_inputs,
    one_hot_embedding,
    put,
    silu_preimage,
    unit_columns,
)
from statetrack.sources import Floats

SCALE = 0.25
"""M, as a multiple of the identity: values are at most as long."""

SMALLEST_SQUARE = 1e-6
"""Added to the square of a key's length, by which a key is divided (as in the layers' source).

So the eigenvalue of a reflection is -1 + 2e-6 / |k|^2, and |k| has to be large. But keys come from
silu, which is never below -0.278: a key with entries of both signs is only long if it has many of
them. So parts are placed in a space of many more dimensions.
"""

LEAST = 0.27
"""How far below 0 an entry of a key may be."""

LONGEST = 100.0
"""The largest entry of a key without entries below 0."""

ROWS = {2: 96, 3: 256, 4: 512}
"""Key size by the dimension of the largest part."""


def take_reflections(case: Case, parts: Sequence[LinearRepresentation]) -> Any:
    """Parts in heads; where one query does not read a part, a head for each of its coordinates."""
    matrices = [part.matrices for part in parts]
    generic = [_generic(each.shape[1])[None] for each in matrices]
    coordinates = [np.eye(each.shape[1]) for each in matrices]
    why: NotBuilt | None = None
    for queries in (generic, coordinates):
        heads = [(part, query) for part, rows in enumerate(queries) for query in rows]
        if len(heads) > case.sizes.get("heads", len(heads)):
            why = why or NotBuilt(f"{len(heads)} heads, {case.sizes['heads']} are predicted")
            continue
        try:
            return _build(case, matrices, heads)
        except NotBuilt as problem:
            why = problem
    assert why is not None
    raise why


def _generic(size: int) -> Floats:
    """A vector in general position."""
    vector = np.sqrt(np.arange(1.0, size + 1)) * (-1.0) ** np.arange(size)
    return np.asarray(vector / np.linalg.norm(vector))


def _build(case: Case, matrices: list[Floats], heads: list[tuple[int, Floats]]) -> Any:
    num_factors = case.room("householders", 1)
    num_symbols = case.automaton.num_symbols
    num_heads = case.room("heads", len(heads))
    size = max(2, *(each.shape[1] for each in matrices))
    key_dim = ROWS[min(size, max(ROWS))] if any(each.shape[1] > 1 for each in matrices) else 2
    begin = num_heads * size
    model = case.blank(
        width=begin + num_symbols,
        heads=num_heads,
        key_dim=key_dim,
        value_dim=size,
        householders=num_factors,
    )
    mixer = model.blocks[0].mixer
    one_hot_embedding(model, begin)
    queries = np.zeros((num_symbols, num_heads, key_dim))
    keys = np.zeros((num_symbols, num_factors, num_heads, key_dim))
    values = np.zeros((num_symbols, num_factors, num_heads, size))
    for head, (part, query) in enumerate(heads):
        dimension = matrices[part].shape[1]
        rows = spread_rows(key_dim, dimension)
        queries[:, head] = _as_long_as_can_be(rows @ query[None, :, None])[..., 0]
        vectors = np.stack([reflections_of(matrix, num_factors) for matrix in matrices[part]])
        keys[:, :, head] = _as_long_as_can_be(rows @ vectors[..., None])[..., 0]
        squares = (keys[:, :, head] ** 2).sum(-1, keepdims=True)
        shortened = keys[:, :, head] / np.sqrt(squares + SMALLEST_SQUARE)
        values[:, :, head, :dimension] = -SCALE * shortened @ rows
    inputs = mixer_inputs(model)
    flat = [each.reshape(num_symbols, -1) for each in (queries, keys, values)]
    aim(mixer.project, inputs, silu_preimage(np.column_stack(flat)))
    identity_convolution(mixer.convolution.filters)
    _erase_and_write(mixer, inputs, np.full((num_symbols, num_factors * num_heads), OPEN))
    open_delta(mixer, inputs)
    put(mixer.output.weight, np.eye(model.settings.width, begin))
    read_labels(model, case, slice(begin))
    return model


def spread_rows(num_rows: int, size: int) -> Floats:
    """Orthonormal columns `[K, d]` whose rows are about equally long."""
    if size == 1:
        return np.eye(num_rows)[:, :1]
    rows = np.random.default_rng(0).normal(size=(num_rows, size))
    for _ in range(100):
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        values, vectors = np.linalg.eigh(rows.T @ rows)
        rows = rows @ vectors @ np.diag(values**-0.5) @ vectors.T
    return rows


def _as_long_as_can_be(columns: Floats) -> Floats:
    """Vectors `[.., K, 1]` times a number of either sign: the longest that silu can give."""
    below = columns.min(axis=-2, keepdims=True)
    above = columns.max(axis=-2, keepdims=True)
    turned = np.where(-below > above, -columns, columns)
    least = np.maximum(np.minimum(-below, above), LEAST / LONGEST)
    return np.asarray(turned * (LEAST / least))


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """One head: a beta of 1 replaces the first row of the state, one of 0 keeps all of it."""
    size, num_contexts = wanted.terms.shape[1], len(wanted.inputs)
    keeps = wanted.gains[:, :1] == 1
    queries, keys, values = (np.zeros((num_contexts, count)) for count in mixer.sizes)
    queries[:, 0] = keys[:, 0] = LONG
    values[:, :size] = silu_preimage(wanted.terms)
    aim(mixer.project, wanted.inputs, np.column_stack([queries, keys, values]))
    identity_convolution(mixer.convolution.filters)
    beta = np.where(keeps, SHUT, OPEN if mixer.beta_range == 1 else 0.0)
    betas = np.full((num_contexts, math.prod(mixer.key_shape[:-1])), SHUT)
    betas[:, :1] = beta
    _erase_and_write(mixer, wanted.inputs, betas)
    open_delta(mixer, wanted.inputs)
    unit_columns(mixer.output, begin, size)


def _erase_and_write(mixer: Any, inputs: Floats, betas: Floats) -> None:
    """Let heads erase and write by betas, of which the arguments of the sigmoid are given.

    Gated DeltaNet-2 has gates of its own for both. What it writes at all is whole, and not twice it
    where a key is reflected: M is half as large there.
    """
    if not hasattr(mixer, "write"):
        aim(mixer.betas, inputs, betas)
        return
    aim(mixer.erase, inputs, betas.repeat(mixer.key_shape[-1], axis=1))
    written = np.where(betas == SHUT, SHUT, OPEN)
    aim(mixer.write, inputs, written.repeat(mixer.value_shape[-1], axis=1))


def open_delta(mixer: Any, inputs: Floats) -> None:
    """Let nothing decay in a delta rule, and let all outputs through."""
    if hasattr(mixer, "steps"):  # Kimi delta attention: a gate for each row
        put(mixer.bias, np.full(mixer.bias.shape, SHUT))
    elif mixer.forget_gate is not None:
        put(mixer.forget_gate.bias, np.full(mixer.forget_gate.bias.shape, SHUT))
    if isinstance(mixer.gate, nn.Linear):
        aim(mixer.gate, inputs, np.ones((len(inputs), mixer.gate.out_features)))


register = Layer(
    set_gates,
    free=lambda numbers, _: {"heads": 1, "key_dim": 1, "value_dim": max(numbers, 2)},
)
