"""Products of many rows: with weights in panels, and with other rows, summed over all of them.

M rows, K inputs, N outputs.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, exists, no_array
from statetrack.ops.loops.panels import add_rows
from statetrack.ops.loops.tiles import add_products
from statetrack.ops.loops.vectors import (
    LANES,
    add_some,
    load,
    load_some,
    padded,
    splat,
    store,
    store_some,
)

GROUP = 32
"""Rows whose products with weights are taken at once."""

BLOCK = 128
"""Rows whose outer products are added up before they are added to those of others."""


@part
def no_rows(like: Array) -> Any:
    """What `map_rows` is to add where it is to add nothing; the array gives the type."""
    return no_array(like), 0, no_array(like), 0, 0


@part
def biases_alone(biases: Array, place: int) -> Any:
    """What `map_rows` is to add: biases [N], if there are any."""
    return biases, place, no_array(biases), 0, 0


@part
def map_rows(rows: Any, sizes: Any, panels: Any, added: Any, found: Any, sums: Array) -> None:
    """Rows [M, K] times panels [N / LANES, K, LANES], plus biases [N] and other rows [M, N].

    Rows and what is found are an array, a place and a stride, panels an array and a place; what is
    added are biases and their place, and rows, of which either may not exist. Sizes are M, K, N.
    There is room for `GROUP` padded rows of sums.
    """
    (numbers, place, stride), (weights, begin) = rows, panels
    (biases, bias, others, other, apart), (M, K, N) = added, sizes
    results, to, width = found
    P = padded(N)
    zero = splat(sums.dtype.type(0))
    for start in spaced(0, M, GROUP):
        count = least(GROUP, M - start)
        array, own, step = sums, 0, P
        if N == P:
            array, own, step = results, to + start * width, width
        for i in spaced(0, N, LANES):
            number, first = least(LANES, N - i), zero
            if exists(biases):
                first = load_some(biases, bias + i, number)
            for row in up_to(count):
                if exists(others):
                    more = load_some(others, other + (start + row) * apart + i, number)
                    store(array, own + row * step + i, first + more)
                else:
                    store(array, own + row * step + i, first)
        left = numbers, place + start * stride, stride, 1
        right = weights, begin, K * LANES, LANES
        add_products(left, right, (count, K, P // LANES), (array, own, step))
        if N < P:
            for row in up_to(count):
                for i in spaced(0, N, LANES):
                    part = load(sums, row * P + i)
                    store_some(results, to + (start + row) * width + i, least(LANES, N - i), part)


@part
def add_columns(rows: Array, start: int, count: int, width: int, sums: Array, place: int) -> None:
    """Add some rows [.., width] to a row of sums."""
    for row in spaced(start, start + count, 1):
        for i in spaced(0, width, LANES):
            number = least(LANES, width - i)
            add_some(sums, place + i, number, load_some(rows, row * width + i, number))


@part
def outer_products(left: Any, right: Any, sizes: Any, found: Any, room: Any) -> None:
    """Add the sum over rows [M, N] and [M, K] of their outer products to numbers [N, K].

    Rows and numbers are an array, a place and a stride. Sizes are M, K, N. There is room for
    `BLOCK` rows of padded K and `LANES` numbers, and for N padded rows.
    """
    (wanted, own, width), (rows, place, stride), (M, K, N) = left, right, sizes
    packed, grown = room
    for start in spaced(0, M, BLOCK):
        count = least(BLOCK, M - start)
        for row in up_to(count):
            for i in spaced(0, K, LANES):
                part = load_some(rows, place + (start + row) * stride + i, least(LANES, K - i))
                store(packed, row * (padded(K) + LANES) + i, part)
        some = wanted, own + start * width, width
        outer_products_of_block(some, packed, (count, K, N), found, grown)


@part
def outer_products_of_block(left: Any, packed: Array, sizes: Any, found: Any, grown: Array) -> None:
    """The same of few rows, the right ones of padded K and `LANES` numbers."""
    (wanted, own, width), (count, K, N), (sums, to, step) = left, sizes, found
    P = padded(K)
    for i in spaced(0, N * P, LANES):
        store(grown, i, splat(packed.dtype.type(0)))
    numbers, vectors = (wanted, own, 1, width), (packed, 0, LANES, P + LANES)
    add_products(numbers, vectors, (N, count, P // LANES), (grown, 0, P))
    add_rows(grown, N, K, P, sums, to, step)
