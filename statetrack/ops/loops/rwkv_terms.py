"""The terms of RWKV-7's recurrence, and their backward pass.

R replicas, M rows, N heads of a row, K size of a head.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, exists
from statetrack.ops.loops.vectors import (
    LANES,
    add_some,
    load_some,
    sigmoid,
    splat,
    store_some,
    total,
)

SHORTEST = 1e-12
"""The length of a key by which shorter ones are divided too."""


@part
def _length(keys: Array, place: int, factors: Array, own: int, K: int) -> Any:
    """The length of a head's keys times factors."""
    squares = splat(keys.dtype.type(0))
    for i in spaced(0, K, LANES):
        count = least(LANES, K - i)
        key = load_some(keys, place + i, count) * load_some(factors, own + i, count)
        squares = squares + key * key
    return keys.dtype.type(math.sqrt(total(squares)))


@loop
def terms_forward(
    keys: Array,
    rates: Array,
    decays: Array,
    factors: Array,
    weights: Array,
    rate_biases: Array,
    decay_biases: Array,
    log_decays: Array,
    removals: Array,
    learned: Array,
    additions: Array,
    replacements: Array,
    sizes: Any,
    fastest: float,
    strides: Any,
) -> None:
    """Log-decays, kappa, a, added keys and a kappa, [R, M, N, K], of rows of three maps.

    a = sigmoid(rates + biases), kappa = keys factors / |keys factors|, the added keys are keys (1 +
    (a - 1) weights), and log-decays -fastest sigmoid(decays + biases). What is no row is [R, N K].
    """
    R, M, N, K = sizes
    one, shortest = keys.dtype.type(1), keys.dtype.type(SHORTEST)
    least_decay = keys.dtype.type(-fastest)
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(N):
                first, to = (lane * N + head) * K, (row * N + head) * K
                key_place = row * strides[0] + head * K
                length = _length(keys, key_place, factors, first, K)
                inverse = one / (shortest if length < shortest else length)
                for i in spaced(0, K, LANES):
                    count, own, place = least(LANES, K - i), first + i, to + i
                    key = load_some(keys, key_place + i, count)
                    rate = load_some(rates, row * strides[1] + head * K + i, count)
                    rate = sigmoid(rate + load_some(rate_biases, own, count), keys)
                    removal = key * load_some(factors, own, count) * inverse
                    store_some(removals, place, count, removal)
                    store_some(learned, place, count, rate)
                    store_some(replacements, place, count, rate * removal)
                    kept = one + (rate - one) * load_some(weights, own, count)
                    store_some(additions, place, count, key * kept)
                    decay = load_some(decays, row * strides[2] + head * K + i, count)
                    decay = sigmoid(decay + load_some(decay_biases, own, count), keys)
                    store_some(log_decays, place, count, least_decay * decay)


@loop
def terms_backward(
    keys: Array,
    rates: Array,
    decays: Array,
    factors: Array,
    weights: Array,
    rate_biases: Array,
    decay_biases: Array,
    by_log_decays: Array,
    by_removals: Array,
    by_learned: Array,
    by_additions: Array,
    by_replacements: Array,
    by_keys: Array,
    by_rates: Array,
    by_decays: Array,
    by_factors: Array,
    by_weights: Array,
    by_rate_biases: Array,
    by_decay_biases: Array,
    sizes: Any,
    fastest: float,
    strides: Any,
) -> None:
    """The gradients; those by what is no row are added to zeros."""
    R, M, N, K = sizes
    zero, one, shortest = keys.dtype.type(0), keys.dtype.type(1), keys.dtype.type(SHORTEST)
    least_decay = keys.dtype.type(-fastest)
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(N):
                first, to = (lane * N + head) * K, (row * N + head) * K
                key_place = row * strides[0] + head * K
                length = _length(keys, key_place, factors, first, K)
                inverse = one / (shortest if length < shortest else length)
                along = splat(zero)
                for i in spaced(0, K, LANES):
                    count, own, place = least(LANES, K - i), first + i, to + i
                    rate = load_some(rates, row * strides[1] + head * K + i, count)
                    rate = sigmoid(rate + load_some(rate_biases, own, count), keys)
                    store_some(by_rates, place, count, rate)  # until its gradient is known
                    wanted = load_some(by_removals, place, count)
                    wanted = wanted + rate * load_some(by_replacements, place, count)
                    key = load_some(keys, key_place + i, count)
                    along = along + wanted * key * load_some(factors, own, count)
                shared = zero if length < shortest else total(along) * inverse * inverse
                for i in spaced(0, K, LANES):
                    count, own, place = least(LANES, K - i), first + i, to + i
                    key = load_some(keys, key_place + i, count)
                    rate = load_some(by_rates, place, count)
                    factor, weight = load_some(factors, own, count), load_some(weights, own, count)
                    by_replacement = load_some(by_replacements, place, count)
                    by_addition = load_some(by_additions, place, count)
                    wanted = load_some(by_removals, place, count) + rate * by_replacement
                    wanted = (wanted - shared * key * factor) * inverse
                    less = rate - one
                    kept = one + less * weight
                    store_some(by_keys, place, count, wanted * factor + by_addition * kept)
                    add_some(by_factors, own, count, wanted * key)
                    by_kept = by_addition * key
                    add_some(by_weights, own, count, by_kept * less)
                    by_rate = by_replacement * key * factor * inverse + by_kept * weight
                    if exists(by_learned):
                        by_rate = by_rate + load_some(by_learned, place, count)
                    by_rate = by_rate * rate * (zero - less)
                    store_some(by_rates, place, count, by_rate)
                    add_some(by_rate_biases, own, count, by_rate)
                    decay = load_some(decays, row * strides[2] + head * K + i, count)
                    decay = sigmoid(decay + load_some(decay_biases, own, count), keys)
                    by_decay = load_some(by_log_decays, place, count) * least_decay
                    by_decay = by_decay * decay * (one - decay)
                    store_some(by_decays, place, count, by_decay)
                    add_some(by_decay_biases, own, count, by_decay)
