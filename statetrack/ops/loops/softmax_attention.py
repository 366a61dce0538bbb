"""Causal softmax attention of heads whose queries and keys may be turned, and its backward pass.

    y_t = sum_{s <= t} p_ts v_s,    p_ts = softmax over s of (R_t q_t) . (R_s k_s) / sqrt(K)

with R_t the rotation of coordinates k and k + J by the angles of position t (Su et al. 2021,
arXiv:2104.09864). Of each word and head the weights p are held as a square, and are computed anew
in the backward pass: for the short words that most of training is made of.

W words, T time, N heads, K size of a head, J = K / 2, or 0 where nothing is turned.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, put, release, zeros
from statetrack.ops.loops.products import ALL, FROM, keep_first, multiply
from statetrack.ops.loops.vectors import (
    LANES,
    exponential,
    greater,
    largest_of,
    load,
    load_some,
    padded,
    splat,
    store,
    store_some,
    total,
)

ROWS = 16
"""Positions whose weights are computed together."""


@part
def _turned(
    rows: Any, T: int, K: int, J: int, tables: Any, scale: float, back: bool, found: Any
) -> None:
    """Rows [T, K], turned by the angles of their positions or back, times a number.

    Rows and what is found are an array, a place and a stride each, tables the cosines and the
    sines [T, J].
    """
    rows, place, stride = rows
    found, own, own_stride = found
    cosines, sines = tables
    factor = found.dtype.type(scale)
    for t in up_to(T):
        for j in spaced(0, J, LANES):
            count = least(LANES, J - j)
            cosine = load_some(cosines, t * J + j, count)
            sine = load_some(sines, t * J + j, count)
            if back:
                sine = found.dtype.type(0) - sine
            one = factor * load_some(rows, place + t * stride + j, count)
            two = factor * load_some(rows, place + t * stride + J + j, count)
            to = own + t * own_stride + j
            store_some(found, to, count, one * cosine - two * sine)
            store_some(found, to + J, count, one * sine + two * cosine)
        for i in spaced(2 * J, K, LANES):
            count = least(LANES, K - i)
            part = factor * load_some(rows, place + t * stride + i, count)
            store_some(found, own + t * own_stride + i, count, part)


@part
def _as_columns(rows: Array, place: int, stride: int, T: int, K: int, found: Array) -> None:
    """Rows [T, K] transposed, in rows of whole vectors."""
    P = padded(T)
    for t in up_to(T):
        for k in up_to(K):
            put(found, k * P + t, at(rows, place + t * stride + k))


@part
def _weights(queries: Array, columns: Array, T: int, K: int, weights: Array) -> None:
    """The weights p, [T, T] in rows of whole vectors, zeros after the row's own position.

    Behind the vectors that hold positions of the row's block nothing is written.
    """
    P, Q = padded(T), padded(K)
    for start in spaced(0, T, ROWS):
        count = least(ROWS, T - start)
        width = padded(start + count)
        multiply(
            (queries, start * Q, Q, 1),
            (columns, 0, P),
            (weights, start * P, P),
            (count, K, width),
            ALL,
            False,
        )
        for t in spaced(start, start + count, 1):
            row = t * P
            for s in spaced(t + 1, padded(t + 1), 1):
                put(weights, row + s, at(weights, row))
            most = load(weights, row)
            for s in spaced(LANES, t + 1, LANES):
                most = greater(most, load(weights, row + s))
            highest = splat(largest_of(most))
            summed = splat(weights.dtype.type(0))
            for s in spaced(0, t + 1, LANES):
                keep_first(
                    weights,
                    row + s,
                    least(LANES, t + 1 - s),
                    exponential(load(weights, row + s) - highest),
                )
                summed = summed + load(weights, row + s)
            share = weights.dtype.type(1) / total(summed)
            for s in spaced(0, t + 1, LANES):
                store(weights, row + s, share * load(weights, row + s))
            for s in spaced(padded(t + 1), width, LANES):
                store(weights, row + s, splat(weights.dtype.type(0)))


@loop
def attention_forward(
    projected: Array,
    cosines: Array,
    sines: Array,
    outputs: Array,
    W: int,
    T: int,
    N: int,
    K: int,
    J: int,
    stride: int,
) -> None:
    """Outputs [W, T, N, K] of queries, keys and values [W, T, 3, N, K], in rows with a stride."""
    P, Q = padded(T), padded(K)
    queries, keys, columns, weights = zeros(outputs, (T * Q, T * Q, K * P, T * P))
    tables, scale, D = (cosines, sines), 1 / math.sqrt(K), N * K
    for word in up_to(W):
        for head in up_to(N):
            place = word * T * stride + head * K
            _turned((projected, place, stride), T, K, J, tables, scale, False, (queries, 0, Q))
            _turned((projected, place + D, stride), T, K, J, tables, 1.0, False, (keys, 0, Q))
            _as_columns(keys, 0, Q, T, K, columns)
            _weights(queries, columns, T, K, weights)
            for start in spaced(0, T, ROWS):
                count = least(ROWS, T - start)
                multiply(
                    (weights, start * P, P, 1),
                    (projected, place + 2 * D, stride),
                    (outputs, (word * T + start) * D + head * K, D),
                    (count, start + count, K),
                    ALL,
                    False,
                )
    release(queries)


@loop
def attention_backward(
    projected: Array,
    cosines: Array,
    sines: Array,
    by_outputs: Array,
    by_projected: Array,
    W: int,
    T: int,
    N: int,
    K: int,
    J: int,
    stride: int,
) -> None:
    """The gradients by queries, keys and values, [W, T, 3, N, K]."""
    P, Q = padded(T), padded(K)
    queries, keys, columns, weights, by_weights, found = zeros(
        by_outputs, (T * Q, T * Q, K * P, T * P, T * P, T * Q)
    )
    tables, scale, D = (cosines, sines), 1 / math.sqrt(K), N * K
    for word in up_to(W):
        for head in up_to(N):
            place = word * T * stride + head * K
            wanted, own = word * T * D + head * K, word * T * 3 * D + head * K
            _turned((projected, place, stride), T, K, J, tables, scale, False, (queries, 0, Q))
            _turned((projected, place + D, stride), T, K, J, tables, 1.0, False, (keys, 0, Q))
            _as_columns(keys, 0, Q, T, K, columns)
            _weights(queries, columns, T, K, weights)
            multiply(
                (weights, 0, 1, P),
                (by_outputs, wanted, D),
                (by_projected, own + 2 * D, 3 * D),
                (T, T, K),
                FROM,
                False,
            )
            _as_columns(projected, place + 2 * D, stride, T, K, columns)
            for start in spaced(0, T, ROWS):
                count = least(ROWS, T - start)
                width = padded(start + count)
                multiply(
                    (by_outputs, wanted + start * D, D, 1),
                    (columns, 0, P),
                    (by_weights, start * P, P),
                    (count, K, width),
                    ALL,
                    False,
                )
                for t in spaced(start, start + count, 1):
                    along = splat(by_outputs.dtype.type(0))
                    for s in spaced(t * P, t * P + width, LANES):
                        along = along + load(weights, s) * load(by_weights, s)
                    shared = splat(total(along))
                    for s in spaced(t * P, t * P + width, LANES):
                        store(by_weights, s, load(weights, s) * (load(by_weights, s) - shared))
                multiply(
                    (by_weights, start * P, P, 1),
                    (keys, 0, Q),
                    (found, start * Q, Q),
                    (count, start + count, Q),
                    ALL,
                    False,
                )
            to = (by_projected, own, 3 * D)
            _turned((found, 0, Q), T, K, J, tables, scale, True, to)
            multiply((by_weights, 0, 1, P), (queries, 0, Q), (found, 0, Q), (T, T, Q), FROM, False)
            _turned((found, 0, Q), T, K, J, tables, 1.0, True, (by_projected, own + D, 3 * D))
    release(queries)
