"""Norms of heads of rows, of their root mean square or of their deviation, and their backward pass.

R replicas, M rows, H heads of a row, D width of a head.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, exists
from statetrack.ops.loops.vectors import LANES, keep_some, load_some, splat, store_some, total


@part
def _scaled_down(inputs: Array, place: int, D: int, largest: float) -> Any:
    """What to multiply a row by before it is squared: 1, unless it has a number above `largest`."""
    most = inputs.dtype.type(0)
    for i in up_to(D):
        size = abs(at(inputs, place + i))
        if not size <= most:
            most = size
    if most <= largest:
        return inputs.dtype.type(1)
    return inputs.dtype.type(1 / (most / largest))


@part
def _squares(inputs: Array, place: int, D: int, factor: Any, centred: bool) -> Any:
    """The mean of a row times a factor, or 0, and the sum of the squares of what it differs."""
    middle = inputs.dtype.type(0)
    if centred:
        summed = splat(inputs.dtype.type(0))
        for first in spaced(0, D, LANES):
            summed = summed + load_some(inputs, place + first, least(LANES, D - first)) * factor
        middle = total(summed) / inputs.dtype.type(D)
    squares = splat(inputs.dtype.type(0))
    for first in spaced(0, D, LANES):
        count = least(LANES, D - first)
        part = load_some(inputs, place + first, count) * factor - middle
        part = keep_some(part, count)
        squares = squares + part * part
    return middle, total(squares)


@part
def _measured(
    inputs: Array,
    place: int,
    D: int,
    centred: bool,
    share: float,
    epsilon: float,
    largest: float,
) -> Any:
    """A factor, the mean m of a row x times that, or 0, and 1 / sqrt(share |x - m|^2 + epsilon)."""
    factor = inputs.dtype.type(1)
    middle, summed = _squares(inputs, place, D, factor, centred)
    if not summed <= largest * largest:
        factor = _scaled_down(inputs, place, D, largest)
        middle, summed = _squares(inputs, place, D, factor, centred)
    return factor, middle, inputs.dtype.type(1 / math.sqrt(share * summed + epsilon))


@loop
def norm_forward(
    inputs: Array,
    gains: Array,
    biases: Array,
    outputs: Array,
    sizes: Any,
    centred: bool,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
    offset: int,
) -> None:
    """Heads x - m [R, M, H, D], m their mean or 0, times scale / sqrt(share |x - m|^2 + epsilon).

    Then times gains and plus biases, [R, H or 1, D], if there are any. Heads with a number above
    `largest` are scaled down to it before. A row of the inputs starts at its number times the
    stride, plus an offset.
    """
    R, M, H, D, own_gains = sizes
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(H):
                place, own = row * stride + offset + head * D, (row * H + head) * D
                gain = (lane * own_gains + head % own_gains) * D
                factor, middle, measure = _measured(
                    inputs, place, D, centred, share, epsilon, largest
                )
                multiplier = measure * outputs.dtype.type(scale)
                for i in spaced(0, D, LANES):
                    count = least(LANES, D - i)
                    part = multiplier * (factor * load_some(inputs, place + i, count) - middle)
                    if exists(gains):
                        part = part * load_some(gains, gain + i, count)
                    if exists(biases):
                        part = part + load_some(biases, gain + i, count)
                    store_some(outputs, own + i, count, part)


@loop
def norm_backward(
    inputs: Array,
    gains: Array,
    by_outputs: Array,
    by_same: Array,
    by_inputs: Array,
    by_gains: Array,
    by_biases: Array,
    sizes: Any,
    centred: bool,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
    by_stride: int,
    offset: int,
) -> None:
    """The gradients; those by gains and biases are added to zeros. None is by the scaling down.

    Rows of the gradients by inputs have a stride of their own, and the same offset; they are added
    to those of `by_same`, if there are any.
    """
    R, M, H, D, own_gains = sizes
    zero = by_outputs.dtype.type(0)
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(H):
                place, own = row * stride + offset + head * D, (row * H + head) * D
                to = row * by_stride + offset + head * D
                gain = (lane * own_gains + head % own_gains) * D
                factor, middle, measure = _measured(
                    inputs, place, D, centred, share, epsilon, largest
                )
                along, summed = splat(zero), splat(zero)
                for i in spaced(0, D, LANES):
                    count = least(LANES, D - i)
                    normal = measure * (factor * load_some(inputs, place + i, count) - middle)
                    wanted = load_some(by_outputs, own + i, count)
                    if exists(by_biases):
                        grown = load_some(by_biases, gain + i, count) + wanted
                        store_some(by_biases, gain + i, count, grown)
                    wanted = by_outputs.dtype.type(scale) * wanted
                    if exists(gains):
                        grown = load_some(by_gains, gain + i, count) + wanted * normal
                        store_some(by_gains, gain + i, count, grown)
                        wanted = wanted * load_some(gains, gain + i, count)
                    along = along + wanted * normal
                    summed = summed + wanted
                shared = by_outputs.dtype.type(share) * total(along)
                mean = zero
                if centred:
                    mean = total(summed) / by_outputs.dtype.type(D)
                for i in spaced(0, D, LANES):
                    count = least(LANES, D - i)
                    normal = measure * (factor * load_some(inputs, place + i, count) - middle)
                    wanted = by_outputs.dtype.type(scale) * load_some(by_outputs, own + i, count)
                    if exists(gains):
                        wanted = wanted * load_some(gains, gain + i, count)
                    found = factor * measure * (wanted - mean - shared * normal)
                    if exists(by_same):
                        found = found + load_some(by_same, to + i, count)
                    store_some(by_inputs, to + i, count, found)
