"""Linear readouts of the states of a recurrence, their backward pass, and states near 1.

Rows are whole vectors: what follows their numbers is zero. Gradients are zero after the last
position of a word whose logits have any: padding takes no time.

M rows, B words, C labels, N numbers of a row.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import spaced, up_to
from statetrack.ops.loops.memory import Array, at, put, smallest
from statetrack.ops.loops.tiles import add_products
from statetrack.ops.loops.vectors import LANES, load, splat, store, total, zero_vector


@part
def read_row(
    readout: Array, first: int, row: Array, place: int, N: int, C: int, logits: Array, to: int
) -> None:
    """The logits of one row."""
    for label in up_to(C):
        found = zero_vector(logits)
        for n in spaced(0, N, LANES):
            found = found + load(readout, first + label * N + n) * load(row, place + n)
        put(logits, to + label, total(found))


@part
def _read_backward(
    given: Any, row: Any, readout: Any, sizes: Any, by_readout: Array, by_row: Any
) -> None:
    """Add the gradients by the readout and by a row [N] of its logits; sizes are N and C.

    All but the gradient by the readout are an array and a place.
    """
    (by_logits, place), (numbers, own), (weights, first), (N, C) = given, row, readout, sizes
    found, to = by_row
    for label in up_to(C):
        factor = splat(at(by_logits, place + label))
        for n in spaced(0, N, LANES):
            weight = first + label * N + n
            store(found, to + n, load(found, to + n) + factor * load(weights, weight))
            added = factor * load(numbers, own + n)
            store(by_readout, weight, load(by_readout, weight) + added)


@part
def read_rows_backward(
    given: Any, rows: Any, readout: Any, sizes: Any, by_readout: Array, by_rows: Any
) -> None:
    """Add the gradients by the readout and by rows [M, N] of their logits; sizes are M, N and C.

    Gradients, rows and gradients by rows are an array, a place and a stride, the readout an array
    and a place, which is that of its gradient too.
    """
    (by_logits, place, step), (numbers, row, stride), (M, N, C) = given, rows, sizes
    (weights, first), vectors = readout, N // LANES
    add_products((by_logits, place, step, 1), (weights, first, LANES, N), (M, C, vectors), by_rows)
    left, right = (by_logits, place, 1, step), (numbers, row, LANES, stride)
    add_products(left, right, (C, M, vectors), (by_readout, first, N))


@part
def any_of(array: Array, first: int, count: int) -> bool:
    """Whether any number is not zero."""
    found = False
    for n in spaced(first, first + count, 1):
        found = found or at(array, n) != 0
    return found


@part
def words_read(
    by_logits: Array, first: int, stride: int, B: int, C: int, reading: Array, words: Array
) -> int:
    """How many words have a gradient at a position or behind it, and which: they are read there."""
    count = 0
    for word in up_to(B):
        if at(reading, word) or any_of(by_logits, first + word * stride, C):
            put(reading, word, 1)
            put(words, count, word)
            count += 1
    return count


@part
def read_words_backward(
    given: Any, rows: Any, readout: Any, sizes: Any, words: Any, by_readout: Array, by_rows: Any
) -> None:
    """The same as `read_rows_backward` of some words: what others hold may not be finite."""
    (B, N, C), (numbers, count) = sizes, words
    if count == B:
        read_rows_backward(given, rows, readout, sizes, by_readout, by_rows)
    else:
        (by_logits, place, step), (states, row, stride) = given, rows
        found, to, width = by_rows
        for number in up_to(count):
            word = at(numbers, number)
            own, by_own = (states, row + word * stride), (found, to + word * width)
            wanted = by_logits, place + word * step
            _read_backward(wanted, own, readout, (N, C), by_readout, by_own)


@part
def normalise_row(row: Array, place: int, N: int) -> None:
    """Divide a row by a power of two, so that its largest magnitude is in [1, 2); zeros stay."""
    largest = smallest(row)
    for n in spaced(place, place + N, 1):
        size = abs(at(row, n))
        if size > largest:
            largest = size
    _, exponent = math.frexp(largest)
    factor = splat(row.dtype.type(math.ldexp(1.0, exponent - 1)))
    for n in spaced(0, N, LANES):
        store(row, place + n, load(row, place + n) / factor)
