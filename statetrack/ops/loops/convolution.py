"""A short convolution of channels over positions, and its backward pass.

R replicas, W words, T time, D channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.ops.loops.compiling import compiled
from statetrack.ops.loops.vectors import (
    LANES,
    Array,
    exponential,
    load,
    load_some,
    splat,
    store,
    store_some,
)


@compiled
def _gather(
    inputs: Array,
    window: Array,
    number: int,
    channel: int,
    count: int,
    T: int,
    D: int,
    size: int,
    stride: int,
    seen: Array,
) -> None:
    """Some channels of a word at all positions, those of the window first."""
    for t in range(size - 1):
        place = (number * (size - 1) + t) * D + channel
        store(seen, t * LANES, load_some(window, place, count))
    for t in range(T):
        place = (number * T + t) * stride + channel
        store(seen, (t + size - 1) * LANES, load_some(inputs, place, count))


@compiled
def _convolved(seen: Array, weights: Array, t: int, size: int) -> Any:
    """The weighted sum of `size` positions from t on, and the bias, which is the last weight."""
    summed = load(weights, size * LANES)
    for j in range(size):
        summed = summed + load(weights, j * LANES) * load(seen, (t + j) * LANES)
    return summed


@compiled
def _weights(
    filters: Array,
    biases: Array,
    lane: int,
    channel: int,
    count: int,
    D: int,
    size: int,
    weights: Array,
) -> None:
    """The filters of some channels, and their bias or zeros."""
    for j in range(size):
        place = (lane * size + j) * D + channel
        store(weights, j * LANES, load_some(filters, place, count))
    store(weights, size * LANES, splat(weights.dtype.type(0)))
    if biases.size > 0:
        store(weights, size * LANES, load_some(biases, lane * D + channel, count))


@compiled
def convolution_forward(
    inputs: Array,
    window: Array,
    filters: Array,
    biases: Array,
    outputs: Array,
    R: int,
    W: int,
    T: int,
    D: int,
    size: int,
    activated: bool,
    stride: int,
) -> None:
    """Channels [R, W, T, D] summed over `size` positions, weighted by filters [R, size, D].

    The window [R, W, size - 1, D] precedes the inputs, whose rows (r, w, t) have a stride. Biases
    are [R, D] or empty. With `activated`, outputs are z sigmoid(z).
    """
    zero, one = outputs.dtype.type(0), outputs.dtype.type(1)
    seen = np.empty((T + size) * LANES, outputs.dtype)
    weights = np.empty((size + 1) * LANES, outputs.dtype)
    for lane in range(R):
        for channel in range(0, D, LANES):
            count = min(LANES, D - channel)
            _weights(filters, biases, lane, channel, count, D, size, weights)
            for number in range(lane * W, lane * W + W):
                _gather(inputs, window, number, channel, count, T, D, size, stride, seen)
                for t in range(T):
                    summed = _convolved(seen, weights, t, size)
                    if activated:
                        summed = summed / (one + exponential(zero - summed))
                    store_some(outputs, (number * T + t) * D + channel, count, summed)


@compiled
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
    R: int,
    W: int,
    T: int,
    D: int,
    size: int,
    activated: bool,
    stride: int,
) -> None:
    """The gradients."""
    zero, one = by_outputs.dtype.type(0), by_outputs.dtype.type(1)
    seen = np.empty((T + size) * LANES, by_outputs.dtype)
    weights = np.empty((size + 1) * LANES, by_outputs.dtype)
    by_weights = np.empty((size + 1) * LANES, by_outputs.dtype)
    wanted = np.zeros((T + 2 * size) * LANES, by_outputs.dtype)  # between zeros
    for lane in range(R):
        for channel in range(0, D, LANES):
            count = min(LANES, D - channel)
            _weights(filters, biases, lane, channel, count, D, size, weights)
            for j in range(size + 1):
                store(by_weights, j * LANES, splat(zero))
            for number in range(lane * W, lane * W + W):
                _gather(inputs, window, number, channel, count, T, D, size, stride, seen)
                by_bias = load(by_weights, size * LANES)
                for t in range(T):
                    along = load_some(by_outputs, (number * T + t) * D + channel, count)
                    if activated:
                        summed = _convolved(seen, weights, t, size)
                        gate = one / (one + exponential(zero - summed))
                        along = along * gate * (one + summed * (one - gate))
                    by_bias = by_bias + along
                    store(wanted, (t + size) * LANES, along)
                store(by_weights, size * LANES, by_bias)
                for j in range(size):
                    summed = load(by_weights, j * LANES)
                    for t in range(T):
                        along = load(wanted, (t + size) * LANES)
                        summed = summed + along * load(seen, (t + j) * LANES)
                    store(by_weights, j * LANES, summed)
                for t in range(T + size - 1):
                    summed = splat(zero)
                    for j in range(size):
                        along = load(wanted, (t - j + size) * LANES)
                        summed = summed + load(weights, j * LANES) * along
                    if t < size - 1:
                        place = (number * (size - 1) + t) * D + channel
                        store_some(by_window, place, count, summed)
                    else:
                        place = (number * T + t - size + 1) * D + channel
                        store_some(by_inputs, place, count, summed)
            for j in range(size):
                place = (lane * size + j) * D + channel
                store_some(by_filters, place, count, load(by_weights, j * LANES))
            if biases.size > 0:
                store_some(by_biases, lane * D + channel, count, load(by_weights, size * LANES))
