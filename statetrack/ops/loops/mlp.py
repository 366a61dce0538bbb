"""Two linear maps of rows with units between them, and the backward pass.

What the units get is computed for some rows at a time, and again in the backward pass: it is
several times as wide as the rows, and is never written to memory as a whole.

R replicas, M rows, D inputs, U units, N outputs.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, empty, exists, no_array, release
from statetrack.ops.loops.normal import unit
from statetrack.ops.loops.panels import pack_columns, pack_rows
from statetrack.ops.loops.rows import (
    BLOCK,
    GROUP,
    add_columns,
    biases_alone,
    map_rows,
    no_rows,
    outer_products,
    outer_products_of_block,
)
from statetrack.ops.loops.vectors import (
    LANES,
    add_some,
    load,
    load_some,
    padded,
    splat,
    store,
)


@loop
def mlp_forward(
    inputs: Array,
    maps: Array,
    biases: Array,
    gates: Array,
    gate_biases: Array,
    last: Array,
    last_biases: Array,
    others: Array,
    outputs: Array,
    sizes: Any,
    stride: int,
    kind: int,
) -> None:
    """C f(A x + a) + c of rows x [R, M, D], which have a stride: [R, M, N].

    A [R, U, D] are the maps, C [R, N, U] the last ones; with gates B the arguments of C are
    f(B x + b) (A x + a). Other rows [R, M, N] are added, if there are any.
    """
    R, M, D, U, N = sizes
    P = padded(U)
    first, second, third, own, gate_own, arguments, gating, sums = empty(
        outputs, (P * D, P * D, padded(N) * U, P, P, GROUP * P, GROUP * P, GROUP * padded(N))
    )
    for lane in up_to(R):
        _pack(maps, biases, lane, U, D, first, own)
        if exists(gates):
            _pack(gates, gate_biases, lane, U, D, second, gate_own)
        pack_columns(last, lane * N * U, 1, N, U, third)
        for start in spaced(lane * M, lane * M + M, GROUP):
            count = least(GROUP, lane * M + M - start)
            rows, of_units = (inputs, start * stride, stride), (count, D, P)
            map_rows(rows, of_units, (first, 0), biases_alone(own, 0), (arguments, 0, P), sums)
            if exists(gates):
                added = biases_alone(gate_own, 0)
                map_rows(rows, of_units, (second, 0), added, (gating, 0, P), sums)
            for place in spaced(0, count * P, LANES):
                argument = load(arguments, place)
                if exists(gates):
                    active, _ = unit(load(gating, place), outputs, kind)
                    store(arguments, place, active * argument)
                else:
                    active, _ = unit(argument, outputs, kind)
                    store(arguments, place, active)
            found, added = (outputs, start * N, N), (last_biases, lane * N, others, start * N, N)
            map_rows((arguments, 0, P), (count, U, N), (third, 0), added, found, sums)
    release(first)


@loop
def mlp_backward(
    inputs: Array,
    maps: Array,
    biases: Array,
    gates: Array,
    gate_biases: Array,
    last: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_maps: Array,
    by_biases: Array,
    by_gates: Array,
    by_gate_biases: Array,
    by_last: Array,
    by_last_biases: Array,
    sizes: Any,
    stride: int,
    kind: int,
) -> None:
    """The gradients; those by weights and biases are added to zeros."""
    R, M, D, U, N = sizes
    P, Q = padded(U), padded(D)
    S = P + LANES  # of rows of units
    first, second, third, back, gates_back, own, gate_own = empty(
        by_outputs, (P * D, P * D, P * N, Q * U, Q * U, P, P)
    )
    most = U * Q if U * Q > N * P else N * P
    arguments, gating, wanted, sums, packed, grown = empty(
        by_outputs, (BLOCK * S, BLOCK * S, BLOCK * S, GROUP * Q, BLOCK * (Q + LANES), most)
    )
    for lane in up_to(R):
        _pack(maps, biases, lane, U, D, first, own)
        pack_rows(maps, lane * U * D, 1, U, D, back)
        if exists(gates):
            _pack(gates, gate_biases, lane, U, D, second, gate_own)
            pack_rows(gates, lane * U * D, 1, U, D, gates_back)
        pack_rows(last, lane * N * U, 1, N, U, third)
        for start in spaced(lane * M, lane * M + M, BLOCK):
            count = least(BLOCK, lane * M + M - start)
            rows, of_units = (inputs, start * stride, stride), (count, D, P)
            map_rows(rows, of_units, (first, 0), biases_alone(own, 0), (arguments, 0, S), sums)
            if exists(gates):
                added = biases_alone(gate_own, 0)
                map_rows(rows, of_units, (second, 0), added, (gating, 0, S), sums)
            given = by_outputs, start * N, N
            map_rows(given, (count, N, P), (third, 0), no_rows(maps), (wanted, 0, S), sums)
            for row in up_to(count):
                for i in spaced(0, U, LANES):
                    place, bias, number = row * S + i, lane * U + i, least(LANES, U - i)
                    argument, along = load(arguments, place), load(wanted, place)
                    if exists(gates):
                        active, slope = unit(load(gating, place), by_outputs, kind)
                        by_gate, by_argument = along * argument * slope, along * active
                        active = active * argument
                        store(gating, place, by_gate)
                        if exists(by_gate_biases):
                            add_some(by_gate_biases, bias, number, by_gate)
                    else:
                        active, slope = unit(argument, by_outputs, kind)
                        by_argument = along * slope
                    store(wanted, place, active)
                    store(arguments, place, by_argument)
                    if exists(by_biases):
                        add_some(by_biases, bias, number, by_argument)
            found = by_last, lane * N * U, U
            outer_products_of_block(given, wanted, (count, U, N), found, grown)
            found, shape = (by_maps, lane * U * D, D), (count, D, U)
            outer_products((arguments, 0, S), rows, shape, found, (packed, grown))
            if exists(gates):
                found = by_gates, lane * U * D, D
                outer_products((gating, 0, S), rows, shape, found, (packed, grown))
            found, shape = (by_inputs, start * D, D), (count, U, D)
            map_rows((arguments, 0, S), shape, (back, 0), no_rows(maps), found, sums)
            if exists(gates):
                added = no_array(maps), 0, by_inputs, start * D, D
                map_rows((gating, 0, S), shape, (gates_back, 0), added, found, sums)
            if exists(by_last_biases):
                add_columns(by_outputs, start, count, N, by_last_biases, lane * N)
    release(first)
    release(arguments)


@part
def _pack(
    weights: Array, biases: Array, lane: int, U: int, D: int, panels: Array, padded_biases: Array
) -> None:
    """Weights [U, D] of a replica in panels, and its biases, or zeros, in whole vectors."""
    pack_columns(weights, lane * U * D, 1, U, D, panels)
    for i in spaced(0, U, LANES):
        own = splat(weights.dtype.type(0))
        if exists(biases):
            own = load_some(biases, lane * U + i, least(LANES, U - i))
        store(padded_biases, i, own)
