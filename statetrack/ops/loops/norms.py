"""Root mean square norms of heads of rows, and their backward pass.

R replicas, M rows, H heads of a row, D width of a head.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, exists
from statetrack.ops.loops.vectors import LANES, load_some, splat, store_some, total


@part
def _measured(
    inputs: Array, place: int, D: int, share: float, epsilon: float, largest: float
) -> Any:
    """What to multiply a row by before it is squared, and 1 / sqrt(share |x|^2 + epsilon) then."""
    squares = splat(inputs.dtype.type(0))
    for first in spaced(0, D, LANES):
        part = load_some(inputs, place + first, least(LANES, D - first))
        squares = squares + part * part
    factor = inputs.dtype.type(1)
    summed = total(squares)
    if not summed <= largest * largest:
        most = inputs.dtype.type(0)
        for i in up_to(D):
            size = abs(at(inputs, place + i))
            if not size <= most:
                most = size
        if not most <= largest:
            factor = inputs.dtype.type(1 / (most / largest))
            squares = splat(inputs.dtype.type(0))
            for first in spaced(0, D, LANES):
                part = load_some(inputs, place + first, least(LANES, D - first)) * factor
                squares = squares + part * part
            summed = total(squares)
    return factor, inputs.dtype.type(1 / math.sqrt(share * summed + epsilon))


@loop
def norm_forward(
    inputs: Array,
    gains: Array,
    outputs: Array,
    R: int,
    M: int,
    H: int,
    D: int,
    own_gains: int,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
    offset: int,
) -> None:
    """Heads [R, M, H, D] times scale / sqrt(share |x|^2 + epsilon), times gains [R, H or 1, D].

    Heads with a number above `largest` are scaled down to it before. No gains are an empty array.
    Row m of the inputs starts at m times the stride, plus an offset.
    """
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(H):
                place, own = row * stride + offset + head * D, (row * H + head) * D
                gain = (lane * own_gains + head % own_gains) * D
                factor, measure = _measured(inputs, place, D, share, epsilon, largest)
                multiplier = factor * measure * outputs.dtype.type(scale)
                for i in spaced(0, D, LANES):
                    count = least(LANES, D - i)
                    part = multiplier * load_some(inputs, place + i, count)
                    if exists(gains):
                        part = part * load_some(gains, gain + i, count)
                    store_some(outputs, own + i, count, part)


@loop
def norm_backward(
    inputs: Array,
    gains: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_gains: Array,
    R: int,
    M: int,
    H: int,
    D: int,
    own_gains: int,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
    by_stride: int,
    offset: int,
) -> None:
    """The gradients; those by gains are added to zeros. No gradient is by the scaling down.

    Rows of the gradients by inputs have a stride of their own, and the same offset.
    """
    for lane in up_to(R):
        for row in spaced(lane * M, lane * M + M, 1):
            for head in up_to(H):
                place, own = row * stride + offset + head * D, (row * H + head) * D
                to = row * by_stride + offset + head * D
                gain = (lane * own_gains + head % own_gains) * D
                factor, measure = _measured(inputs, place, D, share, epsilon, largest)
                multiplier = factor * measure
                along = splat(by_outputs.dtype.type(0))
                for i in spaced(0, D, LANES):
                    count = least(LANES, D - i)
                    normal = multiplier * load_some(inputs, place + i, count)
                    wanted = by_outputs.dtype.type(scale) * load_some(by_outputs, own + i, count)
                    if exists(gains):
                        grown = load_some(by_gains, gain + i, count) + wanted * normal
                        store_some(by_gains, gain + i, count, grown)
                        wanted = wanted * load_some(gains, gain + i, count)
                    along = along + wanted * normal
                shared = by_outputs.dtype.type(share) * total(along)
                for i in spaced(0, D, LANES):
                    count = least(LANES, D - i)
                    normal = multiplier * load_some(inputs, place + i, count)
                    wanted = by_outputs.dtype.type(scale) * load_some(by_outputs, own + i, count)
                    if exists(gains):
                        wanted = wanted * load_some(gains, gain + i, count)
                    store_some(by_inputs, to + i, count, multiplier * (wanted - shared * normal))
