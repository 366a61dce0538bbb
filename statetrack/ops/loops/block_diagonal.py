"""Rows times a block-diagonal matrix of small blocks, and the backward pass.

R replicas, M rows, n blocks, K inputs and J outputs of a block.
"""

from __future__ import annotations

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, put, release, zeros
from statetrack.ops.loops.vectors import LANES, load, load_some, padded, splat, store, store_some

ROWS = 16
"""Rows that are in the fastest memory together."""


@part
def _packed(blocks: Array, lane: int, n: int, K: int, J: int, turned: bool, found: Array) -> None:
    """The rows of a replica's blocks [n, K, J], or the columns, each in whole vectors."""
    P, Q = padded(J), padded(K)
    for block in up_to(n):
        for i in up_to(K):
            for j in up_to(J):
                number = at(blocks, ((lane * n + block) * K + i) * J + j)
                if turned:
                    put(found, (block * J + j) * Q + i, number)
                else:
                    put(found, (block * K + i) * P + j, number)


@part
def _multiplied(
    row: Array, place: int, packed: Array, n: int, K: int, J: int, results: Array, own: int
) -> None:
    """A row [n, K] times packed blocks, from a place of the results on.

    Vectors reach beyond the J results of a block, into those of the next one, which are written
    after them; behind the last there must be room.
    """
    P = padded(J)
    for block in up_to(n):
        for j in spaced(0, J, LANES):
            summed = splat(results.dtype.type(0))
            for i in up_to(K):
                number = at(row, place + block * K + i)
                summed = summed + number * load(packed, (block * K + i) * P + j)
            store(results, own + block * J + j, summed)


@part
def _copied(rows: Array, place: int, size: int, found: Array, own: int) -> None:
    for i in spaced(0, size, LANES):
        count = least(LANES, size - i)
        store_some(found, own + i, count, load_some(rows, place + i, count))


@loop
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
    packed, results = zeros(outputs, (n * K * padded(J), n * J + LANES))
    for lane in up_to(R):
        _packed(blocks, lane, n, K, J, False, packed)
        for row in spaced(lane * M, lane * M + M, 1):
            _multiplied(inputs, row * stride, packed, n, K, J, results, 0)
            _copied(results, 0, n * J, outputs, row * n * J)
    release(packed)


@loop
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
    width = n * J + LANES
    turned, results, wanted, sums = zeros(
        by_outputs, (n * J * padded(K), n * K + LANES, ROWS * width, n * K * P)
    )
    for lane in up_to(R):
        _packed(blocks, lane, n, K, J, True, turned)
        for place in spaced(0, n * K * P, LANES):
            store(sums, place, splat(zero))
        for start in spaced(lane * M, lane * M + M, ROWS):
            count = least(ROWS, lane * M + M - start)
            for t in up_to(count):
                row = start + t
                _copied(by_outputs, row * n * J, n * J, wanted, t * width)
                _multiplied(wanted, t * width, turned, n, J, K, results, 0)
                _copied(results, 0, n * K, by_inputs, row * n * K)
            for block in up_to(n):
                for i in up_to(K):
                    for j in spaced(0, J, LANES):
                        place = (block * K + i) * P + j
                        summed = load(sums, place)
                        for t in up_to(count):
                            number = at(inputs, (start + t) * stride + block * K + i)
                            summed = summed + number * load(wanted, t * width + block * J + j)
                        store(sums, place, summed)
        for i in up_to(n * K):
            for j in spaced(0, J, LANES):
                own = (lane * n * K + i) * J + j
                store_some(by_blocks, own, least(LANES, J - j), load(sums, i * P + j))
    release(turned)
