"""Root mean square norms of rows, and their backward pass.

R replicas, M rows, D width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.ops.loops.compiling import compiled
from statetrack.ops.loops.vectors import LANES, Array, at, load_some, splat, store_some, total


@compiled
def _measured(
    inputs: Array, place: int, D: int, share: float, epsilon: float, largest: float
) -> Any:
    """What to multiply a row by before it is squared, and 1 / sqrt(share |x|^2 + epsilon) then."""
    squares = splat(inputs.dtype.type(0))
    for first in range(0, D, LANES):
        part = load_some(inputs, place + first, min(LANES, D - first))
        squares = squares + part * part
    factor = inputs.dtype.type(1)
    summed = total(squares)
    if not summed <= largest * largest:
        most = inputs.dtype.type(0)
        for i in range(D):
            size = abs(at(inputs, place + i))
            if not size <= most:
                most = size
        if not most <= largest:
            factor = inputs.dtype.type(1 / (most / largest))
            squares = splat(inputs.dtype.type(0))
            for first in range(0, D, LANES):
                part = load_some(inputs, place + first, min(LANES, D - first)) * factor
                squares = squares + part * part
            summed = total(squares)
    return factor, inputs.dtype.type(1 / np.sqrt(share * summed + epsilon))


@compiled
def norm_forward(
    inputs: Array,
    gains: Array,
    outputs: Array,
    R: int,
    M: int,
    D: int,
    rows: int,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
) -> None:
    """Rows [R, M, D] times scale / sqrt(share |x|^2 + epsilon), times gains [R, rows, D] in turn.

    Rows with a number above `largest` are scaled down to it before. No gains are an empty array.
    """
    for lane in range(R):
        for m in range(M):
            place = (lane * M + m) * stride
            factor, measure = _measured(inputs, place, D, share, epsilon, largest)
            multiplier = factor * measure * outputs.dtype.type(scale)
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                part = multiplier * load_some(inputs, place + first, count)
                if gains.size > 0:
                    row = (lane * rows + m % rows) * D + first
                    part = part * load_some(gains, row, count)
                store_some(outputs, (lane * M + m) * D + first, count, part)


@compiled
def norm_backward(
    inputs: Array,
    gains: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_gains: Array,
    R: int,
    M: int,
    D: int,
    rows: int,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
) -> None:
    """The gradients; those by gains are added to zeros. No gradient is by the scaling down."""
    for lane in range(R):
        for m in range(M):
            place, own = (lane * M + m) * stride, (lane * M + m) * D
            factor, measure = _measured(inputs, place, D, share, epsilon, largest)
            multiplier = factor * measure
            along = splat(by_outputs.dtype.type(0))
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                normal = multiplier * load_some(inputs, place + first, count)
                wanted = by_outputs.dtype.type(scale) * load_some(by_outputs, own + first, count)
                if gains.size > 0:
                    row = (lane * rows + m % rows) * D + first
                    grown = load_some(by_gains, row, count) + wanted * normal
                    store_some(by_gains, row, count, grown)
                    wanted = wanted * load_some(gains, row, count)
                along = along + wanted * normal
            shared = by_outputs.dtype.type(share) * total(along)
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                normal = multiplier * load_some(inputs, place + first, count)
                wanted = by_outputs.dtype.type(scale) * load_some(by_outputs, own + first, count)
                if gains.size > 0:
                    row = (lane * rows + m % rows) * D + first
                    wanted = wanted * load_some(gains, row, count)
                found = multiplier * (wanted - shared * normal)
                store_some(by_inputs, own + first, count, found)
