"""Products of matrices in tiles: the sums of some rows and vectors stay in registers.

Terms are added in their order, whatever the size of a tile, so all sizes give the same numbers.
"""

from __future__ import annotations

import platform
from typing import Any

import numba
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import spaced
from statetrack.ops.loops.memory import intrinsic
from statetrack.ops.loops.vectors import LANES, in_all_lanes, kind_of

ROWS, VECTORS, TALL = 4, 4, 8
"""Rows and vectors of a whole tile, and rows of a tall one, of one vector."""

GROUP = 16
"""Words that a loop reads at once: their states stay in the fastest memory."""

PIECE = 8
"""Positions whose gradients are kept before those of the weights are taken of them."""


def registers() -> tuple[int, int]:
    """How many registers of vectors this machine has, and bytes of one."""
    told = numba.config.CPU_FEATURES  # type: ignore[attr-defined]
    features = binding.get_host_cpu_features().flatten() if told is None else told
    if "+avx512f" in features.split(","):
        return 32, 64
    return (16, 32) if "+avx" in features.split(",") else (32 - 16 * _is_x86(), 16)


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


def at_once(rows: int, vectors: int, bytes_each: int) -> tuple[int, int]:
    """The most rows and vectors whose sums, with one row of vectors, fit into the registers."""
    number, size = registers()
    each = -(-LANES * bytes_each // size)
    fitting = [
        (r, c)
        for r in range(1, rows + 1)
        for c in range(1, vectors + 1)
        if (r + 1) * c * each < number
    ]
    return max(fitting, key=lambda tile: (tile[0] * tile[1], tile[0]), default=(1, 1))


def _tile(rows: int, vectors: int) -> Any:
    """A function for loops that does what `add_products` does, for these rows and vectors."""

    @intrinsic
    def multiply(typing: Any, left: Any, right: Any, terms: Any, sums: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            dtype = left.types[0].dtype
            most_rows, most_vectors = at_once(rows, vectors, dtype.bitwidth // 8)
            parts = -(-rows // most_rows)
            most_rows = -(-rows // parts)  # no part is much smaller than another
            for row in range(0, rows, most_rows):
                for vector in range(0, vectors, most_vectors):
                    of_rows = range(row, min(rows, row + most_rows))
                    of_vectors = range(vector, min(vectors, vector + most_vectors))
                    _add_products(builder, dtype, of_rows, of_vectors, args)
            return context.get_dummy_value()

        return types.void(left, right, terms, sums), code

    return multiply


def _add_products(builder: Any, dtype: Any, rows: range, vectors: range, args: Any) -> None:
    """The code of one tile, whose sums are variables that LLVM keeps in registers."""
    given = [[builder.extract_value(args[number], i) for i in range(4)] for number in (0, 1, 3)]
    (left, place, row_stride, term_stride), (right, begin, vector_stride, step) = given[:2]
    sums, own, sum_stride, sum_step = given[2]
    kind, integer = kind_of(dtype), ir.IntType(64)

    def moved(start: Any, *by: tuple[Any, Any]) -> Any:
        for count, stride in by:
            start = builder.add(start, builder.mul(count, stride))
        return start

    def vector_at(array: Any, offset: Any) -> Any:
        return builder.bitcast(builder.gep(array, [offset]), kind.as_pointer())

    def loaded(pointer: Any) -> Any:
        found = builder.load(pointer)
        found.align = dtype.bitwidth // 8
        return found

    found = {}
    for row in rows:
        for vector in vectors:
            offset = moved(own, (integer(row), sum_stride), (integer(vector), sum_step))
            found[row, vector] = vector_at(sums, offset), cgutils.alloca_once(builder, kind)
    for pointer, variable in found.values():
        builder.store(loaded(pointer), variable)
    with cgutils.for_range(builder, args[2]) as loop:
        column = [
            loaded(vector_at(right, moved(begin, (loop.index, step), (integer(v), vector_stride))))
            for v in vectors
        ]
        for row in rows:
            offset = moved(place, (loop.index, term_stride), (integer(row), row_stride))
            number = in_all_lanes(builder, builder.load(builder.gep(left, [offset])))
            for vector, part in zip(vectors, column, strict=True):
                variable = found[row, vector][1]
                product = builder.fmul(number, part, flags=("contract",))
                summed = builder.fadd(builder.load(variable), product, flags=("contract",))
                builder.store(summed, variable)
    for pointer, variable in found.values():
        builder.store(builder.load(variable), pointer).align = dtype.bitwidth // 8


_whole, _row = _tile(ROWS, VECTORS), _tile(1, VECTORS)
_tall, _narrow, _single = _tile(TALL, 1), _tile(ROWS, 1), _tile(1, 1)


@part
def add_products(left: Any, right: Any, sizes: Any, sums: Any) -> None:
    """Add the products of numbers [rows, terms] and vectors [terms, vectors] to vectors of sums.

    The left is an array, a place, and how far it is from row to row and from term to term; the
    right an array, a place, and how far it is from vector to vector and from term to term; the sums
    an array, a place, and how far it is from row to row. Sizes are rows, terms and vectors.
    """
    numbers, place, row_stride, term_stride = left
    columns, begin, vector_stride, step = right
    rows, terms, vectors = sizes
    array, own, stride = sums
    whole, tall = rows // ROWS * ROWS, rows // TALL * TALL
    for first in spaced(0, vectors, VECTORS):
        if first + VECTORS <= vectors:
            several = columns, begin + first * vector_stride, vector_stride, step
            to = own + first * LANES
            for row in spaced(0, whole, ROWS):
                some = numbers, place + row * row_stride, row_stride, term_stride
                _whole(some, several, terms, (array, to + row * stride, stride, LANES))
            for row in spaced(whole, rows, 1):
                some = numbers, place + row * row_stride, row_stride, term_stride
                _row(some, several, terms, (array, to + row * stride, stride, LANES))
        else:
            for vector in spaced(first, vectors, 1):
                one = columns, begin + vector * vector_stride, vector_stride, step
                to = own + vector * LANES
                for row in spaced(0, tall, TALL):
                    some = numbers, place + row * row_stride, row_stride, term_stride
                    _tall(some, one, terms, (array, to + row * stride, stride, LANES))
                for row in spaced(tall, whole, ROWS):
                    some = numbers, place + row * row_stride, row_stride, term_stride
                    _narrow(some, one, terms, (array, to + row * stride, stride, LANES))
                for row in spaced(whole, rows, 1):
                    some = numbers, place + row * row_stride, row_stride, term_stride
                    _single(some, one, terms, (array, to + row * stride, stride, LANES))
