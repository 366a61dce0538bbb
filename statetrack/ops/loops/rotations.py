"""Pairs of neighbours in rows turned by angles, and the backward pass.

M rows, N width, J pairs that are turned.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array
from statetrack.ops.loops.vectors import (
    LANES,
    alternating,
    doubled,
    firsts,
    load_some,
    store_some,
    swapped,
)

PAIRS = LANES // 2


@loop
def rotated_forward(
    rows: Array, cosines: Array, sines: Array, outputs: Array, sizes: Any, strides: Any
) -> None:
    """Rows [M, N] whose first J pairs (x, y) become (c x - s y, s x + c y), with c and s [M, J]."""
    M, N, J = sizes
    signs = alternating(rows.dtype.type(-1))
    for m in up_to(M):
        row, angle, own = m * strides[0], m * strides[1], m * N
        sine = m * strides[2]
        for j in spaced(0, J, PAIRS):
            count = least(PAIRS, J - j)
            pairs = load_some(rows, row + 2 * j, 2 * count)
            cosine = doubled(load_some(cosines, angle + j, count))
            turn = signs * doubled(load_some(sines, sine + j, count))
            found = pairs * cosine + swapped(pairs) * turn
            store_some(outputs, own + 2 * j, 2 * count, found)
        for i in spaced(2 * J, N, LANES):
            count = least(LANES, N - i)
            store_some(outputs, own + i, count, load_some(rows, row + i, count))


@loop
def rotated_backward(
    rows: Array,
    cosines: Array,
    sines: Array,
    by_outputs: Array,
    by_rows: Array,
    by_cosines: Array,
    by_sines: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """The gradients."""
    M, N, J = sizes
    signs = alternating(rows.dtype.type(-1))
    for m in up_to(M):
        row, angle, own = m * strides[0], m * strides[1], m * N
        sine = m * strides[2]
        for j in spaced(0, J, PAIRS):
            count = least(PAIRS, J - j)
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
        for i in spaced(2 * J, N, LANES):
            count = least(LANES, N - i)
            store_some(by_rows, own + i, count, load_some(by_outputs, own + i, count))
