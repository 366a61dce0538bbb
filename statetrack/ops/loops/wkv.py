"""RWKV-4's averages of values with exponential weights, and their backward pass.

R replicas, W words, T time, D width.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, empty, exists, release
from statetrack.ops.loops.vectors import (
    LANES,
    add_some,
    exponential,
    greater,
    load,
    load_some,
    sigmoid,
    splat,
    store,
    store_some,
)


@part
def _read(above: Any, below: Any, exponent: Any, key: Any, value: Any) -> Any:
    """The average, its denominator, and the weights of the sums in it and of the value.

    The key is that with the bonus of a position's own value.
    """
    largest = greater(exponent, key)
    kept, own = exponential(exponent - largest), exponential(key - largest)
    denominator = kept * below + own
    return (kept * above + own * value) / denominator, denominator, kept, own


@part
def _following(exponent: Any, key: Any, decay: Any) -> Any:
    """The next exponent, and the weights of the sums before and of the value in the next sums."""
    following = greater(exponent + decay, key)
    return following, exponential(exponent - following + decay), exponential(key - following)


@loop
def wkv_forward(
    keys: Array,
    values: Array,
    gates: Array,
    log_decays: Array,
    bonuses: Array,
    sums: Array,
    exponents: Array,
    outputs: Array,
    last_sums: Array,
    last_exponents: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """Averages (a + e^(u + k) v) / (b + e^(u + k)) times sigmoids of gates, rows [R, W, T, D].

    Then a <- e^w a + e^k v and b <- e^w b + e^k, with log-decays w and bonuses u [R, D]. Sums a and
    b are [R, W, 2, D], divided by e^m, with exponents m [R, W, D]; the last ones may be wanted.
    """
    R, W, T, D = sizes
    for word in up_to(R * W):
        for i in spaced(0, D, LANES):
            count, lane = least(LANES, D - i), word // W * D + i
            decay, bonus = load_some(log_decays, lane, count), load_some(bonuses, lane, count)
            above = load_some(sums, 2 * word * D + i, count)
            below = load_some(sums, (2 * word + 1) * D + i, count)
            exponent = load_some(exponents, word * D + i, count)
            for t in up_to(T):
                row = word * T + t
                key = load_some(keys, row * strides[0] + i, count)
                value = load_some(values, row * strides[1] + i, count)
                gate = sigmoid(load_some(gates, row * strides[2] + i, count), keys)
                average, _, _, _ = _read(above, below, exponent, key + bonus, value)
                store_some(outputs, row * D + i, count, gate * average)
                exponent, kept, added = _following(exponent, key, decay)
                above, below = kept * above + added * value, kept * below + added
            if exists(last_sums):
                store_some(last_sums, 2 * word * D + i, count, above)
                store_some(last_sums, (2 * word + 1) * D + i, count, below)
                store_some(last_exponents, word * D + i, count, exponent)


@loop
def wkv_backward(
    keys: Array,
    values: Array,
    gates: Array,
    log_decays: Array,
    bonuses: Array,
    sums: Array,
    exponents: Array,
    by_outputs: Array,
    by_last: Array,
    by_keys: Array,
    by_values: Array,
    by_gates: Array,
    by_log_decays: Array,
    by_bonuses: Array,
    by_sums: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """The gradients; those by log-decays and bonuses are added to zeros. None is by exponents."""
    R, W, T, D = sizes
    zero, one = keys.dtype.type(0), keys.dtype.type(1)
    (states,) = empty(keys, (3 * T * LANES,))
    for word in up_to(R * W):
        for i in spaced(0, D, LANES):
            count, lane = least(LANES, D - i), word // W * D + i
            decay, bonus = load_some(log_decays, lane, count), load_some(bonuses, lane, count)
            here, there = 2 * word * D + i, (2 * word + 1) * D + i
            above, below = load_some(sums, here, count), load_some(sums, there, count)
            exponent = load_some(exponents, word * D + i, count)
            for t in up_to(T):
                store(states, 3 * t * LANES, above)
                store(states, (3 * t + 1) * LANES, below)
                store(states, (3 * t + 2) * LANES, exponent)
                key = load_some(keys, (word * T + t) * strides[0] + i, count)
                value = load_some(values, (word * T + t) * strides[1] + i, count)
                exponent, kept, added = _following(exponent, key, decay)
                above, below = kept * above + added * value, kept * below + added
            by_above, by_below, by_decay, by_bonus = (
                splat(zero),
                splat(zero),
                splat(zero),
                splat(zero),
            )
            if exists(by_last):
                by_above, by_below = (
                    load_some(by_last, here, count),
                    load_some(by_last, there, count),
                )
            for t in spaced(T - 1, -1, -1):
                row = word * T + t
                above, below = load(states, 3 * t * LANES), load(states, (3 * t + 1) * LANES)
                exponent = load(states, (3 * t + 2) * LANES)
                key = load_some(keys, row * strides[0] + i, count)
                value = load_some(values, row * strides[1] + i, count)
                gate = sigmoid(load_some(gates, row * strides[2] + i, count), keys)
                _, kept, added = _following(exponent, key, decay)
                by_decay = by_decay + kept * (by_above * above + by_below * below)
                by_key = added * (by_above * value + by_below)
                by_value = added * by_above
                by_above, by_below = kept * by_above, kept * by_below
                average, denominator, kept, own = _read(above, below, exponent, key + bonus, value)
                wanted = load_some(by_outputs, row * D + i, count)
                by_gate = wanted * average * gate * (one - gate)
                store_some(by_gates, row * D + i, count, by_gate)
                wanted = wanted * gate / denominator
                by_above, by_below = by_above + kept * wanted, by_below - kept * wanted * average
                by_own = own * wanted * (value - average)
                by_bonus = by_bonus + by_own
                store_some(by_keys, row * D + i, count, by_key + by_own)
                store_some(by_values, row * D + i, count, by_value + own * wanted)
            add_some(by_log_decays, lane, count, by_decay)
            add_some(by_bonuses, lane, count, by_bonus)
            store_some(by_sums, here, count, by_above)
            store_some(by_sums, there, count, by_below)
    release(states)
