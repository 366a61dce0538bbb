"""Recurrences whose operator is the symbol's and block-diagonal, with a linear readout.

Blocks and vectors are packed as planes: one number of all blocks after the other, in whole vectors.

G lanes (replicas), B words of each, T time, V symbols, C labels, N blocks, b block size.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import spaced, up_to
from statetrack.ops.loops.memory import Array, at, empty, exists, put, release, zeros
from statetrack.ops.loops.panels import pack_columns
from statetrack.ops.loops.readouts import (
    any_of,
    normalise_row,
    read_row,
    read_rows_backward,
)
from statetrack.ops.loops.rows import GROUP, map_rows, no_rows
from statetrack.ops.loops.vectors import LANES, load, padded, store, zero_vector


@part
def _spread(vectors: Array, place: int, M: int, N: int, b: int, rows: Array) -> None:
    """Vectors [M, N, b] as rows of planes [M, b, padded N], where zeros are."""
    for m in up_to(M):
        for i in up_to(b):
            own, row = place + m * N * b + i, (m * b + i) * padded(N)
            for n in up_to(N):
                put(rows, row + n, at(vectors, own + n * b))


@part
def _gather(rows: Array, base: int, M: int, N: int, b: int, vectors: Array, place: int) -> None:
    """Write rows of planes as vectors [M, N, b]."""
    for m in up_to(M):
        for i in up_to(b):
            own, row = place + m * N * b + i, base + (m * b + i) * padded(N)
            for n in up_to(N):
                put(vectors, own + n * b, at(rows, row + n))


@part
def _spread_blocks(
    blocks: Array, lane: int, V: int, N: int, b: int, turns: bool, planes: Array
) -> None:
    """Blocks [V, N, b, b], or angles [V, N] of turned planes, as planes [V, b, b, padded N]."""
    P = padded(N)
    for v in up_to(V):
        for n in up_to(N):
            own, place = (lane * V + v) * N + n, v * b * b * P + n
            if turns:
                cosine, sine = math.cos(at(blocks, own)), math.sin(at(blocks, own))
                put(planes, place, cosine)
                put(planes, place + P, -sine)
                put(planes, place + 2 * P, sine)
                put(planes, place + 3 * P, cosine)
            else:
                for entry in up_to(b * b):
                    put(planes, place + entry * P, at(blocks, own * b * b + entry))


@part
def _gather_blocks(
    by_planes: Array,
    planes: Array,
    lane: int,
    V: int,
    N: int,
    b: int,
    turns: bool,
    by_blocks: Array,
) -> None:
    """Write the gradient by planes as that by blocks, or by angles."""
    P = padded(N)
    for v in up_to(V):
        for n in up_to(N):
            own, place = (lane * V + v) * N + n, v * b * b * P + n
            if turns:
                cosine, sine = at(planes, place), at(planes, place + 2 * P)
                along = at(by_planes, place + 2 * P) - at(by_planes, place + P)
                across = at(by_planes, place) + at(by_planes, place + 3 * P)
                put(by_blocks, own, cosine * along - sine * across)
            else:
                for entry in up_to(b * b):
                    put(by_blocks, own * b * b + entry, at(by_planes, place + entry * P))


@loop
def blocks_forward(
    symbols: Array,
    blocks: Array,
    first: Array,
    readout: Array,
    states: Array,
    logits: Array,
    last: Array,
    sizes: Any,
    b: int,
    turns: bool,
    every: int,
    keep: bool,
) -> None:
    """h_t = A(x_t) h_{t-1}, z_t = C h_t, of blocks [G, V, N, b, b], or of angles [G, V, N].

    By an angle a plane turns, as blocks of 2 x 2 have it.

    First and last states are [G, F or B, N, b] and the readout [G, C, N, b]. States are
    [G, B, T + 1, b, padded N], or without `keep` [G, B, 2, b, padded N].
    """
    G, B, T, V, C, N, F = sizes
    rows, row = T + 1 if keep else 2, b * padded(N)
    planes, weights, begin = zeros(states, (V * b * row, C * row, row))
    panel, sums = empty(states, (padded(C) * row, GROUP * padded(C)))
    for lane in up_to(G):
        _spread_blocks(blocks, lane, V, N, b, turns, planes)
        _spread(readout, lane * C * N * b, C, N, b, weights)
        pack_columns(weights, 0, 1, C, row, panel)
        for word in spaced(lane * B, lane * B + B, 1):
            base = word * rows * row
            if F > 1 or word == lane * B:
                _spread(first, (word if F > 1 else lane) * N * b, 1, N, b, begin)
            for n in spaced(0, row, LANES):
                store(states, base + n, load(begin, n))
            for t in up_to(T):
                before = base + (t if keep else t % 2) * row
                after = base + (t + 1 if keep else (t + 1) % 2) * row
                operator = at(symbols, word * T + t) * b * row
                for to in up_to(b):
                    for n in spaced(0, padded(N), LANES):
                        found = zero_vector(states)
                        for k in up_to(b):
                            plane = operator + to * row + k * padded(N) + n
                            state = load(states, before + k * padded(N) + n)
                            found = found + load(planes, plane) * state
                        store(states, after + to * padded(N) + n, found)
                if every > 0 and (t + 1) % every == 0:
                    normalise_row(states, after, row)
                if not keep:
                    read_row(weights, 0, states, after, row, C, logits, (word * T + t) * C)
            end = base + (T if keep else T % 2) * row
            _gather(states, end, 1, N, b, last, word * N * b)
            if keep:
                found, own = (logits, word * T * C, C), (states, base + row, row)
                map_rows(own, (T, row, C), (panel, 0), no_rows(states), found, sums)
    release(planes)
    release(panel)


@loop
def blocks_backward(
    symbols: Array,
    blocks: Array,
    readout: Array,
    states: Array,
    by_logits: Array,
    by_last: Array,
    by_blocks: Array,
    by_first: Array,
    by_readout: Array,
    sizes: Any,
    b: int,
    turns: bool,
) -> None:
    """The gradients, of all states."""
    G, B, T, V, C, N, F = sizes
    row, ends = b * padded(N), exists(by_last)
    planes, weights = zeros(states, (V * b * row, C * row))
    gradient, wanted, by_planes, by_weights, adjoint, summed = empty(
        states, (row, T * row, V * b * row, C * row, row, row)
    )
    for lane in up_to(G):
        _spread_blocks(blocks, lane, V, N, b, turns, planes)
        _spread(readout, lane * C * N * b, C, N, b, weights)
        for n in spaced(0, V * b * row, LANES):
            store(by_planes, n, zero_vector(states))
        for n in spaced(0, C * row, LANES):
            store(by_weights, n, zero_vector(states))
        for n in spaced(0, row, LANES):
            store(summed, n, zero_vector(states))
        for word in spaced(lane * B, lane * B + B, 1):
            base = word * (T + 1) * row
            for n in spaced(0, row, LANES):
                store(adjoint, n, zero_vector(states))
            if ends:
                _spread(by_last, word * N * b, 1, N, b, adjoint)
            until = T
            while not ends and until > 0 and not any_of(by_logits, (word * T + until - 1) * C, C):
                until -= 1
            for n in spaced(0, until * row, LANES):
                store(wanted, n, zero_vector(states))
            given, rows, found = (
                (by_logits, word * T * C, C),
                (states, base + row, row),
                (wanted, 0, row),
            )
            read_rows_backward(given, rows, (weights, 0), (until, row, C), by_weights, found)
            for t in spaced(until - 1, -1, -1):
                for n in spaced(0, row, LANES):
                    store(adjoint, n, load(adjoint, n) + load(wanted, t * row + n))
                before, operator = base + t * row, at(symbols, word * T + t) * b * row
                for k in up_to(b):
                    for n in spaced(0, padded(N), LANES):
                        state, grown = load(states, before + k * padded(N) + n), zero_vector(states)
                        for to in up_to(b):
                            plane = operator + to * row + k * padded(N) + n
                            along = load(adjoint, to * padded(N) + n)
                            grown = grown + load(planes, plane) * along
                            store(by_planes, plane, load(by_planes, plane) + along * state)
                        store(gradient, k * padded(N) + n, grown)
                for n in spaced(0, row, LANES):
                    store(adjoint, n, load(gradient, n))
            if F > 1:
                _gather(adjoint, 0, 1, N, b, by_first, word * N * b)
            for n in spaced(0, row, LANES):
                store(summed, n, load(summed, n) + load(adjoint, n))
        _gather_blocks(by_planes, planes, lane, V, N, b, turns, by_blocks)
        _gather(by_weights, 0, C, N, b, by_readout, lane * C * N * b)
        if F == 1:
            _gather(summed, 0, 1, N, b, by_first, lane * N * b)
    release(planes)
    release(gradient)
