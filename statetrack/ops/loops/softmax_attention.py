"""Causal softmax attention of heads whose queries and keys may be turned, and its backward pass.

    y_t = sum_{s <= t} p_ts v_s,    p_ts = softmax over s of (R_t q_t) . (R_s k_s) / sqrt(K)

with R_t the rotation of coordinates k and k + J by the angles of position t (Su et al. 2021,
arXiv:2104.09864). The weights p of `LANES` neighbouring queries are computed together, with the
queries as lanes, so that every sum over s adds vectors; in the backward pass they are computed
anew.

W words, T time, N heads, K size of a head, J = K / 2, or 0 where nothing is turned, P and Q the
numbers T and K rounded up to whole vectors.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, release, zeros
from statetrack.ops.loops.squares import transpose
from statetrack.ops.loops.tiles import add_products
from statetrack.ops.loops.vectors import (
    LANES,
    expect,
    exponential,
    from_lane,
    greater,
    load,
    load_some,
    padded,
    splat,
    store,
    store_some,
)


@part
def _read(rows: Array, place: int, stride: int, T: int, K: int, found: Array) -> None:
    """Copy rows [T, K], which have a stride, to [P, Q], with zeros behind each.

    The T rows behind, which are those of the next word, are asked for, as in all that follows.
    """
    Q = padded(K)
    for t in up_to(T):
        here = place + t * stride
        for i in spaced(0, K, LANES):
            expect(rows, here + T * stride + i)
            store(found, t * Q + i, load_some(rows, here + i, least(LANES, K - i)))


@part
def _write(rows: Array, T: int, K: int, found: Array, place: int, stride: int) -> None:
    """Copy the first T rows of [P, Q] to [T, K], whose rows have a stride."""
    Q = padded(K)
    for t in up_to(T):
        to = place + t * stride
        for i in spaced(0, K, LANES):
            expect(found, to + T * stride + i)
            store_some(found, to + i, least(LANES, K - i), load(rows, t * Q + i))


@part
def _turn(
    rows: Any, T: int, K: int, J: int, tables: Any, scale: float, back: bool, found: Array
) -> None:
    """Rows [T, K], turned by the angles of their positions or back, times a number: [P, Q].

    Rows are an array, a place and a stride, tables the cosines and the sines in rows of whole
    vectors. What is found has `LANES` numbers behind it: vectors are written as a whole, from such
    places and in such an order that those that follow overwrite what is behind each.
    """
    rows, place, stride = rows
    cosines, sines = tables
    Q, R = padded(K), padded(J)
    factor = found.dtype.type(scale)
    for t in up_to(T):
        here, to = place + t * stride, t * Q
        for i in spaced(0, K, LANES):
            expect(rows, here + T * stride + i)
        for j in spaced(R - LANES, -1, -LANES):
            cosine, sine = factor * load(cosines, t * R + j), factor * load(sines, t * R + j)
            if back:
                sine = found.dtype.type(0) - sine
            one = load_some(rows, here + j, least(LANES, K - j))
            two = load_some(rows, here + J + j, least(LANES, K - J - j))
            store(found, to + j, one * cosine - two * sine)
            store(found, to + J + j, one * sine + two * cosine)
        for i in spaced(2 * J, K, LANES):
            number = load_some(rows, here + i, least(LANES, K - i))
            store(found, to + i, factor * number)


@part
def _clear(rows: Array, size: int) -> None:
    """Write zeros, a whole number of vectors."""
    for i in spaced(0, size, LANES):
        store(rows, i, splat(rows.dtype.type(0)))


@part
def _as_columns(rows: Array, start: int, K: int, columns: Array) -> None:
    """`LANES` rows of [P, Q] from `start` on, as columns [Q, LANES]."""
    Q = padded(K)
    for i in spaced(0, K, LANES):
        transpose(rows, start * Q + i, Q, columns, i * LANES, LANES)


@part
def _products(rows: Array, columns: Array, stop: int, K: int, found: Array) -> None:
    """The products [stop, LANES] of the first rows of [P, Q] and columns [Q, LANES]."""
    Q = padded(K)
    _clear(found, stop * LANES)
    add_products((rows, 0, Q, 1), (columns, 0, 0, LANES), (stop, K, 1), (found, 0, LANES))


@part
def _weights(keys: Array, queries: Array, start: int, stop: int, K: int, weights: Array) -> Any:
    """The weights [stop, LANES] of positions for the queries from `start` on, given as columns.

    They are those of softmax times their sum for each query, of which the inverses are returned.
    """
    _products(keys, queries, stop, K, weights)
    highest = load(weights, 0)
    for s in spaced(1, start + 1, 1):
        highest = greater(highest, load(weights, s * LANES))
    for s in spaced(start + 1, stop, 1):
        score = from_lane(load(weights, s * LANES), s - start, weights.dtype.type(-math.inf))
        store(weights, s * LANES, score)
        highest = greater(highest, score)
    summed = splat(weights.dtype.type(0))
    for s in up_to(stop):
        weight = exponential(load(weights, s * LANES) - highest)
        store(weights, s * LANES, weight)
        summed = summed + weight
    return weights.dtype.type(1) / summed


@loop
def attention_forward(
    projected: Array, cosines: Array, sines: Array, outputs: Array, sizes: Any, stride: int
) -> None:
    """Outputs [W, T, N, K] of queries, keys and values [W, T, 3, N, K], in rows with a stride."""
    W, T, N, K, J = sizes
    P, Q, R, D = padded(T), padded(K), padded(J), N * K
    size, scale = P * Q + LANES, 1 / math.sqrt(K)
    queries, keys, values, columns, weights, shares, found, cosine, sine = zeros(
        outputs, (size, size, size, Q * LANES, P * LANES, LANES, LANES * Q, T * R, T * R)
    )
    _read(cosines, 0, J, T, J, cosine)
    _read(sines, 0, J, T, J, sine)
    tables = cosine, sine
    for word in up_to(W):
        for head in up_to(N):
            place = word * T * stride + head * K
            _turn((projected, place, stride), T, K, J, tables, scale, False, queries)
            _turn((projected, place + D, stride), T, K, J, tables, 1.0, False, keys)
            _read(projected, place + 2 * D, stride, T, K, values)
            for start in spaced(0, T, LANES):
                count = least(LANES, T - start)
                stop = start + count
                _as_columns(queries, start, K, columns)
                store(shares, 0, _weights(keys, columns, start, stop, K, weights))
                _clear(found, count * Q)
                left, right = (weights, 0, 1, LANES), (values, 0, LANES, Q)
                add_products(left, right, (count, stop, Q // LANES), (found, 0, Q))
                for t in up_to(count):
                    for i in spaced(t * Q, t * Q + Q, LANES):
                        store(found, i, at(shares, t) * load(found, i))
                _write(found, count, K, outputs, (word * T + start) * D + head * K, D)
    release(queries)


@loop
def attention_backward(
    projected: Array,
    cosines: Array,
    sines: Array,
    by_outputs: Array,
    by_projected: Array,
    sizes: Any,
    stride: int,
) -> None:
    """The gradients by queries, keys and values, [W, T, 3, N, K]."""
    W, T, N, K, J = sizes
    P, Q, R, D = padded(T), padded(K), padded(J), N * K
    size, scale, V = P * Q + LANES, 1 / math.sqrt(K), padded(K) // LANES
    queries, keys, values, wanted, by_queries, by_keys, by_values = zeros(
        by_outputs, (size, size, size, size, size, size, size)
    )
    columns, weights, by_weights, cosine, sine = zeros(
        by_outputs, (Q * LANES, P * LANES, P * LANES, T * R, T * R)
    )
    _read(cosines, 0, J, T, J, cosine)
    _read(sines, 0, J, T, J, sine)
    tables = cosine, sine
    for word in up_to(W):
        for head in up_to(N):
            place, own = word * T * stride + head * K, word * T * 3 * D + head * K
            _turn((projected, place, stride), T, K, J, tables, scale, False, queries)
            _turn((projected, place + D, stride), T, K, J, tables, 1.0, False, keys)
            _read(projected, place + 2 * D, stride, T, K, values)
            _read(by_outputs, word * T * D + head * K, D, T, K, wanted)
            _clear(by_queries, T * Q)
            _clear(by_keys, T * Q)
            _clear(by_values, T * Q)
            for start in spaced(0, T, LANES):
                count = least(LANES, T - start)
                stop = start + count
                _as_columns(queries, start, K, columns)
                share = _weights(keys, columns, start, stop, K, weights)
                _as_columns(wanted, start, K, columns)
                _products(values, columns, stop, K, by_weights)
                along = splat(by_outputs.dtype.type(0))
                for s in spaced(0, stop * LANES, LANES):
                    along = along + load(weights, s) * load(by_weights, s)
                along = share * along
                for s in spaced(0, stop * LANES, LANES):
                    weight = share * load(weights, s)
                    store(weights, s, weight)
                    store(by_weights, s, weight * (load(by_weights, s) - along))
                left, right = (weights, 0, LANES, 1), (wanted, start * Q, LANES, Q)
                add_products(left, right, (stop, count, V), (by_values, 0, Q))
                left, right = (by_weights, 0, LANES, 1), (queries, start * Q, LANES, Q)
                add_products(left, right, (stop, count, V), (by_keys, 0, Q))
                left, right = (by_weights, 0, 1, LANES), (keys, 0, LANES, Q)
                add_products(left, right, (count, stop, V), (by_queries, start * Q, Q))
            _turn((by_queries, 0, Q), T, K, J, tables, scale, True, queries)
            _turn((by_keys, 0, Q), T, K, J, tables, 1.0, True, keys)
            _write(queries, T, K, by_projected, own, 3 * D)
            _write(keys, T, K, by_projected, own + D, 3 * D)
            _write(by_values, T, K, by_projected, own + 2 * D, 3 * D)
    release(columns)
    release(queries)
