"""Rows times a block-diagonal matrix of small blocks, and the backward pass.

R replicas, M rows, n blocks, K inputs and J outputs of a block.
"""

from __future__ import annotations

import numpy as np

from statetrack.ops.loops.compiling import compiled
from statetrack.ops.loops.vectors import (
    LANES,
    Array,
    at,
    load,
    load_some,
    padded,
    put,
    splat,
    store,
    store_some,
)

ROWS = 16
"""Rows that are in the fastest memory together."""


@compiled
def _packed(blocks: Array, lane: int, n: int, K: int, J: int, turned: bool, found: Array) -> None:
    """The rows of a replica's blocks [n, K, J], or the columns, each in whole vectors."""
    P, Q = padded(J), padded(K)
    for block in range(n):
        for i in range(K):
            for j in range(J):
                number = at(blocks, ((lane * n + block) * K + i) * J + j)
                if turned:
                    put(found, (block * J + j) * Q + i, number)
                else:
                    put(found, (block * K + i) * P + j, number)


@compiled
def _multiplied(
    row: Array, place: int, packed: Array, n: int, K: int, J: int, results: Array, own: int
) -> None:
    """A row [n, K] times packed blocks, from a place of the results on.

    Vectors reach beyond the J results of a block, into those of the next one, which are written
    after them; behind the last there must be room.
    """
    P = padded(J)
    for block in range(n):
        for j in range(0, J, LANES):
            summed = splat(results.dtype.type(0))
            for i in range(K):
                number = at(row, place + block * K + i)
                summed = summed + number * load(packed, (block * K + i) * P + j)
            store(results, own + block * J + j, summed)


@compiled
def _copied(rows: Array, place: int, size: int, found: Array, own: int) -> None:
    for i in range(0, size, LANES):
        count = min(LANES, size - i)
        store_some(found, own + i, count, load_some(rows, place + i, count))


@compiled
def block_forward(
    inputs: Array,
    blocks: Array,
    outputs: Array,
    R: int,
    M: int,
    n: int,
    K: int,
    J: int,
    stride: int,
) -> None:
    """Rows [R, M, n, K], which have a stride, times blocks [R, n, K, J]: [R, M, n, J]."""
    packed = np.zeros(n * K * padded(J), outputs.dtype)
    results = np.zeros(n * J + LANES, outputs.dtype)
    for lane in range(R):
        _packed(blocks, lane, n, K, J, False, packed)
        for row in range(lane * M, lane * M + M):
            _multiplied(inputs, row * stride, packed, n, K, J, results, 0)
            _copied(results, 0, n * J, outputs, row * n * J)


@compiled
def block_backward(
    inputs: Array,
    blocks: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_blocks: Array,
    R: int,
    M: int,
    n: int,
    K: int,
    J: int,
    stride: int,
) -> None:
    """The gradients."""
    zero, P = by_outputs.dtype.type(0), padded(J)
    turned = np.zeros(n * J * padded(K), by_outputs.dtype)
    results = np.zeros(n * K + LANES, by_outputs.dtype)
    width = n * J + LANES
    wanted = np.zeros(ROWS * width, by_outputs.dtype)
    sums = np.zeros(n * K * P, by_outputs.dtype)
    for lane in range(R):
        _packed(blocks, lane, n, K, J, True, turned)
        for place in range(0, n * K * P, LANES):
            store(sums, place, splat(zero))
        for start in range(lane * M, lane * M + M, ROWS):
            count = min(ROWS, lane * M + M - start)
            for t in range(count):
                row = start + t
                _copied(by_outputs, row * n * J, n * J, wanted, t * width)
                _multiplied(wanted, t * width, turned, n, J, K, results, 0)
                _copied(results, 0, n * K, by_inputs, row * n * K)
            for block in range(n):
                for i in range(K):
                    for j in range(0, J, LANES):
                        place = (block * K + i) * P + j
                        summed = load(sums, place)
                        for t in range(count):
                            number = at(inputs, (start + t) * stride + block * K + i)
                            summed = summed + number * load(wanted, t * width + block * J + j)
                        store(sums, place, summed)
        for i in range(n * K):
            for j in range(0, J, LANES):
                own = (lane * n * K + i) * J + j
                store_some(by_blocks, own, min(LANES, J - j), load(sums, i * P + j))
