"""What the delta rule and attention share: gates of a matrix state's rows, and what is kept of it.

K key size, V value size, T time, n keys per position, G gates of a head.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, exists, put
from statetrack.ops.loops.vectors import (
    LANES,
    add_at,
    expect,
    exponential,
    load_some,
    padded,
    splat,
    store,
    store_some,
    total,
)

CHUNK = 16
"""Positions between two states that are kept for the backward pass."""


@part
def gains_of(log_gates: Array, place: int, G: int, K: int, gates: Array) -> None:
    """The exponentials of a head's G log-gates, for each of K rows; ones where there are none."""
    if G == 0:
        for i in spaced(0, K, LANES):
            store(gates, i, splat(gates.dtype.type(1)))
    elif G == 1:
        factor = exponential(splat(at(log_gates, place)))
        for i in spaced(0, K, LANES):
            store(gates, i, factor)
    else:
        for i in spaced(0, K, LANES):
            store(gates, i, exponential(load_some(log_gates, place + i, least(LANES, K - i))))


@part
def expect_row(numbers: Array, place: int, size: int) -> None:
    """Ask for the memory of a row, which need not exist."""
    for i in spaced(0, size, LANES):
        expect(numbers, place + i)


@part
def expect_rows(rows: Any, count: int, size: int) -> None:
    """The same of some rows, which are an array, a place and a stride."""
    numbers, place, stride = rows
    for row in up_to(count):
        expect_row(numbers, place + row * stride, size)


@part
def kept_place(own: int, t: int, T: int, K: int, V: int) -> int:
    """Where the state before a chunk, but the first, of head number `own` of W N is kept."""
    return (own * ((T - 1) // CHUNK) + t // CHUNK - 1) * K * padded(V)


@part
def kept_row(own: int, heads: int, place: int, T: int, n: int, K: int, V: int) -> int:
    """Where a row of a head's n T corrections is kept: after the states of all W N heads."""
    return heads * ((T - 1) // CHUNK) * K * padded(V) + (own * T * n + place) * padded(V)


@part
def transposed(states: Array, place: int, stride: int, count: int, V: int, columns: Array) -> None:
    """Some rows of a state as lanes, zeros beside them and where there is none: [V, LANES]."""
    for j in up_to(V):
        store(columns, j * LANES, splat(states.dtype.type(0)))
    if exists(states):
        for j in up_to(V):
            for i in up_to(count):
                put(columns, j * LANES + i, at(states, place + i * stride + j))


@part
def gain_lanes(log_gates: Array, place: int, G: int, first: int, count: int) -> Any:
    """The gains of some rows of a head, as lanes: ones where there are none."""
    if G == 0:
        return splat(log_gates.dtype.type(1))
    if G == 1:
        return exponential(splat(at(log_gates, place)))
    return exponential(load_some(log_gates, place + first, count))


@part
def add_gates(by_gates: Array, place: int, G: int, first: int, count: int, found: Any) -> None:
    """Write the gradients by log-gates of some rows, or add their sum to that of all."""
    if G == 1:
        add_at(by_gates, place, total(found))
    elif G > 1:
        store_some(by_gates, place + first, count, found)


@part
def clear(numbers: Array, word: int, head: int, start: int, T: int, N: int, size: int) -> None:
    """Write zeros to the rows of a head [T, N, size] of a word from a position on."""
    zero = splat(numbers.dtype.type(0))
    for t in spaced(start, T, 1):
        place = ((word * T + t) * N + head) * size
        for i in spaced(0, size, LANES):
            store_some(numbers, place + i, least(LANES, size - i), zero)


@part
def num_wanted(
    by_outputs: Array, by_last: Array, word: int, head: int, T: int, N: int, V: int
) -> Any:
    """How many positions of a head have a gradient: those up to the last one whose is not 0.

    Behind the end of a word none has one, and all gradients there stay zeros.
    """
    if exists(by_last):
        return T
    for t in spaced(T - 1, -1, -1):
        place = ((word * T + t) * N + head) * V
        for j in up_to(V):
            if at(by_outputs, place + j) != 0:
                return t + 1
    return 0
