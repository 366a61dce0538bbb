"""Linear maps of rows, and their backward pass.

R replicas, M rows, K inputs, N outputs.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, empty, exists, release
from statetrack.ops.loops.panels import add_rows, pack_columns, pack_rows
from statetrack.ops.loops.tiles import add_products
from statetrack.ops.loops.vectors import LANES, load, load_some, padded, splat, store, store_some

GROUP = 32
"""Rows whose products are taken at once."""

BLOCK = 128
"""Rows whose outer products are added up before they are added to those of others."""


@part
def _times(
    rows: Any, sizes: Any, panels: Array, biases: Any, found: Any, stride: int, sums: Array
) -> None:
    """Rows [M, K] times panels [N / LANES, K, LANES], plus biases [N] unless there are none.

    Rows, biases and what is found are an array and a place; rows have a stride; sizes are M, K, N.
    """
    (numbers, place), (added, bias), (results, to), (M, K, N) = rows, biases, found, sizes
    P = padded(N)
    zero = splat(sums.dtype.type(0))
    for start in spaced(0, M, GROUP):
        count = least(GROUP, M - start)
        array, own = sums, 0
        if N == P:
            array, own = results, to + start * N
        for i in spaced(0, N, LANES):
            begin = zero
            if exists(added):
                begin = load_some(added, bias + i, least(LANES, N - i))
            for row in up_to(count):
                store(array, own + row * P + i, begin)
        left, right = (numbers, place + start * stride, stride, 1), (panels, 0, K * LANES, LANES)
        add_products(left, right, (count, K, P // LANES), (array, own, P))
        if N < P:
            for row in up_to(count):
                for i in spaced(0, N, LANES):
                    part = load(sums, row * P + i)
                    store_some(results, to + (start + row) * N + i, least(LANES, N - i), part)


@loop
def linear_forward(
    inputs: Array,
    weights: Array,
    biases: Array,
    outputs: Array,
    R: int,
    M: int,
    K: int,
    N: int,
    stride: int,
) -> None:
    """Rows [R, M, K], which have a stride, times weights [R, N, K], plus biases: [R, M, N]."""
    panels, sums = empty(outputs, (padded(N) * K, GROUP * padded(N)))
    for lane in up_to(R):
        pack_columns(weights, lane * N * K, 1, N, K, panels)
        place, to = lane * M * stride, lane * M * N
        rows, bias, found = (inputs, place), (biases, lane * N), (outputs, to)
        _times(rows, (M, K, N), panels, bias, found, stride, sums)
    release(panels)


@loop
def linear_backward(
    inputs: Array,
    weights: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_weights: Array,
    by_biases: Array,
    nothing: Array,
    R: int,
    M: int,
    K: int,
    N: int,
    stride: int,
) -> None:
    """The gradients; those by weights and biases are added to zeros."""
    P = padded(K)
    panels, sums, packed, grown = empty(by_outputs, (P * N, GROUP * P, BLOCK * (P + LANES), N * P))
    zero = splat(by_outputs.dtype.type(0))
    for lane in up_to(R):
        own, to = lane * M * N, lane * M * K
        pack_rows(weights, lane * N * K, 1, N, K, panels)
        found = by_inputs, to
        _times((by_outputs, own), (M, N, K), panels, (nothing, 0), found, N, sums)
        for start in spaced(0, M, BLOCK):
            rows = least(BLOCK, M - start)
            for row in up_to(rows):
                for i in spaced(0, K, LANES):
                    here = (lane * M + start + row) * stride + i
                    store(
                        packed, row * (P + LANES) + i, load_some(inputs, here, least(LANES, K - i))
                    )
            for place in spaced(0, N * P, LANES):
                store(grown, place, zero)
            left = by_outputs, own + start * N, 1, N
            add_products(left, (packed, 0, LANES, P + LANES), (N, rows, P // LANES), (grown, 0, P))
            add_rows(grown, N, K, P, by_weights, lane * N * K, K)
        if exists(by_biases):
            for i in spaced(0, N, LANES):
                count, summed = least(LANES, N - i), zero
                for row in up_to(M):
                    summed = summed + load_some(by_outputs, own + row * N + i, count)
                store_some(by_biases, lane * N + i, count, summed)
    release(panels)
