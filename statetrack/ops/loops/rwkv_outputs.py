"""The outputs of the heads of RWKV-6 and RWKV-7, and their backward pass.

R replicas, M rows, N heads of a row, K size of a head.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array
from statetrack.ops.loops.vectors import (
    LANES,
    add_some,
    keep_some,
    load_some,
    sigmoid,
    splat,
    store_some,
    total,
)


@part
def _weight(
    queries: Array, query: int, keys: Array, key: int, bonuses: Array, own: int, K: int
) -> Any:
    """The weight q . (rho * k) of a position's own value."""
    along = splat(queries.dtype.type(0))
    for i in spaced(0, K, LANES):
        count = least(LANES, K - i)
        bonus = load_some(bonuses, own + i, count)
        query_part = load_some(queries, query + i, count)
        along = along + query_part * bonus * load_some(keys, key + i, count)
    return total(along)


@part
def _measured(
    read: Array, place: int, values: Array, value: int, weight: Any, K: int, epsilon: float
) -> Any:
    """The mean of a head of x + weight v, and what its deviations from it are multiplied by."""
    summed = splat(read.dtype.type(0))
    for i in spaced(0, K, LANES):
        count = least(LANES, K - i)
        part = load_some(read, place + i, count) + weight * load_some(values, value + i, count)
        summed = summed + part
    mean = total(summed) / read.dtype.type(K)
    squares = splat(read.dtype.type(0))
    for i in spaced(0, K, LANES):
        count = least(LANES, K - i)
        part = load_some(read, place + i, count) + weight * load_some(values, value + i, count)
        part = keep_some(part - mean, count)
        squares = squares + part * part
    return mean, read.dtype.type(1 / math.sqrt(total(squares) / K + epsilon))


@loop
def outputs_forward(
    read: Array,
    queries: Array,
    keys: Array,
    values: Array,
    gates: Array,
    bonuses: Array,
    gains: Array,
    biases: Array,
    outputs: Array,
    sizes: Any,
    epsilon: float,
    within: bool,
    strides: Any,
) -> None:
    """G (norm(x) gains + biases + w v), w = q . (rho * k), of rows x, q, k, v and g [R, M, N, K].

    `within`: g sigmoid(g) (norm(x + w v) gains + biases). Bonuses rho, gains, biases: [R, N, K].
    """
    R, M, N, K = sizes
    zero = read.dtype.type(0)
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(N):
                first, to = (lane * N + head) * K, (row * N + head) * K
                here, query, key, value, gate_place = (
                    row * strides[0] + head * K,
                    row * strides[1] + head * K,
                    row * strides[2] + head * K,
                    row * strides[3] + head * K,
                    row * strides[4] + head * K,
                )
                weight = _weight(queries, query, keys, key, bonuses, first, K)
                inner, outer = (weight, zero) if within else (zero, weight)
                mean, measure = _measured(read, here, values, value, inner, K, epsilon)
                for i in spaced(0, K, LANES):
                    count, own = least(LANES, K - i), first + i
                    own_value = load_some(values, value + i, count)
                    part = load_some(read, here + i, count) + inner * own_value
                    part = measure * (part - mean) * load_some(gains, own, count)
                    part = part + load_some(biases, own, count) + outer * own_value
                    gate = load_some(gates, gate_place + i, count)
                    if within:
                        gate = gate * sigmoid(gate, read)
                    store_some(outputs, to + i, count, gate * part)


@loop
def outputs_backward(
    read: Array,
    queries: Array,
    keys: Array,
    values: Array,
    gates: Array,
    bonuses: Array,
    gains: Array,
    biases: Array,
    by_outputs: Array,
    by_read: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_gates: Array,
    by_bonuses: Array,
    by_gains: Array,
    by_biases: Array,
    sizes: Any,
    epsilon: float,
    within: bool,
    strides: Any,
) -> None:
    """The gradients; those by bonuses, gains and biases are added to zeros."""
    R, M, N, K = sizes
    zero, one = read.dtype.type(0), read.dtype.type(1)
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(N):
                first, to = (lane * N + head) * K, (row * N + head) * K
                here, query, key, value, gate_place = (
                    row * strides[0] + head * K,
                    row * strides[1] + head * K,
                    row * strides[2] + head * K,
                    row * strides[3] + head * K,
                    row * strides[4] + head * K,
                )
                weight = _weight(queries, query, keys, key, bonuses, first, K)
                inner, outer = (weight, zero) if within else (zero, weight)
                mean, measure = _measured(read, here, values, value, inner, K, epsilon)
                summed, along, by_weights = splat(zero), splat(zero), splat(zero)
                for i in spaced(0, K, LANES):
                    count, own, place = least(LANES, K - i), first + i, to + i
                    own_value = load_some(values, value + i, count)
                    part = load_some(read, here + i, count) + inner * own_value
                    normal, gain = measure * (part - mean), load_some(gains, own, count)
                    part = normal * gain + load_some(biases, own, count) + outer * own_value
                    gate = load_some(gates, gate_place + i, count)
                    wanted = load_some(by_outputs, place, count)
                    by_gate = wanted * part
                    if within:
                        share = sigmoid(gate, read)
                        by_gate = by_gate * share * (one + gate * (one - share))
                        gate = gate * share
                    store_some(by_gates, place, count, by_gate)
                    wanted = wanted * gate
                    add_some(by_biases, own, count, wanted)
                    add_some(by_gains, own, count, wanted * normal)
                    by_weights = by_weights + wanted * own_value
                    store_some(by_values, place, count, outer * wanted)
                    wanted = wanted * gain
                    store_some(by_read, place, count, wanted)  # until its gradient is known
                    summed = summed + wanted
                    along = along + wanted * normal
                middle, shared = (
                    total(summed) / read.dtype.type(K),
                    total(along) / read.dtype.type(K),
                )
                if within:
                    by_weights = splat(zero)
                for i in spaced(0, K, LANES):
                    count, place = least(LANES, K - i), to + i
                    own_value = load_some(values, value + i, count)
                    part = load_some(read, here + i, count) + inner * own_value
                    normal = measure * (part - mean)
                    wanted = measure * (load_some(by_read, place, count) - middle - shared * normal)
                    store_some(by_read, place, count, wanted)
                    if within:
                        by_weights = by_weights + wanted * own_value
                        store_some(by_values, place, count, inner * wanted)
                by_weight = total(by_weights)
                for i in spaced(0, K, LANES):
                    count, own, place = least(LANES, K - i), first + i, to + i
                    bonus = by_weight * load_some(bonuses, own, count)
                    query_part = load_some(queries, query + i, count)
                    key_part = load_some(keys, key + i, count)
                    store_some(by_queries, place, count, bonus * key_part)
                    store_some(by_keys, place, count, bonus * query_part)
                    add_some(by_bonuses, own, count, by_weight * query_part * key_part)
