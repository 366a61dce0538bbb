"""Pairs of neighbours in rows turned by angles, and the backward pass.

M rows, N width, J pairs that are turned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.ops.loops.compiling import compiled
from statetrack.ops.loops.vectors import (
    LANES,
    Array,
    doubled,
    firsts,
    load,
    load_some,
    put,
    store_some,
    swapped,
)

PAIRS = LANES // 2


@compiled
def _alternating(like: Array) -> Array:
    """The numbers -1, 1, -1, .. of a vector."""
    signs = np.empty(LANES, like.dtype)
    for lane in range(LANES):
        put(signs, lane, like.dtype.type(2 * (lane % 2) - 1))
    return signs


@compiled
def rotated_forward(
    rows: Array,
    cosines: Array,
    sines: Array,
    outputs: Array,
    M: int,
    N: int,
    J: int,
    strides: Any,
) -> None:
    """Rows [M, N] whose first J pairs (x, y) become (c x - s y, s x + c y), with c and s [M, J]."""
    signs = load(_alternating(rows), 0)
    for m in range(M):
        row, angle, own = m * strides[0], m * strides[1], m * N
        sine = m * strides[2]
        for j in range(0, J, PAIRS):
            count = min(PAIRS, J - j)
            pairs = load_some(rows, row + 2 * j, 2 * count)
            cosine = doubled(load_some(cosines, angle + j, count))
            turn = signs * doubled(load_some(sines, sine + j, count))
            found = pairs * cosine + swapped(pairs) * turn
            store_some(outputs, own + 2 * j, 2 * count, found)
        for i in range(2 * J, N, LANES):
            count = min(LANES, N - i)
            store_some(outputs, own + i, count, load_some(rows, row + i, count))


@compiled
def rotated_backward(
    rows: Array,
    cosines: Array,
    sines: Array,
    by_outputs: Array,
    by_rows: Array,
    by_cosines: Array,
    by_sines: Array,
    M: int,
    N: int,
    J: int,
    strides: Any,
) -> None:
    """The gradients."""
    signs = load(_alternating(rows), 0)
    for m in range(M):
        row, angle, own = m * strides[0], m * strides[1], m * N
        sine = m * strides[2]
        for j in range(0, J, PAIRS):
            count = min(PAIRS, J - j)
            pairs = load_some(rows, row + 2 * j, 2 * count)
            wanted = load_some(by_outputs, own + 2 * j, 2 * count)
            cosine = doubled(load_some(cosines, angle + j, count))
            turn = signs * doubled(load_some(sines, sine + j, count))
            found = wanted * cosine - swapped(wanted) * turn
            store_some(by_rows, own + 2 * j, 2 * count, found)
            along = wanted * pairs
            store_some(by_cosines, m * J + j, count, firsts(along + swapped(along)))
            along = signs * wanted * swapped(pairs)
            store_some(by_sines, m * J + j, count, firsts(along + swapped(along)))
        for i in range(2 * J, N, LANES):
            count = min(LANES, N - i)
            store_some(by_rows, own + i, count, load_some(by_outputs, own + i, count))
