"""Products of the states of some words with weights, for loops over positions.

A product takes four words at once, so that a vector of weights is read once for the four. Weights
are packed in panels: those of `LANES` neighbouring outputs follow one another.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, put
from statetrack.ops.loops.vectors import LANES, load, load_some, store, store_some

TILE = 4
"""Words whose products are taken at once."""

GROUP = 16
"""Words that a loop reads at once: their states stay in the fastest memory."""

PIECE = 8
"""Positions whose gradients are kept before those of the weights are taken of them."""


@part
def pack_columns(weights: Array, place: int, G: int, H: int, panels: Array) -> None:
    """Weights [G H, H] as panels [units / LANES, G, H, LANES], zeros for units there are not."""
    for i in spaced(0, H, LANES):
        for gate in up_to(G):
            own = (i * G + gate * LANES) * H
            for lane in up_to(LANES):
                row = place + (gate * H + i + lane) * H
                for j in up_to(H):
                    number = at(weights, row + j) if i + lane < H else weights.dtype.type(0)
                    put(panels, own + j * LANES + lane, number)


@part
def pack_rows(weights: Array, place: int, G: int, H: int, panels: Array) -> None:
    """Weights [G H, H] as panels [units / LANES, G, H, LANES] of the product with rows of gates."""
    for i in spaced(0, H, LANES):
        count = least(LANES, H - i)
        for gate in up_to(G):
            own = (i * G + gate * LANES) * H
            for j in up_to(H):
                row = place + (gate * H + j) * H + i
                store(panels, own + j * LANES, load_some(weights, row, count))


@part
def _of_four(
    states: Array, place: int, stride: int, panel: Array, own: int, K: int, sums: Any
) -> Any:
    """Four sums, plus the products of four states [K] with the weights [K, LANES] of a panel."""
    first, second, third, fourth = sums
    for j in up_to(K):
        weight = load(panel, own + j * LANES)
        first = first + at(states, place + j) * weight
        second = second + at(states, place + stride + j) * weight
        third = third + at(states, place + 2 * stride + j) * weight
        fourth = fourth + at(states, place + 3 * stride + j) * weight
    return first, second, third, fourth


@part
def multiply(
    states: Array,
    first: int,
    stride: int,
    panel: Array,
    own: int,
    K: int,
    words: int,
    sums: Array,
    place: int,
    step: int,
) -> None:
    """Add the products of states [words, K] with a panel [K, LANES] to vectors of sums.

    States begin at `first`, `stride` apart, the panel at `own`, sums at `place`, `step` apart.
    """
    whole = words // TILE * TILE
    for word in spaced(0, whole, TILE):
        row = place + word * step
        before = (
            load(sums, row),
            load(sums, row + step),
            load(sums, row + 2 * step),
            load(sums, row + 3 * step),
        )
        one, two, three, four = _of_four(
            states, first + word * stride, stride, panel, own, K, before
        )
        store(sums, row, one)
        store(sums, row + step, two)
        store(sums, row + 2 * step, three)
        store(sums, row + 3 * step, four)
    for word in spaced(whole, words, 1):
        row = place + word * step
        summed = load(sums, row)
        for j in up_to(K):
            weight = load(panel, own + j * LANES)
            summed = summed + at(states, first + word * stride + j) * weight
        store(sums, row, summed)


@part
def add_outer(
    left: Array,
    first: int,
    left_stride: int,
    M: int,
    right: Array,
    begin: int,
    right_stride: int,
    N: int,
    rows: int,
    found: Array,
    place: int,
    width: int,
) -> None:
    """Add the products of rows of left [rows, M] and right [rows, N] to found [M, N].

    Left begins at `first`, right at `begin`; found at `place`, with rows `width` apart. Right has
    whole vectors.
    """
    whole = M // TILE * TILE
    for i in spaced(0, N, LANES):
        count = least(LANES, N - i)
        for unit in spaced(0, whole, TILE):
            own = place + unit * width + i
            one = load_some(found, own, count)
            two = load_some(found, own + width, count)
            three = load_some(found, own + 2 * width, count)
            four = load_some(found, own + 3 * width, count)
            for row in up_to(rows):
                vector = load(right, begin + row * right_stride + i)
                number = first + row * left_stride + unit
                one = one + at(left, number) * vector
                two = two + at(left, number + 1) * vector
                three = three + at(left, number + 2) * vector
                four = four + at(left, number + 3) * vector
            store_some(found, own, count, one)
            store_some(found, own + width, count, two)
            store_some(found, own + 2 * width, count, three)
            store_some(found, own + 3 * width, count, four)
        for unit in spaced(whole, M, 1):
            own = place + unit * width + i
            summed = load_some(found, own, count)
            for row in up_to(rows):
                vector = load(right, begin + row * right_stride + i)
                summed = summed + at(left, first + row * left_stride + unit) * vector
            store_some(found, own, count, summed)
