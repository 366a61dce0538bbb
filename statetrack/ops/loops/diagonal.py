"""The gated diagonal recurrence, real or complex, and its backward pass.

W words, T time, D channels.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array
from statetrack.ops.loops.vectors import (
    LANES,
    alternating,
    evens,
    load_some,
    odds,
    store_some,
    swapped,
)


@part
def _times(gain: Any, state: Any, signs: Any, paired: bool) -> Any:
    """A product by number, or of complex numbers as pairs; signs of -1, 1 conjugate by 1, -1."""
    if paired:
        return evens(gain) * state + signs * (odds(gain) * swapped(state))
    return gain * state


@loop
def diagonal_forward(
    gains: Array,
    inputs: Array,
    first: Array,
    outputs: Array,
    last: Array,
    sizes: Any,
    paired: bool,
    strides: Any,
) -> None:
    """The states h <- a * h + u [W, T, D]; with `paired`, of complex numbers."""
    W, T, D = sizes
    signs = alternating(outputs.dtype.type(-1))
    for word in up_to(W):
        for channel in spaced(0, D, LANES):
            count = least(LANES, D - channel)
            state = load_some(first, word * D + channel, count)
            for t in up_to(T):
                row = word * T + t
                gain = load_some(gains, row * strides[0] + channel, count)
                added = load_some(inputs, row * strides[1] + channel, count)
                state = _times(gain, state, signs, paired) + added
                store_some(outputs, row * D + channel, count, state)
            store_some(last, word * D + channel, count, state)


@loop
def diagonal_backward(
    gains: Array,
    states: Array,
    first: Array,
    by_outputs: Array,
    by_last: Array,
    by_gains: Array,
    by_inputs: Array,
    by_first: Array,
    sizes: Any,
    paired: bool,
    strides: Any,
) -> None:
    """The gradients, of the states of all positions."""
    W, T, D = sizes
    signs = alternating(states.dtype.type(1))
    for word in up_to(W):
        for channel in spaced(0, D, LANES):
            count = least(LANES, D - channel)
            adjoint = load_some(by_last, word * D + channel, count)
            for t in spaced(T - 1, -1, -1):
                row = word * T + t
                adjoint = adjoint + load_some(by_outputs, row * D + channel, count)
                store_some(by_inputs, row * D + channel, count, adjoint)
                if t > 0:
                    before = load_some(states, (row - 1) * D + channel, count)
                else:
                    before = load_some(first, word * D + channel, count)
                found = _times(before, adjoint, signs, paired)
                store_some(by_gains, row * D + channel, count, found)
                gain = load_some(gains, row * strides[0] + channel, count)
                adjoint = _times(gain, adjoint, signs, paired)
            store_some(by_first, word * D + channel, count, adjoint)
