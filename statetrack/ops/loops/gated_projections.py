"""Queries, keys and values by block-diagonal maps, and gates that read all three, with gradients.

Rows are read once, and gradients of all uses of them are added up before they are written.

R replicas, M rows, E channels, n blocks of K channels, G gates.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.block_diagonal import (
    grow_blocks,
    joined,
    map_blocks,
    pack_blocks,
    room_for_matrices,
    room_for_panels,
    take_blocks,
)
from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, beyond, empty, no_array, release, zeros
from statetrack.ops.loops.panels import pack_columns, pack_rows
from statetrack.ops.loops.rows import BLOCK, GROUP, add_columns, map_rows, outer_products
from statetrack.ops.loops.vectors import LANES, padded


@loop
def projections_forward(
    mixed: Array,
    upper: Array,
    query_blocks: Array,
    key_blocks: Array,
    value_blocks: Array,
    weights: Array,
    biases: Array,
    queries: Array,
    keys: Array,
    values: Array,
    gates: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """Queries and keys of rows `mixed`, values of rows `upper`, [R, M, E], and gates [R, M, G].

    Blocks are [R, n, K, K], weights of gates [R, 3, G, E], for these three, and biases [R, G].
    """
    R, M, n, K, G = sizes
    E, together = n * K, joined(n, K, K)
    own = room_for_panels(n, K, K)
    matrix, panels, gate_panels, sums = empty(
        queries,
        (
            together * K * together * K,
            3 * own,
            3 * padded(G) * E,
            GROUP * (padded(together * K) + padded(G)),
        ),
    )
    for lane in up_to(R):
        place = lane * n * K * K
        pack_blocks(query_blocks, place, (n, K, K), False, matrix, panels)
        pack_blocks(key_blocks, place, (n, K, K), False, matrix, beyond(panels, own))
        pack_blocks(value_blocks, place, (n, K, K), False, matrix, beyond(panels, 2 * own))
        for each in up_to(3):
            to = beyond(gate_panels, each * padded(G) * E)
            pack_columns(weights, (lane * 3 + each) * G * E, 1, G, E, to)
        for start in spaced(lane * M, lane * M + M, GROUP):
            count = least(GROUP, lane * M + M - start)
            rows, others = (mixed, start * strides[0], strides[0]), (no_array(mixed), 0, 0)
            shape, to = (count, n, K, K), start * E
            map_blocks(rows, shape, panels, others, (queries, to, E), sums)
            map_blocks(rows, shape, beyond(panels, own), others, (keys, to, E), sums)
            rows = upper, start * strides[1], strides[1]
            map_blocks(rows, shape, beyond(panels, 2 * own), others, (values, to, E), sums)
            found, narrow, nothing = (gates, start * G, G), (count, E, G), no_array(mixed)
            first, second = (gate_panels, 0), (gate_panels, padded(G) * E)
            third = gate_panels, 2 * padded(G) * E
            with_biases = biases, lane * G, nothing, 0, 0
            with_others = nothing, 0, gates, start * G, G
            map_rows((queries, to, E), narrow, first, with_biases, found, sums)
            map_rows((keys, to, E), narrow, second, with_others, found, sums)
            map_rows((values, to, E), narrow, third, with_others, found, sums)
    release(matrix)


@loop
def projections_backward(
    mixed: Array,
    upper: Array,
    query_blocks: Array,
    key_blocks: Array,
    value_blocks: Array,
    weights: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_gates: Array,
    by_mixed_same: Array,
    by_upper_same: Array,
    by_mixed: Array,
    by_upper: Array,
    by_query_blocks: Array,
    by_key_blocks: Array,
    by_value_blocks: Array,
    by_weights: Array,
    by_biases: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """The gradients; those by weights and biases are added to zeros, those by rows to the same.

    Queries, keys and values are computed again.
    """
    R, M, n, K, G = sizes
    E, together = n * K, joined(n, K, K)
    P, own, width = padded(E), room_for_panels(n, K, K), together * K
    matrix, panels, back, gate_panels, seen, wanted, sums, packed, grown = empty(
        by_mixed,
        (
            width * width,
            own,
            own,
            P * G,
            BLOCK * (P + LANES),
            BLOCK * (P + LANES),
            GROUP * (P + padded(width)),
            BLOCK * (P + padded(width) + LANES),
            G * P + width * padded(width),
        ),
    )
    (matrices,) = zeros(by_mixed, (room_for_matrices(n, K, K),))
    for lane in up_to(R):
        place = lane * n * K * K
        for each in up_to(3):
            blocks, by_blocks, along = query_blocks, by_query_blocks, by_queries
            rows, stride, same, by_rows = mixed, strides[0], by_mixed_same, by_mixed
            if each == 1:
                blocks, by_blocks, along, same = key_blocks, by_key_blocks, by_keys, by_mixed
            if each == 2:
                blocks, by_blocks, along = value_blocks, by_value_blocks, by_values
                rows, stride, same, by_rows = upper, strides[1], by_upper_same, by_upper
            of_gates = (lane * 3 + each) * G * E
            pack_blocks(blocks, place, (n, K, K), False, matrix, panels)
            pack_blocks(blocks, place, (n, K, K), True, matrix, back)
            pack_rows(weights, of_gates, 1, G, E, gate_panels)
            for start in spaced(lane * M, lane * M + M, BLOCK):
                count, to = least(BLOCK, lane * M + M - start), start * E
                own_rows, opened = (rows, start * stride, stride), (by_gates, start * G, G)
                shape, changes = (count, n, K, K), (wanted, 0, P + LANES)
                added = no_array(wanted), 0, along, to, E
                map_rows(opened, (count, G, E), (gate_panels, 0), added, changes, sums)
                others, again = (no_array(wanted), 0, 0), (seen, 0, P + LANES)
                map_blocks(own_rows, shape, panels, others, again, sums)
                found, room = (by_weights, of_gates, E), (packed, grown)
                outer_products(opened, again, (count, E, G), found, room)
                map_blocks(changes, shape, back, (same, to, E), (by_rows, to, E), sums)
                grow_blocks(own_rows, changes, shape, matrices, room)
            take_blocks(matrices, (n, K, K), by_blocks, place)
        add_columns(by_gates, lane * M, M, G, by_biases, lane * G)
    release(matrix)
    release(matrices)
