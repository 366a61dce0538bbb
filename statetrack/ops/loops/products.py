"""Products of small matrices, whose rows are vectors: what loops over chunks are made of.

A chunk has at most `LANES` positions, so a matrix of positions by positions has one vector a row.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, put
from statetrack.ops.loops.vectors import LANES, load, load_some, splat, store, store_some

ALL, UP_TO, FROM = 0, 1, 2
"""Which terms of a sum count: all, those up to the row's own, or those from the row's own on."""


@part
def multiply(left: Any, right: Any, results: Any, sizes: Any, which: int, added: bool) -> None:
    """The products [rows, columns] of matrices [rows, terms] and [terms, columns], or added to.

    The left one is an array, a place in it, and how far it is from row to row and from term to
    term; the right one an array, a place and how far from term to term; the results' likewise.
    Sizes are rows, terms and columns. With `UP_TO` and `FROM` the left one has zeros where a term
    does not count.
    """
    left, place, row_stride, term_stride = left
    right, other, right_stride = right
    found, own, own_stride = results
    rows, terms, columns = sizes
    zero = splat(found.dtype.type(0))
    for column in spaced(0, columns, LANES):
        count = least(LANES, columns - column)
        row = 0
        while row + 4 <= rows:
            start = row if which == FROM else 0
            stop = least(terms, row + 4) if which == UP_TO else terms
            here, to = place + row * row_stride, own + row * own_stride + column
            first, second, third, fourth = zero, zero, zero, zero
            if added:
                first = load_some(found, to, count)
                second = load_some(found, to + own_stride, count)
                third = load_some(found, to + 2 * own_stride, count)
                fourth = load_some(found, to + 3 * own_stride, count)
            for term in spaced(start, stop, 1):
                part = load_some(right, other + term * right_stride + column, count)
                now = here + term * term_stride
                first = first + at(left, now) * part
                second = second + at(left, now + row_stride) * part
                third = third + at(left, now + 2 * row_stride) * part
                fourth = fourth + at(left, now + 3 * row_stride) * part
            store_some(found, to, count, first)
            store_some(found, to + own_stride, count, second)
            store_some(found, to + 2 * own_stride, count, third)
            store_some(found, to + 3 * own_stride, count, fourth)
            row += 4
        while row < rows:
            start = row if which == FROM else 0
            stop = least(terms, row + 1) if which == UP_TO else terms
            here, to = place + row * row_stride, own + row * own_stride + column
            first, second = zero, zero
            if added:
                first = load_some(found, to, count)
            term = start
            while term + 2 <= stop:
                now, then = here + term * term_stride, other + term * right_stride + column
                first = first + at(left, now) * load_some(right, then, count)
                part = load_some(right, then + right_stride, count)
                second = second + at(left, now + term_stride) * part
                term += 2
            if term < stop:
                part = load_some(right, other + term * right_stride + column, count)
                first = first + at(left, here + term * term_stride) * part
            store_some(found, to, count, first + second)
            row += 1


@part
def keep_first(matrix: Array, place: int, size: int, row: Any) -> None:
    """Write the first `size` numbers of a vector, and zeros behind them."""
    store(matrix, place, row)
    store(matrix, place, load_some(matrix, place, size))


@part
def sums_between(log_gates: Array, place: int, stride: int, length: int, sums: Array) -> None:
    """Rows t of the sums of log-gates after position s and up to t, [length, LANES].

    They are summed up for each pair: a difference of sums from the start would lose the digits
    that a large one of them has not. Numbers for s > t have no meaning.
    """
    row = splat(sums.dtype.type(0))
    for t in up_to(length):
        row = row + splat(at(log_gates, place + t * stride))
        store(sums, t * LANES, row)
        put(sums, t * LANES + t, sums.dtype.type(0))
        row = load(sums, t * LANES)
