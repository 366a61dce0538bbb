"""Hyperbolic tangents, sigmoids and log-decays of numbers, and their backward pass.

R replicas, M rows, D width.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array
from statetrack.ops.loops.vectors import (
    LANES,
    add_some,
    exponential,
    greater,
    hyperbolic_tangent,
    load_some,
    sigmoid,
    splat,
    store_some,
    with_sign_of,
)


@loop
def activate(numbers: Array, found: Array, size: int, signed: bool) -> None:
    """The tangents of numbers, or their sigmoids unless `signed`."""
    for i in spaced(0, size, LANES):
        count = least(LANES, size - i)
        given = load_some(numbers, i, count)
        if signed:
            store_some(found, i, count, hyperbolic_tangent(given, numbers))
        else:
            store_some(found, i, count, sigmoid(given, numbers))


@loop
def activate_backward(found: Array, gradients: Array, size: int, signed: bool) -> None:
    """The gradients by numbers, of those by what was found of them, in their place."""
    one = found.dtype.type(1)
    for i in spaced(0, size, LANES):
        count = least(LANES, size - i)
        given, wanted = load_some(found, i, count), load_some(gradients, i, count)
        slope = given * (one - given)
        if signed:
            slope = one - given * given
        store_some(gradients, i, count, wanted * slope)


@loop
def decays_forward(numbers: Array, biases: Array, found: Array, sizes: Any, most: float) -> None:
    """-e^x of numbers [R, M, D] plus biases [R, D], which are at most `most`."""
    R, M, D = sizes
    zero = found.dtype.type(0)
    for row in up_to(R * M):
        for i in spaced(0, D, LANES):
            count, place = least(LANES, D - i), row * D + i
            given = load_some(numbers, place, count)
            given = given + load_some(biases, row // M * D + i, count)
            given = zero - greater(splat(found.dtype.type(-most)), zero - given)
            store_some(found, place, count, zero - exponential(given))


@loop
def decays_backward(
    numbers: Array,
    biases: Array,
    by_found: Array,
    by_numbers: Array,
    by_biases: Array,
    sizes: Any,
    most: float,
) -> None:
    """The gradients; none is by numbers above `most`; those by biases are added to zeros."""
    R, M, D = sizes
    zero, half = numbers.dtype.type(0), numbers.dtype.type(0.5)
    for row in up_to(R * M):
        for i in spaced(0, D, LANES):
            count, place, own = least(LANES, D - i), row * D + i, row // M * D + i
            given = load_some(numbers, place, count) + load_some(biases, own, count)
            below = numbers.dtype.type(most) - given
            share = with_sign_of(splat(half), below) + half  # 1, or 0 above
            given = zero - greater(splat(numbers.dtype.type(-most)), zero - given)
            wanted = load_some(by_found, place, count) * share * (zero - exponential(given))
            store_some(by_numbers, place, count, wanted)
            add_some(by_biases, own, count, wanted)
