"""Queries, keys and values by block-diagonal maps, and gates that read all three, by a loop.

E channels, n blocks of K channels, G gates.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    call,
    contiguous,
    loops,
    or_zeros,
    rows_of_each,
)


class Projections(NamedTuple):
    """Queries, keys and values [..., E], arguments of gates [..., G], and the rows, passed on."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    gates: Tensor
    mixed: Tensor
    upper: Tensor


def gated_projections(
    mixed: Tensor,
    upper: Tensor,
    blocks: tuple[Tensor, Tensor, Tensor],
    weights: Tensor,
    biases: Tensor,
) -> Projections:
    """Queries and keys of rows `mixed`, values of rows `upper`, [..., E], and what gates get.

    Blocks are [n, K, K] of queries, keys and values. Gates get W_q q + W_k k + W_v v + b, with
    weights W [3, G, E] and biases b [G]. The rows are for other uses: gradients of all are added in
    one pass.
    """
    found = call(mixed, _PROJECTIONS, upper, *blocks, weights, biases, has_lanes=False)
    return Projections(*found)


def _forward(keep: bool, mixed: Tensor, upper: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
    parts = [mixed.new_empty(mixed.shape) for _ in range(3)]
    gates = mixed.new_empty(*mixed.shape[:-1], weights[-1].shape[-1])
    rows, strides = rows_of_each(mixed, upper, leading=mixed.dim() - 1)
    sizes = _sizes(mixed, weights[0], weights[-1])
    loop = loops("gated_projections").projections_forward
    loop(*rows, *contiguous(*weights), *parts, gates, sizes, strides)
    kept = parts[0].new_empty(len(mixed), 0)
    return *parts, gates, kept


def _backward(given: list[Tensor], kept: Tensor, *gradients: Tensor | None) -> Tensors:
    mixed, upper, *weights = given
    *by_results, by_mixed, by_upper = gradients
    widths = *[mixed.shape[-1]] * 3, weights[-1].shape[-1]
    along = [
        or_zeros(part, (*mixed.shape[:-1], width), mixed)
        for part, width in zip(by_results, widths, strict=True)
    ]
    rows, strides = rows_of_each(mixed, upper, leading=mixed.dim() - 1)
    by_rows = [part.new_empty(part.shape) for part in (mixed, upper)]
    found = [part.new_zeros(part.shape) for part in weights]
    arrays = contiguous(*weights[:-1], *along, by_mixed, by_upper, *by_rows, *found)
    sizes = _sizes(mixed, weights[0], weights[-1])
    loops("gated_projections").projections_backward(*rows, *arrays, sizes, strides)
    return *by_rows, *found


_PROJECTIONS = Loop(_forward, _backward, passes=2)


def _sizes(rows: Tensor, blocks: Tensor, biases: Tensor) -> tuple[int, ...]:
    """R, M, n, K and G."""
    lanes, width = len(rows), rows.shape[-1]
    return lanes, rows.numel() // (lanes * width), *blocks.shape[1:3], biases.shape[-1]
