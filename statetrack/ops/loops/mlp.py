"""Two linear maps of rows with units between them, and the backward pass.

What the units get is computed for some rows at a time, and again in the backward pass: it is
several times as wide as the rows, and is never written to memory as a whole.

R replicas, M rows, D inputs, I units, O outputs.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, empty, exists, no_array, release
from statetrack.ops.loops.normal import unit
from statetrack.ops.loops.panels import pack_columns, pack_rows
from statetrack.ops.loops.rows import BLOCK, GROUP, map_rows, outer_products, outer_products_of_block
from statetrack.ops.loops.tiles import add_products
from statetrack.ops.loops.vectors import LANES, add_some, load, load_some, padded, splat, store
from statetrack.ops.loops.vectors import store_some


@loop
def mlp_forward(
    inputs: Array,
    maps: Array,
    biases: Array,
    gates: Array,
    gate_biases: Array,
    last: Array,
    last_biases: Array,
    outputs: Array,
    sizes: Any,
    stride: int,
    kind: int,
) -> None:
    """W f(U x + b) + c of rows x [R, M, D], which have a stride: [R, M, O].

    U [R, I, D] are the maps, W [R, O, I] the last ones; with gates V the arguments of W are
    f(V x + v) (U x + b).
    """
    R, M, D, I, O = sizes
    P = padded(I)
    first, second, third, own, gate_own, arguments, others, sums = empty(
        outputs, (P * D, P * D, padded(O) * I, P, P, GROUP * P, GROUP * P, GROUP * padded(O))
    )
    for lane in up_to(R):
        _pack(maps, biases, lane, I, D, first, own)
        if exists(gates):
            _pack(gates, gate_biases, lane, I, D, second, gate_own)
        pack_columns(last, lane * O * I, 1, O, I, third)
        for start in spaced(lane * M, lane * M + M, GROUP):
            count = least(GROUP, lane * M + M - start)
            rows, of_units = (inputs, start * stride, stride), (count, D, P)
            map_rows(rows, of_units, (first, 0), (own, 0), (arguments, 0, P), sums)
            if exists(gates):
                map_rows(rows, of_units, (second, 0), (gate_own, 0), (others, 0, P), sums)
            for place in spaced(0, count * P, LANES):
                argument = load(arguments, place)
                if exists(gates):
                    active, _ = unit(load(others, place), outputs, kind)
                    store(arguments, place, active * argument)
                else:
                    active, _ = unit(argument, outputs, kind)
                    store(arguments, place, active)
            found, given = (outputs, start * O, O), (last_biases, lane * O)
            map_rows((arguments, 0, P), (count, I, O), (third, 0), given, found, sums)
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
    R, M, D, I, O = sizes
    P, Q = padded(I), padded(D)
    S = P + LANES  # of rows of units
    first, second, third, back, gates_back, own, gate_own = empty(
        by_outputs, (P * D, P * D, P * O, Q * I, Q * I, P, P)
    )
    most = I * Q if I * Q > O * P else O * P
    arguments, others, wanted, sums, packed, grown = empty(
        by_outputs, (BLOCK * S, BLOCK * S, BLOCK * S, GROUP * Q, BLOCK * (Q + LANES), most)
    )
    for lane in up_to(R):
        _pack(maps, biases, lane, I, D, first, own)
        pack_rows(maps, lane * I * D, 1, I, D, back)
        if exists(gates):
            _pack(gates, gate_biases, lane, I, D, second, gate_own)
            pack_rows(gates, lane * I * D, 1, I, D, gates_back)
        pack_rows(last, lane * O * I, 1, O, I, third)
        for start in spaced(lane * M, lane * M + M, BLOCK):
            count = least(BLOCK, lane * M + M - start)
            rows, of_units = (inputs, start * stride, stride), (count, D, P)
            map_rows(rows, of_units, (first, 0), (own, 0), (arguments, 0, S), sums)
            if exists(gates):
                map_rows(rows, of_units, (second, 0), (gate_own, 0), (others, 0, S), sums)
            given, none = (by_outputs, start * O, O), (no_array(maps), 0)
            map_rows(given, (count, O, P), (third, 0), none, (wanted, 0, S), sums)
            for row in up_to(count):
                for i in spaced(0, I, LANES):
                    place, bias, number = row * S + i, lane * I + i, least(LANES, I - i)
                    argument, along = load(arguments, place), load(wanted, place)
                    if exists(gates):
                        active, slope = unit(load(others, place), by_outputs, kind)
                        by_gate, by_argument = along * argument * slope, along * active
                        active = active * argument
                        store(others, place, by_gate)
                        if exists(by_gate_biases):
                            add_some(by_gate_biases, bias, number, by_gate)
                    else:
                        active, slope = unit(argument, by_outputs, kind)
                        by_argument = along * slope
                    store(wanted, place, active)
                    store(arguments, place, by_argument)
                    if exists(by_biases):
                        add_some(by_biases, bias, number, by_argument)
            found = by_last, lane * O * I, I
            outer_products_of_block(given, wanted, (count, I, O), found, grown)
            found, shape = (by_maps, lane * I * D, D), (count, D, I)
            outer_products((arguments, 0, S), rows, shape, found, (packed, grown))
            if exists(gates):
                found = by_gates, lane * I * D, D
                outer_products((others, 0, S), rows, shape, found, (packed, grown))
            for part in spaced(0, count, GROUP):
                number = least(GROUP, count - part)
                for place in spaced(0, number * Q, LANES):
                    store(sums, place, splat(by_outputs.dtype.type(0)))
                shape, to = (number, I, Q // LANES), (sums, 0, Q)
                right = back, 0, I * LANES, LANES
                add_products((arguments, part * S, S, 1), right, shape, to)
                if exists(gates):
                    right = gates_back, 0, I * LANES, LANES
                    add_products((others, part * S, S, 1), right, shape, to)
                for row in up_to(number):
                    for i in spaced(0, D, LANES):
                        place = (start + part + row) * D + i
                        store_some(by_inputs, place, least(LANES, D - i), load(sums, row * Q + i))
            if exists(by_last_biases):
                _add_columns(by_outputs, start, count, O, by_last_biases, lane * O)
    release(first)
    release(arguments)


@part
def _pack(
    weights: Array, biases: Array, lane: int, I: int, D: int, panels: Array, padded_biases: Array
) -> None:
    """Weights [I, D] of a replica in panels, and its biases, or zeros, in whole vectors."""
    pack_columns(weights, lane * I * D, 1, I, D, panels)
    for i in spaced(0, I, LANES):
        own = splat(weights.dtype.type(0))
        if exists(biases):
            own = load_some(biases, lane * I + i, least(LANES, I - i))
        store(padded_biases, i, own)


@part
def _add_columns(
    rows: Array, start: int, count: int, width: int, sums: Array, place: int
) -> None:
    """Add some rows [.., width] to a row of sums."""
    for row in spaced(start, start + count, 1):
        for i in spaced(0, width, LANES):
            number = least(LANES, width - i)
            add_some(sums, place + i, number, load_some(rows, row * width + i, number))
