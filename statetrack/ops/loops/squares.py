"""Squares of `LANES` rows and columns, whose rows become columns."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, intrinsic
from statetrack.ops.loops.vectors import LANES, kind_of, load_some, splat, store


@intrinsic
def transpose(
    typing: Any, rows: Any, place: Any, stride: Any, columns: Any, to: Any, width: Any
) -> Any:
    """Write the columns of a square, of rows that have a stride; columns have a width."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, place, stride, found, to, width = args
        kind, integer = kind_of(rows.dtype), ir.IntType(64)

        def vector_at(array: Any, offset: Any) -> Any:
            return builder.bitcast(builder.gep(array, [offset]), kind.as_pointer())

        given = []
        for row in range(LANES):
            offset = builder.add(place, builder.mul(integer(row), stride))
            given.append(builder.load(vector_at(array, offset)))
            given[-1].align = rows.dtype.bitwidth // 8
        for row, vector in enumerate(_transposed(builder, given)):
            offset = builder.add(to, builder.mul(integer(row), width))
            builder.store(vector, vector_at(found, offset)).align = rows.dtype.bitwidth // 8
        return context.get_dummy_value()

    strides = types.int64, types.int64
    return types.void(rows, *strides, columns, *strides), code


@part
def turned(
    matrix: Any, rows: int, columns: int, found: Array, to: int, width: int, square: Array
) -> None:
    """A matrix [rows, columns] transposed, in rows of a width, in whole squares with zeros.

    The matrix is an array, a place and a stride. A square holds `LANES` vectors.
    """
    numbers, place, stride = matrix
    for first in spaced(0, rows, LANES):
        for i in spaced(0, columns, LANES):
            count = least(LANES, columns - i)
            some = least(LANES, rows - first)
            for row in up_to(some):
                part = load_some(numbers, place + (first + row) * stride + i, count)
                store(square, row * LANES, part)
            for row in spaced(some, LANES, 1):
                store(square, row * LANES, splat(square.dtype.type(0)))
            transpose(square, 0, LANES, found, to + i * width + first, width)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of rows: of any two neighbours the even columns, and the odd ones, are one row.

    Each half is transposed in the same way, until rows are columns.
    """
    if len(rows) == 1:
        return rows
    halves = []
    for first in range(2):
        order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(first, 2 * LANES, 2)))
        both = zip(rows[::2], rows[1::2], strict=True)
        halves.append([builder.shuffle_vector(one, two, order) for one, two in both])
    evens, odds = (_transposed(builder, half) for half in halves)
    return [row for pair in zip(evens, odds, strict=True) for row in pair]
