"""Rows times a block-diagonal matrix, and the backward pass.

Small blocks are joined to larger ones, with zeros between them, whose rows fill vectors: that takes
more products than there are, and less time.

R replicas, M rows, n blocks, K inputs and J outputs of a block.
"""

from __future__ import annotations

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, empty, no_array, put, release
from statetrack.ops.loops.panels import pack_rows
from statetrack.ops.loops.rows import BLOCK, GROUP, map_rows, no_rows, outer_products
from statetrack.ops.loops.vectors import LANES, padded


@part
def _joined(n: int, K: int, J: int) -> int:
    """How many blocks are joined to one."""
    size = K if K > J else J
    return 1 if size >= LANES else least(n, LANES // size)


@part
def _join(
    blocks: Array, place: int, count: int, K: int, J: int, turned: bool, matrix: Array
) -> None:
    """Some blocks [K, J] as one matrix of rows without gaps, or its transpose."""
    height, width = (count * J, count * K) if turned else (count * K, count * J)
    for i in spaced(0, height * width, 1):
        put(matrix, i, blocks.dtype.type(0))
    for block in up_to(count):
        for k in up_to(K):
            for j in up_to(J):
                number = at(blocks, place + (block * K + k) * J + j)
                if turned:
                    put(matrix, (block * J + j) * width + block * K + k, number)
                else:
                    put(matrix, (block * K + k) * width + block * J + j, number)


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
    joined = _joined(n, K, J)
    height, width = joined * K, joined * J
    matrix, panels, sums = empty(
        outputs, (height * width, height * padded(width), GROUP * padded(width))
    )
    for lane in up_to(R):
        for block in spaced(0, n, joined):
            count = least(joined, n - block)
            H, G = count * K, count * J
            _join(blocks, (lane * n + block) * K * J, count, K, J, False, matrix)
            pack_rows(matrix, 0, 1, H, G, panels)
            rows = inputs, lane * M * stride + block * K, stride
            found = outputs, lane * M * n * J + block * J, n * J
            map_rows(rows, (M, H, G), (panels, 0), no_rows(blocks), found, sums)
    release(matrix)


@loop
def block_backward(
    inputs: Array,
    blocks: Array,
    by_outputs: Array,
    by_same: Array,
    by_inputs: Array,
    by_blocks: Array,
    R: int,
    M: int,
    n: int,
    K: int,
    J: int,
    stride: int,
) -> None:
    """The gradients; those by inputs are added to `by_same`, if any."""
    joined = _joined(n, K, J)
    height, width = joined * K, joined * J
    P, Q = padded(height), padded(width)
    matrix, panels, sums, packed, grown = empty(
        by_outputs, (height * width, width * P, GROUP * P, BLOCK * (Q + LANES), height * Q)
    )
    for lane in up_to(R):
        for block in spaced(0, n, joined):
            count, own = least(joined, n - block), (lane * n + block) * K * J
            H, G = count * K, count * J
            _join(blocks, own, count, K, J, True, matrix)
            pack_rows(matrix, 0, 1, G, H, panels)
            wanted = by_outputs, lane * M * n * J + block * J, n * J
            found = by_inputs, lane * M * n * K + block * K, n * K
            added = no_array(blocks), 0, by_same, lane * M * n * K + block * K, n * K
            map_rows(wanted, (M, G, H), (panels, 0), added, found, sums)
            for i in up_to(H * G):
                put(matrix, i, matrix.dtype.type(0))
            rows = inputs, lane * M * stride + block * K, stride
            outer_products(rows, wanted, (M, G, H), (matrix, 0, G), (packed, grown))
            for each in up_to(count):
                for k in up_to(K):
                    for j in up_to(J):
                        number = at(matrix, (each * K + k) * G + each * J + j)
                        put(by_blocks, own + (each * K + k) * J + j, number)
    release(matrix)
