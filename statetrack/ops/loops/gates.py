"""Rows times gates, and rows mixed with those before, with their backward passes.

R replicas, M rows, D width, n mixtures.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, exists
from statetrack.ops.loops.vectors import LANES, exponential, load_some, splat, store_some


@loop
def gated_forward(
    inputs: Array,
    gates: Array,
    others: Array,
    scales: Array,
    outputs: Array,
    R: int,
    M: int,
    D: int,
    strides: Any,
) -> None:
    """The products (x + s y) z sigmoid(z) of rows [R, M, D] of x, y and z, and scales s [R, D].

    Without scales x z sigmoid(z).
    """
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
    R: int,
    M: int,
    D: int,
    strides: Any,
) -> None:
    """The gradients; those by scales are added to zeros."""
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


@loop
def mixed_forward(
    inputs: Array,
    before: Array,
    shares: Array,
    outputs: Array,
    R: int,
    M: int,
    D: int,
    n: int,
    strides: Any,
) -> None:
    """Mixtures x + s (y - x) of rows x and y [R, M, D] for n rows of shares s: [R, n, M, D]."""
    for lane in up_to(R):
        for m in spaced(lane * M, lane * M + M, 1):
            for first in spaced(0, D, LANES):
                count = least(LANES, D - first)
                given = load_some(inputs, m * strides[0] + first, count)
                change = load_some(before, m * strides[1] + first, count) - given
                for j in up_to(n):
                    share = load_some(shares, (lane * n + j) * D + first, count)
                    place = ((lane * n + j) * M + m - lane * M) * D + first
                    store_some(outputs, place, count, given + share * change)


@loop
def mixed_backward(
    inputs: Array,
    before: Array,
    shares: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_before: Array,
    by_shares: Array,
    R: int,
    M: int,
    D: int,
    n: int,
    strides: Any,
) -> None:
    """The gradients; those by shares are added to zeros."""
    zero = by_outputs.dtype.type(0)
    for lane in up_to(R):
        for m in spaced(lane * M, lane * M + M, 1):
            for first in spaced(0, D, LANES):
                count = least(LANES, D - first)
                given = load_some(inputs, m * strides[0] + first, count)
                change = load_some(before, m * strides[1] + first, count) - given
                all_of_them, shared = splat(zero), splat(zero)
                for j in up_to(n):
                    own = (lane * n + j) * D + first
                    place = ((lane * n + j) * M + m - lane * M) * D + first
                    wanted = load_some(by_outputs, place, count)
                    all_of_them = all_of_them + wanted
                    shared = shared + wanted * load_some(shares, own, count)
                    grown = load_some(by_shares, own, count) + wanted * change
                    store_some(by_shares, own, count, grown)
                store_some(by_inputs, m * D + first, count, all_of_them - shared)
                store_some(by_before, m * D + first, count, shared)
