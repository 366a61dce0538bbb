"""Products of matrices in tiles: the sums of some rows and vectors stay in registers.

Terms are added in their order, whatever the size of a tile, so all sizes give the same numbers.
"""

from __future__ import annotations

import platform
from typing import Any, Literal

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


def _tile(rows: int, vectors: int, gathered: Literal["rows", "terms"] | None = None) -> Any:
    """A function for loops that does what `add_products` does, for these rows and vectors.

    With rows or terms that are gathered it has one more argument: an array of whole numbers, and
    the place of the first, and of rows of the last one. Rows have these numbers in place of 0, 1,
    .., the last one for all that are missing, so that it may be computed twice: their products are
    not added to sums, but written. Terms have pairs of them, which are added to the places of the
    left and of the right side.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dtype = signature.args[0].types[0].dtype
        most_rows, most_vectors = at_once(rows, vectors, dtype.bitwidth // 8)
        parts = -(-rows // most_rows)
        most_rows = -(-rows // parts)  # no part is much smaller than another
        for row in range(0, rows, most_rows):
            for vector in range(0, vectors, most_vectors):
                of_rows = range(row, min(rows, row + most_rows))
                of_vectors = range(vector, min(vectors, vector + most_vectors))
                _add_products(builder, dtype, of_rows, of_vectors, args, gathered)
        return context.get_dummy_value()

    if gathered is None:

        @intrinsic
        def multiply(typing: Any, left: Any, right: Any, terms: Any, sums: Any) -> Any:
            return types.void(left, right, terms, sums), code

        return multiply

    @intrinsic
    def multiply_gathered(
        typing: Any, left: Any, right: Any, terms: Any, sums: Any, numbers: Any
    ) -> Any:
        return types.void(left, right, terms, sums, numbers), code

    return multiply_gathered


def _add_products(
    builder: Any, dtype: Any, rows: range, vectors: range, args: Any, gathered: str | None
) -> None:
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

    def gathered_at(offset: Any) -> Any:
        return builder.load(builder.gep(builder.extract_value(args[4], 0), [offset]))

    def row_number(row: int) -> Any:
        if gathered != "rows":
            return integer(row)
        first, last = (builder.extract_value(args[4], i) for i in (1, 2))
        wanted = builder.add(first, integer(row))
        is_there = builder.icmp_signed("<", wanted, last)
        return gathered_at(builder.select(is_there, wanted, last))

    numbers = {row: row_number(row) for row in rows}
    found = {}
    for row in rows:
        for vector in vectors:
            offset = moved(own, (numbers[row], sum_stride), (integer(vector), sum_step))
            found[row, vector] = vector_at(sums, offset), cgutils.alloca_once(builder, kind)
    for pointer, variable in found.values():
        begins = ir.Constant(kind, [0.0] * LANES) if gathered == "rows" else loaded(pointer)
        builder.store(begins, variable)
    with cgutils.for_range(builder, args[2]) as loop:
        here, then = moved(place, (loop.index, term_stride)), moved(begin, (loop.index, step))
        if gathered == "terms":
            pair = moved(builder.extract_value(args[4], 1), (loop.index, integer(2)))
            here = builder.add(place, gathered_at(pair))
            then = builder.add(begin, gathered_at(builder.add(pair, integer(1))))
        column = [
            loaded(vector_at(right, moved(then, (integer(vector), vector_stride))))
            for vector in vectors
        ]
        for row in rows:
            offset = moved(here, (numbers[row], row_stride))
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


_whole_of_rows, _narrow_of_rows = _tile(ROWS, VECTORS, "rows"), _tile(ROWS, 1, "rows")
_whole_of_terms, _narrow_of_terms = _tile(ROWS, VECTORS, "terms"), _tile(ROWS, 1, "terms")


@part
def products_of_rows(left: Any, right: Any, sizes: Any, sums: Any, numbers: Any) -> None:
    """Write the products of rows with certain numbers, at an array's places from one to another.

    The place of the last number is before the second one. Sizes are terms and vectors.
    """
    columns, begin, vector_stride, step = right
    terms, vectors = sizes
    array, own, stride = sums
    given, first_row, last_row = numbers
    for row in spaced(first_row, last_row, ROWS):
        some = given, row, last_row - 1
        vector = 0
        while vector < vectors:
            several = columns, begin + vector * vector_stride, vector_stride, step
            found = array, own + vector * LANES, stride, LANES
            if vectors - vector >= VECTORS:
                _whole_of_rows(left, several, terms, found, some)
                vector += VECTORS
            else:
                _narrow_of_rows(left, several, terms, found, some)
                vector += 1


@part
def add_products_of_terms(left: Any, right: Any, sizes: Any, sums: Any, places: Any) -> None:
    """The same of whole tiles of rows, with terms whose places are pairs of whole numbers.

    The left is an array and how far it is from row to row, the right an array, and places an array
    and the first of them. Sizes are rows, terms and vectors.
    """
    (numbers, row_stride), (columns,), (given, first) = left, right, places
    rows, terms, vectors = sizes
    array, own, stride = sums
    for row in spaced(0, rows, ROWS):
        vector = 0
        while vector < vectors:
            some = numbers, row * row_stride, row_stride, 0
            several, found = (
                (columns, vector * LANES, LANES, 0),
                own + row * stride + vector * LANES,
            )
            if vectors - vector >= VECTORS:
                _whole_of_terms(some, several, terms, (array, found, stride, LANES), (given, first))
                vector += VECTORS
            else:
                _narrow_of_terms(
                    some, several, terms, (array, found, stride, LANES), (given, first)
                )
                vector += 1
