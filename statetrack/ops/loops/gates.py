"""Rows times gates, and their backward pass.

M rows, D width.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, exists
from statetrack.ops.loops.vectors import LANES, exponential, load_some, store_some


@loop
def gated_forward(
    inputs: Array,
    gates: Array,
    others: Array,
    scales: Array,
    outputs: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """The products (x + s y) z sigmoid(z) of rows [R, M, D] of x, y and z, and scales s [R, D].

    Without scales x z sigmoid(z).
    """
    R, M, D = sizes
    zero, one = outputs.dtype.type(0), outputs.dtype.type(1)
    for m in up_to(R * M):
        for first in spaced(0, D, LANES):
            count = least(LANES, D - first)
            gate = load_some(gates, m * strides[1] + first, count)
            given = load_some(inputs, m * strides[0] + first, count)
            if exists(scales):
                other = load_some(others, m * strides[2] + first, count)
                given = given + load_some(scales, m // M * D + first, count) * other
            found = given * gate / (one + exponential(zero - gate))
            store_some(outputs, m * D + first, count, found)


@loop
def gated_backward(
    inputs: Array,
    gates: Array,
    others: Array,
    scales: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_gates: Array,
    by_others: Array,
    by_scales: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """The gradients; those by scales are added to zeros."""
    R, M, D = sizes
    zero, one = by_outputs.dtype.type(0), by_outputs.dtype.type(1)
    for m in up_to(R * M):
        for first in spaced(0, D, LANES):
            count = least(LANES, D - first)
            gate = load_some(gates, m * strides[1] + first, count)
            given = load_some(inputs, m * strides[0] + first, count)
            wanted = load_some(by_outputs, m * D + first, count)
            share = one / (one + exponential(zero - gate))
            by_input = wanted * gate * share
            store_some(by_inputs, m * D + first, count, by_input)
            if exists(scales):
                own = m // M * D + first
                scale = load_some(scales, own, count)
                other = load_some(others, m * strides[2] + first, count)
                given = given + scale * other
                store_some(by_others, m * D + first, count, by_input * scale)
                grown = load_some(by_scales, own, count) + by_input * other
                store_some(by_scales, own, count, grown)
            slope = share * (one + gate * (one - share))
            store_some(by_gates, m * D + first, count, wanted * given * slope)
