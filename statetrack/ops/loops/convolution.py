"""A short convolution of channels over positions, and its backward pass.

R replicas, W words, T time, D channels.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, empty, exists, release, zeros
from statetrack.ops.loops.vectors import (
    LANES,
    exponential,
    load,
    load_some,
    splat,
    store,
    store_some,
)


@part
def _gather(inputs: Any, window: Array, number: int, some: Any, sizes: Any, seen: Array) -> None:
    """Some channels of a word at all positions, those of the window first.

    Inputs are an array and a stride, some channels the first one and their count.
    """
    (numbers, stride), (channel, count), (_, _, T, D, size) = inputs, some, sizes
    for t in up_to(size - 1):
        place = (number * (size - 1) + t) * D + channel
        store(seen, t * LANES, load_some(window, place, count))
    for t in up_to(T):
        place = (number * T + t) * stride + channel
        store(seen, (t + size - 1) * LANES, load_some(numbers, place, count))


@part
def _convolved(seen: Array, weights: Array, t: int, size: int) -> Any:
    """The weighted sum of `size` positions from t on, and the bias, which is the last weight."""
    summed = load(weights, size * LANES)
    for j in up_to(size):
        summed = summed + load(weights, j * LANES) * load(seen, (t + j) * LANES)
    return summed


@part
def _weights(
    filters: Array, biases: Array, lane: int, some: Any, sizes: Any, weights: Array
) -> None:
    """The filters of some channels, likewise, and their bias or zeros."""
    (channel, count), (_, _, _, D, size) = some, sizes
    for j in up_to(size):
        place = (lane * size + j) * D + channel
        store(weights, j * LANES, load_some(filters, place, count))
    store(weights, size * LANES, splat(weights.dtype.type(0)))
    if exists(biases):
        store(weights, size * LANES, load_some(biases, lane * D + channel, count))


@loop
def convolution_forward(
    inputs: Array,
    window: Array,
    filters: Array,
    biases: Array,
    outputs: Array,
    sizes: Any,
    activated: bool,
    stride: int,
) -> None:
    """Channels [R, W, T, D] summed over `size` positions, weighted by filters [R, size, D].

    The window [R, W, size - 1, D] precedes the inputs, whose rows (r, w, t) have a stride. Biases
    are [R, D] or empty. With `activated`, outputs are z sigmoid(z).
    """
    R, W, T, D, size = sizes
    zero, one = outputs.dtype.type(0), outputs.dtype.type(1)
    seen, weights = empty(outputs, ((T + size) * LANES, (size + 1) * LANES))
    for lane in up_to(R):
        for channel in spaced(0, D, LANES):
            count = least(LANES, D - channel)
            _weights(filters, biases, lane, (channel, count), sizes, weights)
            for number in spaced(lane * W, lane * W + W, 1):
                _gather((inputs, stride), window, number, (channel, count), sizes, seen)
                for t in up_to(T):
                    summed = _convolved(seen, weights, t, size)
                    if activated:
                        summed = summed / (one + exponential(zero - summed))
                    store_some(outputs, (number * T + t) * D + channel, count, summed)
    release(seen)


@loop
def convolution_backward(
    inputs: Array,
    window: Array,
    filters: Array,
    biases: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_window: Array,
    by_filters: Array,
    by_biases: Array,
    sizes: Any,
    activated: bool,
    stride: int,
) -> None:
    """The gradients."""
    R, W, T, D, size = sizes
    zero, one = by_outputs.dtype.type(0), by_outputs.dtype.type(1)
    seen, weights, by_weights, wanted = zeros(
        by_outputs,
        ((T + size) * LANES, (size + 1) * LANES, (size + 1) * LANES, (T + 2 * size) * LANES),
    )
    for lane in up_to(R):
        for channel in spaced(0, D, LANES):
            count = least(LANES, D - channel)
            _weights(filters, biases, lane, (channel, count), sizes, weights)
            for j in up_to(size + 1):
                store(by_weights, j * LANES, splat(zero))
            for number in spaced(lane * W, lane * W + W, 1):
                _gather((inputs, stride), window, number, (channel, count), sizes, seen)
                by_bias = load(by_weights, size * LANES)
                for t in up_to(T):
                    along = load_some(by_outputs, (number * T + t) * D + channel, count)
                    if activated:
                        summed = _convolved(seen, weights, t, size)
                        gate = one / (one + exponential(zero - summed))
                        along = along * gate * (one + summed * (one - gate))
                    by_bias = by_bias + along
                    store(wanted, (t + size) * LANES, along)
                store(by_weights, size * LANES, by_bias)
                for j in up_to(size):
                    summed = load(by_weights, j * LANES)
                    for t in up_to(T):
                        along = load(wanted, (t + size) * LANES)
                        summed = summed + along * load(seen, (t + j) * LANES)
                    store(by_weights, j * LANES, summed)
                for t in up_to(T + size - 1):
                    summed = splat(zero)
                    for j in up_to(size):
                        along = load(wanted, (t - j + size) * LANES)
                        summed = summed + load(weights, j * LANES) * along
                    if t < size - 1:
                        place = (number * (size - 1) + t) * D + channel
                        store_some(by_window, place, count, summed)
                    else:
                        place = (number * T + t - size + 1) * D + channel
                        store_some(by_inputs, place, count, summed)
            for j in up_to(size):
                place = (lane * size + j) * D + channel
                store_some(by_filters, place, count, load(by_weights, j * LANES))
            if exists(biases):
                store_some(by_biases, lane * D + channel, count, load(by_weights, size * LANES))
    release(seen)
