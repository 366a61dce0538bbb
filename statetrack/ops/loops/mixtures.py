"""Rows mixed with those one position before, and their backward pass.

R replicas, W words, T time, D width, n mixtures.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, exists, one_of
from statetrack.ops.loops.vectors import LANES, add_some, load_some, splat, store_some


@part
def _change(
    inputs: Array, last: Array, given: Any, word: int, t: int, T: int, i: int, D: int, stride: int
) -> Any:
    """Some numbers of the row before, less those of a row, which are given."""
    count = least(LANES, D - i)
    if t == 0:
        return load_some(last, word * D + i, count) - given
    return load_some(inputs, (word * T + t - 1) * stride + i, count) - given


@part
def _share(shares: Array, more: Array, own: int, place: int, count: int) -> Any:
    """The share of the row before, with what is added to it at a position, if anything is."""
    share = load_some(shares, own, count)
    if exists(more):
        share = share + load_some(more, place, count)
    return share


@loop
def mixed_forward(
    inputs: Array, last: Array, shares: Array, more: Array, outputs: Array, sizes: Any, stride: int
) -> None:
    """Mixtures x + s (y - x) of rows x [R, W, T, D] and those before: n outputs, by address.

    Rows `last` [R, W, D] come before the first ones. Shares s are [R, n, D], to which [R, W, T, n,
    D] are added, if there are any. Rows of the inputs have a stride.
    """
    R, W, T, D, n = sizes
    for word in up_to(R * W):
        lane = word // W
        for t in up_to(T):
            row = word * T + t
            for i in spaced(0, D, LANES):
                count = least(LANES, D - i)
                given = load_some(inputs, row * stride + i, count)
                change = _change(inputs, last, given, word, t, T, i, D, stride)
                for j in up_to(n):
                    own, place = (lane * n + j) * D + i, (row * n + j) * D + i
                    share = _share(shares, more, own, place, count)
                    to = one_of(inputs, outputs, j)
                    store_some(to, row * D + i, count, given + share * change)


@loop
def mixed_backward(
    inputs: Array,
    last: Array,
    shares: Array,
    more: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_last: Array,
    by_shares: Array,
    by_more: Array,
    sizes: Any,
    stride: int,
) -> None:
    """The gradients, of n by outputs, by address, or 0; those by shares are added to zeros."""
    R, W, T, D, n = sizes
    zero = by_inputs.dtype.type(0)
    for word in up_to(R * W):
        lane = word // W
        for t in up_to(T):
            row = word * T + t
            for i in spaced(0, D, LANES):
                count = least(LANES, D - i)
                given = load_some(inputs, row * stride + i, count)
                change = _change(inputs, last, given, word, t, T, i, D, stride)
                summed, shared = splat(zero), splat(zero)
                for j in up_to(n):
                    own, place = (lane * n + j) * D + i, (row * n + j) * D + i
                    wanted = splat(zero)
                    by_output = one_of(by_inputs, by_outputs, j)
                    if exists(by_output):
                        wanted = load_some(by_output, row * D + i, count)
                    summed = summed + wanted
                    shared = shared + wanted * _share(shares, more, own, place, count)
                    wanted = wanted * change
                    add_some(by_shares, own, count, wanted)
                    if exists(by_more):
                        store_some(by_more, place, count, wanted)
                store_some(by_inputs, row * D + i, count, summed - shared)
                if t == 0:
                    store_some(by_last, word * D + i, count, shared)
                else:
                    add_some(by_inputs, (row - 1) * D + i, count, shared)
