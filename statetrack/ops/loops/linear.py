"""Linear maps of rows, and their backward pass.

R replicas, M rows, K inputs, N outputs.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import up_to
from statetrack.ops.loops.memory import Array, empty, exists, no_array, release
from statetrack.ops.loops.panels import pack_columns, pack_rows
from statetrack.ops.loops.rows import BLOCK, GROUP, add_columns, map_rows, outer_products
from statetrack.ops.loops.vectors import LANES, padded


@loop
def linear_forward(
    inputs: Array,
    weights: Array,
    biases: Array,
    others: Array,
    outputs: Array,
    sizes: Any,
    stride: int,
) -> None:
    """Rows [R, M, K], which have a stride, times weights [R, N, K]: [R, M, N].

    Plus biases [R, N] and other rows [R, M, N], if there are any.
    """
    R, M, K, N = sizes
    panels, sums = empty(outputs, (padded(N) * K, GROUP * padded(N)))
    for lane in up_to(R):
        pack_columns(weights, lane * N * K, 1, N, K, panels)
        rows, found = (inputs, lane * M * stride, stride), (outputs, lane * M * N, N)
        added = biases, lane * N, others, lane * M * N, N
        map_rows(rows, (M, K, N), (panels, 0), added, found, sums)
    release(panels)


@loop
def linear_backward(
    inputs: Array,
    weights: Array,
    by_outputs: Array,
    by_same: Array,
    by_inputs: Array,
    by_weights: Array,
    by_biases: Array,
    sizes: Any,
    stride: int,
) -> None:
    """The gradients; those by inputs are added to `by_same`, if any.

    Those by weights and biases are added to zeros.
    """
    R, M, K, N = sizes
    P = padded(K)
    panels, sums, packed, grown = empty(by_outputs, (P * N, GROUP * P, BLOCK * (P + LANES), N * P))
    for lane in up_to(R):
        wanted, rows = (by_outputs, lane * M * N, N), (inputs, lane * M * stride, stride)
        pack_rows(weights, lane * N * K, 1, N, K, panels)
        found = by_inputs, lane * M * K, K
        added = no_array(weights), 0, by_same, lane * M * K, K
        map_rows(wanted, (M, N, K), (panels, 0), added, found, sums)
        by_lane = by_weights, lane * N * K, K
        outer_products(wanted, rows, (M, K, N), by_lane, (packed, grown))
        if exists(by_biases):
            add_columns(by_outputs, lane * M, M, N, by_biases, lane * N)
    release(panels)
