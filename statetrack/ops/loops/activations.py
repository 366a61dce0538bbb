"""The hyperbolic tangents and the sigmoids of numbers, and their backward pass."""

from __future__ import annotations

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced
from statetrack.ops.loops.memory import Array
from statetrack.ops.loops.vectors import (
    LANES,
    hyperbolic_tangent,
    load_some,
    sigmoid,
    store_some,
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
