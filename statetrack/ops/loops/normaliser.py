"""What is read of an mLSTM's memory, divided by its normaliser, and the backward pass.

M rows, K numbers of a row besides its normaliser.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, put, smallest
from statetrack.ops.loops.vectors import (
    LANES,
    exponential,
    load_some,
    splat,
    store_some,
    total,
)


@part
def _floor(maxima: Array, row: int) -> Any:
    """The exponential of -m, a normal number at least."""
    powers = exponential(splat(maxima.dtype.type(0) - at(maxima, row)))
    floor = total(powers) / maxima.dtype.type(LANES)
    tiny = smallest(maxima)
    return floor if floor > tiny else tiny


@loop
def normaliser_forward(
    read: Array, maxima: Array, outputs: Array, sizes: Any, stride: int, epsilon: float
) -> None:
    """The first K numbers of rows [M, K + 1] divided by max(|n|, e^-m) + epsilon.

    n is the last number of a row, which has a stride, and m one of the maxima [M].
    """
    M, K = sizes
    for row in up_to(M):
        place, floor = row * stride, _floor(maxima, row)
        norm = abs(at(read, place + K))
        size = (norm if norm > floor else floor) + outputs.dtype.type(epsilon)
        share = outputs.dtype.type(1) / size
        for i in spaced(0, K, LANES):
            count = least(LANES, K - i)
            store_some(outputs, row * K + i, count, load_some(read, place + i, count) * share)


@loop
def normaliser_backward(
    read: Array,
    maxima: Array,
    by_outputs: Array,
    by_read: Array,
    sizes: Any,
    stride: int,
    epsilon: float,
) -> None:
    """The gradients by rows, [M, K + 1]. That by n is halved where |n| = e^-m; m has none."""
    M, K = sizes
    zero, one = by_outputs.dtype.type(0), by_outputs.dtype.type(1)
    for row in up_to(M):
        place, own, floor = row * stride, row * (K + 1), _floor(maxima, row)
        signed = at(read, place + K)
        norm = abs(signed)
        share = one / ((norm if norm > floor else floor) + by_outputs.dtype.type(epsilon))
        along = splat(zero)
        for i in spaced(0, K, LANES):
            count = least(LANES, K - i)
            by_number = load_some(by_outputs, row * K + i, count) * share
            store_some(by_read, own + i, count, by_number)
            along = along + by_number * load_some(read, place + i, count)
        by_norm = zero
        if norm >= floor:
            by_norm = zero - share * total(along)
            if norm == floor:
                by_norm = by_norm * by_outputs.dtype.type(0.5)
            if signed < zero:
                by_norm = zero - by_norm
        put(by_read, own + K, by_norm)
