"""A network of saturating units whose state is a matrix, over all positions, and its backward pass.

R replicas, W words, T time, N heads, K rows of a state, P columns, which are the units.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, exists, put, release, zeros
from statetrack.ops.loops.panels import add_rows, pack_columns, pack_rows
from statetrack.ops.loops.tiles import add_products
from statetrack.ops.loops.vectors import (
    LANES,
    add_at,
    hyperbolic_tangent,
    load,
    load_some,
    padded,
    splat,
    store,
    store_some,
    total,
)


@part
def _copy_in(numbers: Array, place: int, K: int, P: int, state: Array, own: int) -> None:
    """Numbers [K, P] as rows of whole vectors, from an offset on."""
    for row in up_to(K):
        for i in spaced(0, P, LANES):
            some = load_some(numbers, place + row * P + i, least(LANES, P - i))
            store(state, own + row * padded(P) + i, some)


@part
def _copy_out(state: Array, own: int, K: int, P: int, numbers: Array, place: int) -> None:
    """The reverse."""
    for row in up_to(K):
        for i in spaced(0, P, LANES):
            some = load(state, own + row * padded(P) + i)
            store_some(numbers, place + row * P + i, least(LANES, P - i), some)


@loop
def matrix_network_forward(
    queries: Array,
    keys: Array,
    values: Array,
    forget: Array,
    weights: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    sizes: Any,
) -> None:
    """Outputs [R, W, T, N, P] of queries and keys [..., K], values [..., P] and gates [R, W, T, N].

    Weights are [R, N, P, P], states [R, W, N, K, P]. Unless empty, kept are the states before the
    first and after each position, then the tanh of each: [R, W, N, 2 T + 1, K, padded P].
    """
    R, W, T, N, K, P = sizes
    Q = padded(P)
    panels, state, sums = zeros(first, (P * Q, K * Q, K * Q))
    one = first.dtype.type(1)
    for lane in up_to(R):
        for head in up_to(N):
            pack_rows(weights, (lane * N + head) * P * P, 1, P, P, panels)
            for word in spaced(lane * W, (lane + 1) * W, 1):
                own = word * N + head
                begin = own * (2 * T + 1) * K * Q
                _copy_in(first, own * K * P, K, P, state, 0)
                if exists(kept):
                    _copy_in(first, own * K * P, K, P, kept, begin)
                for t in up_to(T):
                    position = (word * T + t) * N + head
                    for i in spaced(0, P, LANES):
                        value = load_some(values, position * P + i, least(LANES, P - i))
                        for row in up_to(K):
                            store(sums, row * Q + i, at(keys, position * K + row) * value)
                    right = panels, 0, P * LANES, LANES
                    add_products((state, 0, Q, 1), right, (K, P, Q // LANES), (sums, 0, Q))
                    keep = at(forget, position)
                    after = begin + (t + 1) * K * Q
                    moved = begin + (T + 1 + t) * K * Q
                    for i in spaced(0, P, LANES):
                        read = splat(first.dtype.type(0))
                        for row in up_to(K):
                            place = row * Q + i
                            unit = hyperbolic_tangent(load(sums, place), sums)
                            number = keep * load(state, place) + (one - keep) * unit
                            store(state, place, number)
                            if exists(kept):
                                store(kept, after + place, number)
                                store(kept, moved + place, unit)
                            read = read + at(queries, position * K + row) * number
                        store_some(outputs, position * P + i, least(LANES, P - i), read)
                _copy_out(state, 0, K, P, last, own * K * P)
    release(panels)


@loop
def matrix_network_backward(
    queries: Array,
    keys: Array,
    values: Array,
    forget: Array,
    weights: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_forget: Array,
    by_weights: Array,
    by_first: Array,
    sizes: Any,
) -> None:
    """Gradients of what the forward pass reads, from those of its outputs and last states.

    Those by queries, keys and weights begin as zeros; there may be none of last states.
    """
    R, W, T, N, K, P = sizes
    Q = padded(P)
    panels, by_state, by_sums, grown = zeros(kept, (P * Q, K * Q, K * Q, P * Q))
    one = kept.dtype.type(1)
    for lane in up_to(R):
        for head in up_to(N):
            maps = (lane * N + head) * P * P
            pack_columns(weights, maps, 1, P, P, panels)
            for word in spaced(lane * W, (lane + 1) * W, 1):
                own = word * N + head
                begin = own * (2 * T + 1) * K * Q
                if exists(by_last):
                    _copy_in(by_last, own * K * P, K, P, by_state, 0)
                else:
                    for place in spaced(0, K * Q, LANES):
                        store(by_state, place, splat(kept.dtype.type(0)))
                for t in spaced(T - 1, -1, -1):
                    position = (word * T + t) * N + head
                    keep = at(forget, position)
                    before = begin + t * K * Q
                    after = begin + (t + 1) * K * Q
                    moved = begin + (T + 1 + t) * K * Q
                    by_gate = splat(kept.dtype.type(0))
                    for i in spaced(0, P, LANES):
                        count = least(LANES, P - i)
                        by_read = load_some(by_outputs, position * P + i, count)
                        value = load_some(values, position * P + i, count)
                        by_value = splat(kept.dtype.type(0))
                        for row in up_to(K):
                            place = row * Q + i
                            number = position * K + row
                            unit = load(kept, moved + place)
                            slope = load(by_state, place) + at(queries, number) * by_read
                            add_at(by_queries, number, total(load(kept, after + place) * by_read))
                            by_gate = by_gate + slope * (load(kept, before + place) - unit)
                            by_sum = (one - keep) * slope * (one - unit * unit)
                            store(by_sums, place, by_sum)
                            add_at(by_keys, number, total(by_sum * value))
                            by_value = by_value + at(keys, number) * by_sum
                            store(by_state, place, keep * slope)
                        store_some(by_values, position * P + i, count, by_value)
                    put(by_forget, position, total(by_gate))
                    left, right = (by_sums, 0, Q, 1), (panels, 0, P * LANES, LANES)
                    add_products(left, right, (K, P, Q // LANES), (by_state, 0, Q))
                    left, right = (kept, before, 1, Q), (by_sums, 0, LANES, Q)
                    add_products(left, right, (P, K, Q // LANES), (grown, 0, Q))
                _copy_out(by_state, 0, K, P, by_first, own * K * P)
            add_rows(grown, P, P, Q, by_weights, maps, P)
            for place in spaced(0, P * Q, LANES):
                store(grown, place, splat(kept.dtype.type(0)))
    release(panels)
