"""Rows times a block-diagonal matrix, and the backward pass.

Small blocks are joined to larger ones, with zeros between them, whose rows fill vectors: that takes
more products than there are, and less time. Blocks of 4 x 4 need no zeros: a vector holds one row
each of several blocks, and is multiplied by one of every four numbers.

R replicas, M rows, n blocks, K inputs and J outputs of a block.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import (
    Array,
    at,
    beyond,
    empty,
    exists,
    no_array,
    put,
    release,
    zeros,
)
from statetrack.ops.loops.panels import pack_rows
from statetrack.ops.loops.rows import BLOCK, GROUP, map_rows, outer_products
from statetrack.ops.loops.vectors import (
    LANES,
    first_of_four,
    last_of_four,
    load,
    load_some,
    padded,
    second_of_four,
    splat,
    store,
    store_some,
    third_of_four,
)


@part
def joined(n: int, K: int, J: int) -> int:
    """How many blocks are joined to one."""
    size = K if K > J else J
    return 1 if size >= LANES else least(n, LANES // size)


@part
def _in_fours(K: int, J: int) -> bool:
    """Whether blocks are those of 4 x 4."""
    return K == 4 and J == 4


@part
def _among_fours(block: int, row: int, column: int) -> int:
    """Where a number of a block is in vectors of one row each of several blocks."""
    together = LANES // 4
    return (block // together * 4 + row) * LANES + block % together * 4 + column


@part
def room_for_panels(n: int, K: int, J: int) -> int:
    """How many numbers the panels of all blocks are."""
    together = joined(n, K, J)
    return (n + together - 1) // together * together * K * padded(together * J)


@part
def room_for_matrices(n: int, K: int, J: int) -> int:
    """How many numbers the sums are that `grow_blocks` adds to."""
    together = joined(n, K, J)
    if _in_fours(K, J):
        return (n + together - 1) // together * 4 * LANES
    return (n + together - 1) * K * together * J


@part
def pack_blocks(
    blocks: Array, place: int, sizes: Any, turned: bool, matrix: Array, panels: Array
) -> None:
    """Blocks [n, K, J], or their transposes, joined and in panels; a matrix is room for one."""
    n, K, J = sizes
    together = joined(n, K, J)
    if _in_fours(K, J):
        for i in spaced(0, (n + together - 1) // together * 4 * LANES, LANES):
            store(panels, i, splat(blocks.dtype.type(0)))
        for block in up_to(n):
            for k in up_to(4):
                for j in up_to(4):
                    row, column = (j, k) if turned else (k, j)
                    number = at(blocks, place + (block * 4 + k) * 4 + j)
                    put(panels, _among_fours(block, row, column), number)
        return
    inputs, outputs = (J, K) if turned else (K, J)
    for block in spaced(0, n, together):
        count = least(together, n - block)
        width = count * outputs
        for i in spaced(0, count * inputs * width, 1):
            put(matrix, i, blocks.dtype.type(0))
        for each in up_to(count):
            for k in up_to(K):
                for j in up_to(J):
                    row, column = (j, k) if turned else (k, j)
                    number = at(blocks, place + ((block + each) * K + k) * J + j)
                    own = (each * inputs + row) * width + each * outputs + column
                    put(matrix, own, number)
        to = beyond(panels, block * inputs * padded(together * outputs))
        pack_rows(matrix, 0, 1, count * inputs, width, to)


@part
def map_blocks(rows: Any, sizes: Any, panels: Array, added: Any, found: Any, sums: Array) -> None:
    """Rows [M, n K] times blocks in panels, plus rows [M, n J] if they exist.

    Rows, also those added and found, are an array, a place and a stride. Sizes are M, n, K, J.
    There is room for `GROUP` padded rows of sums.
    """
    (numbers, place, stride), (others, other, apart) = rows, added
    (results, to, width), (M, n, K, J) = found, sizes
    together = joined(n, K, J)
    if _in_fours(K, J):
        for i in spaced(0, n * 4, LANES):
            count, own = least(LANES, n * 4 - i), i * 4
            first, second = load(panels, own), load(panels, own + LANES)
            third, last = load(panels, own + 2 * LANES), load(panels, own + 3 * LANES)
            for row in up_to(M):
                number = load_some(numbers, place + row * stride + i, count)
                result = first_of_four(number) * first + second_of_four(number) * second
                result = result + third_of_four(number) * third + last_of_four(number) * last
                if exists(others):
                    result = result + load_some(others, other + row * apart + i, count)
                store_some(results, to + row * width + i, count, result)
        return
    for block in spaced(0, n, together):
        count = least(together, n - block)
        own, more = (numbers, place + block * K, stride), other + block * J
        given = panels, block * K * padded(together * J)
        nothing = no_array(numbers)
        where = results, to + block * J, width
        shape = M, count * K, count * J
        map_rows(own, shape, given, (nothing, 0, others, more, apart), where, sums)


@part
def grow_blocks(rows: Any, wanted: Any, sizes: Any, matrices: Array, room: Any) -> None:
    """Add outer products of rows [M, n K] and rows [M, n J] to matrices of joined blocks."""
    (numbers, place, stride), (given, own, width), (M, n, K, J) = rows, wanted, sizes
    together = joined(n, K, J)
    if _in_fours(K, J):
        for i in spaced(0, n * 4, LANES):
            count, to = least(LANES, n * 4 - i), i * 4
            first, second = load(matrices, to), load(matrices, to + LANES)
            third, last = load(matrices, to + 2 * LANES), load(matrices, to + 3 * LANES)
            for row in up_to(M):
                number = load_some(numbers, place + row * stride + i, count)
                along = load_some(given, own + row * width + i, count)
                first = first + first_of_four(number) * along
                second = second + second_of_four(number) * along
                third = third + third_of_four(number) * along
                last = last + last_of_four(number) * along
            store(matrices, to, first)
            store(matrices, to + LANES, second)
            store(matrices, to + 2 * LANES, third)
            store(matrices, to + 3 * LANES, last)
        return
    for block in spaced(0, n, together):
        count = least(together, n - block)
        left, right = (numbers, place + block * K, stride), (given, own + block * J, width)
        found = matrices, block * K * together * J, count * J
        outer_products(left, right, (M, count * J, count * K), found, room)


@part
def take_blocks(matrices: Array, sizes: Any, blocks: Array, place: int) -> None:
    """The blocks [n, K, J] of matrices of joined blocks, which become zeros."""
    n, K, J = sizes
    together = joined(n, K, J)
    if _in_fours(K, J):
        for block in up_to(n):
            for k in up_to(4):
                for j in up_to(4):
                    own = _among_fours(block, k, j)
                    put(blocks, place + (block * 4 + k) * 4 + j, at(matrices, own))
                    put(matrices, own, matrices.dtype.type(0))
        return
    for block in spaced(0, n, together):
        count, matrix = least(together, n - block), block * K * together * J
        for each in up_to(count):
            for k in up_to(K):
                for j in up_to(J):
                    own = matrix + (each * K + k) * count * J + each * J + j
                    put(blocks, place + ((block + each) * K + k) * J + j, at(matrices, own))
        for i in up_to(count * K * count * J):
            put(matrices, matrix + i, matrices.dtype.type(0))


@loop
def block_forward(inputs: Array, blocks: Array, outputs: Array, sizes: Any, stride: int) -> None:
    """Rows [R, M, n, K], which have a stride, times blocks [R, n, K, J]: [R, M, n, J]."""
    R, M, n, K, J = sizes
    together = joined(n, K, J)
    matrix, panels, sums = empty(
        outputs,
        (together * K * together * J, room_for_panels(n, K, J), GROUP * padded(together * J)),
    )
    for lane in up_to(R):
        pack_blocks(blocks, lane * n * K * J, (n, K, J), False, matrix, panels)
        for start in spaced(lane * M, lane * M + M, BLOCK):
            shape = least(BLOCK, lane * M + M - start), n, K, J
            rows, found = (inputs, start * stride, stride), (outputs, start * n * J, n * J)
            map_blocks(rows, shape, panels, (no_array(blocks), 0, 0), found, sums)
    release(matrix)


@loop
def block_backward(
    inputs: Array,
    blocks: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_blocks: Array,
    sizes: Any,
    stride: int,
) -> None:
    """The gradients."""
    R, M, n, K, J = sizes
    together = joined(n, K, J)
    height, width = together * K, together * J
    matrix, panels, sums, packed, grown = empty(
        by_outputs,
        (
            height * width,
            room_for_panels(n, J, K),
            GROUP * padded(height),
            BLOCK * (padded(width) + LANES),
            height * padded(width),
        ),
    )
    (matrices,) = zeros(by_outputs, (room_for_matrices(n, K, J),))
    for lane in up_to(R):
        pack_blocks(blocks, lane * n * K * J, (n, K, J), True, matrix, panels)
        for start in spaced(lane * M, lane * M + M, BLOCK):
            count = least(BLOCK, lane * M + M - start)
            wanted = by_outputs, start * n * J, n * J
            found = by_inputs, start * n * K, n * K
            map_blocks(wanted, (count, n, J, K), panels, (no_array(blocks), 0, 0), found, sums)
            rows = inputs, start * stride, stride
            grow_blocks(rows, wanted, (count, n, K, J), matrices, (packed, grown))
        take_blocks(matrices, (n, K, J), by_blocks, lane * n * K * J)
    release(matrix)
    release(matrices)
