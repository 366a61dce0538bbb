"""Networks of saturating units over all positions, and their backward passes.

The LSTM, the GRU, the Elman and the second-order network.

R replicas, W words, T time, V rows of arguments, H units, G gates (4, 3 or 1).
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, exists, put, release, zeros
from statetrack.ops.loops.panels import add_rows, pack_columns, pack_rows
from statetrack.ops.loops.tiles import GROUP, PIECE, add_products
from statetrack.ops.loops.vectors import (
    LANES,
    expect,
    hyperbolic_tangent,
    load,
    load_some,
    padded,
    sigmoid,
    splat,
    store,
    store_some,
)


@loop
def gated_forward(
    table: Array,
    rows: Any,
    weights: Array,
    biases: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    sizes: Any,
) -> None:
    """Outputs [R, W, T, H] of gates' arguments: rows [R, W, T] of a table [R, V, G H].

    Weights are [R, G H, H], biases [R, H] of a GRU's new state, and states [R, W, H], or h and c of
    an LSTM, [R, W, 2, H]; without a first one it is zero. Unless empty, kept are
    [R, W, T, 6, 5 or 1, padded H]: h, and of an LSTM the gates and c, of a GRU the gates, the new
    state and what the reset gate multiplies.
    """
    R, W, T, V, H, G = sizes
    P = padded(H)
    zero = outputs.dtype.type(0)
    parts, N = (2, 6) if G == 4 else (1, 5 if G == 3 else 1)
    panels, states, after, cells, sums = zeros(
        first, (G * P * H, GROUP * P, GROUP * P, GROUP * P, GROUP * G * P)
    )
    for lane in up_to(R):
        pack_columns(weights, lane * G * H * H, G, H, H, panels)
        for start in spaced(0, W, GROUP):
            words = least(GROUP, W - start)
            for word in up_to(words):
                place = (lane * W + start + word) * parts * H
                for i in spaced(0, H, LANES):
                    count = least(LANES, H - i)
                    state, cell = splat(zero), splat(zero)
                    if exists(first):
                        state = load_some(first, place + i, count)
                        if G == 4:
                            cell = load_some(first, place + H + i, count)
                    store(states, word * P + i, state)
                    store(cells, word * P + i, cell)
            for t in up_to(T):
                for word in up_to(words):
                    place = (lane * V + at(rows, (lane * W + start + word) * T + t)) * G * H
                    for i in spaced(0, H, LANES):
                        count, own = least(LANES, H - i), (word * P + i) * G
                        for gate in up_to(G):
                            if G == 3 and gate == 2:
                                argument = load_some(biases, lane * H + i, count)
                            else:
                                argument = load_some(table, place + gate * H + i, count)
                            store(sums, own + gate * LANES, argument)
                if t > 0 or exists(first):
                    shape = words, H, P // LANES * G
                    right = panels, 0, H * LANES, LANES
                    add_products((states, 0, P, 1), right, shape, (sums, 0, G * P))
                for word in up_to(words):
                    row = (lane * W + start + word) * T + t
                    for i in spaced(0, H, LANES):
                        count, place = least(LANES, H - i), word * P + i
                        own = place * G
                        if G == 4:
                            enter = sigmoid(load(sums, own), first)
                            forget = sigmoid(load(sums, own + LANES), first)
                            new = hyperbolic_tangent(load(sums, own + 2 * LANES), first)
                            opened = sigmoid(load(sums, own + 3 * LANES), first)
                            cell = forget * load(cells, place) + enter * new
                            store(cells, place, cell)
                            hidden = opened * hyperbolic_tangent(cell, first)
                            if exists(kept):
                                memory = row * N * P + i
                                store(kept, memory + P, enter)
                                store(kept, memory + 2 * P, forget)
                                store(kept, memory + 3 * P, new)
                                store(kept, memory + 4 * P, opened)
                                store(kept, memory + 5 * P, cell)
                        elif G == 3:
                            reset = sigmoid(load(sums, own), first)
                            keep = sigmoid(load(sums, own + LANES), first)
                            read = load(sums, own + 2 * LANES)
                            argument = (lane * V + at(rows, row)) * G * H + 2 * H + i
                            new = load_some(table, argument, count) + reset * read
                            new = hyperbolic_tangent(new, first)
                            hidden = new + keep * (load(states, place) - new)
                            if exists(kept):
                                memory = row * N * P + i
                                store(kept, memory + P, reset)
                                store(kept, memory + 2 * P, keep)
                                store(kept, memory + 3 * P, new)
                                store(kept, memory + 4 * P, read)
                        else:
                            hidden = hyperbolic_tangent(load(sums, own), first)
                        store(after, place, hidden)
                        if exists(kept):
                            store(kept, row * N * P + i, hidden)
                            for each in up_to(N):
                                expect(kept, ((row + 1) * N + each) * P + i)
                        store_some(outputs, row * H + i, count, hidden)
                states, after = after, states
            for word in up_to(words):
                place = (lane * W + start + word) * parts * H
                for i in spaced(0, H, LANES):
                    count = least(LANES, H - i)
                    store_some(last, place + i, count, load(states, word * P + i))
                    if G == 4:
                        store_some(last, place + H + i, count, load(cells, word * P + i))
    release(panels)


@loop
def gated_backward(
    rows: Any,
    weights: Array,
    first: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_table: Array,
    by_weights: Array,
    by_biases: Array,
    by_first: Array,
    sizes: Any,
) -> None:
    """The gradients; those by tables, weights and biases are added to zeros."""
    R, W, T, V, H, G = sizes
    P = padded(H)
    zero, one = first.dtype.type(0), first.dtype.type(1)
    parts, N = (2, 6) if G == 4 else (1, 5 if G == 3 else 1)
    stride, width = G * P + LANES, P + LANES  # no multiple of a power of two, for the caches
    several = PIECE * GROUP
    panels, adjoints, by_cells, found, befores, grown = zeros(
        first, (G * P * H, GROUP * P, GROUP * P, several * stride, several * width, G * H * P)
    )
    for lane in up_to(R):
        pack_rows(weights, lane * G * H * H, G, H, H, panels)
        for start in spaced(0, W, GROUP):
            words = least(GROUP, W - start)
            for word in up_to(words):
                place = (lane * W + start + word) * parts * H
                for i in spaced(0, H, LANES):
                    count = least(LANES, H - i)
                    along, by_cell = splat(zero), splat(zero)
                    if exists(by_last):
                        along = load_some(by_last, place + i, count)
                        if G == 4:
                            by_cell = load_some(by_last, place + H + i, count)
                    store(adjoints, word * P + i, along)
                    store(by_cells, word * P + i, by_cell)
            held = 0
            for t in spaced(T - 1, -1, -1):
                for word in up_to(words):
                    row = (lane * W + start + word) * T + t
                    argument = (lane * V + at(rows, row)) * G * H
                    for i in spaced(0, H, LANES):
                        count = least(LANES, H - i)
                        place, own = word * P + i, (held + word) * stride + i
                        for each in up_to(N):
                            expect(kept, ((row - 2) * N + each) * P + i)
                        wanted = load_some(by_outputs, row * H + i, count)
                        wanted = wanted + load(adjoints, place)
                        state = splat(zero)
                        if t > 0:
                            state = load(kept, (row - 1) * N * P + i)
                        elif exists(first):
                            state = load_some(
                                first, (lane * W + start + word) * parts * H + i, count
                            )
                        store(befores, (held + word) * width + i, state)
                        if G == 4:
                            memory = row * N * P + i
                            enter, forget = load(kept, memory + P), load(kept, memory + 2 * P)
                            new, opened = load(kept, memory + 3 * P), load(kept, memory + 4 * P)
                            before = splat(zero)
                            if t > 0:
                                before = load(kept, memory - P)
                            elif exists(first):
                                cell = (lane * W + start + word) * 2 * H + H + i
                                before = load_some(first, cell, count)
                            shown = hyperbolic_tangent(load(kept, memory + 5 * P), first)
                            by_opened = wanted * shown * opened * (one - opened)
                            by_cell = load(by_cells, place)
                            by_cell = by_cell + wanted * opened * (one - shown * shown)
                            store(by_cells, place, by_cell * forget)
                            by_enter = by_cell * new * enter * (one - enter)
                            by_forget = by_cell * before * forget * (one - forget)
                            by_new = by_cell * enter * (one - new * new)
                            store(found, own, by_enter)
                            store(found, own + P, by_forget)
                            store(found, own + 2 * P, by_new)
                            store(found, own + 3 * P, by_opened)
                            store(adjoints, place, splat(zero))
                        elif G == 3:
                            memory = row * N * P + i
                            reset, keep = load(kept, memory + P), load(kept, memory + 2 * P)
                            new, read = load(kept, memory + 3 * P), load(kept, memory + 4 * P)
                            by_new = wanted * (one - keep) * (one - new * new)
                            by_keep = wanted * (state - new) * keep * (one - keep)
                            by_reset = by_new * read * reset * (one - reset)
                            store(found, own, by_reset)
                            store(found, own + P, by_keep)
                            store(found, own + 2 * P, by_new * reset)
                            store(adjoints, place, wanted * keep)
                            summed = load_some(by_table, argument + 2 * H + i, count)
                            store_some(by_table, argument + 2 * H + i, count, summed + by_new)
                            summed = load_some(by_biases, lane * H + i, count)
                            store_some(by_biases, lane * H + i, count, summed + by_new * reset)
                        else:
                            hidden = load(kept, row * P + i)
                            store(found, own, wanted * (one - hidden * hidden))
                            store(adjoints, place, splat(zero))
                        for gate in up_to(G):
                            change = load(found, own + gate * P)
                            if not (G == 3 and gate == 2):
                                summed = load_some(by_table, argument + gate * H + i, count)
                                store_some(
                                    by_table, argument + gate * H + i, count, summed + change
                                )
                if t > 0 or exists(first):
                    for gate in up_to(G):
                        left = found, held * stride + gate * P, stride, 1
                        right = panels, gate * H * LANES, G * H * LANES, LANES
                        add_products(left, right, (words, H, P // LANES), (adjoints, 0, P))
                    held += words
                if held + words > several or t == 0:
                    for gate in up_to(G):
                        left, right = (found, gate * P, 1, stride), (befores, 0, LANES, width)
                        shape = H, held, P // LANES
                        add_products(left, right, shape, (grown, gate * H * P, P))
                    held = 0
            for word in up_to(words if exists(first) else 0):
                place = (lane * W + start + word) * parts * H
                for i in spaced(0, H, LANES):
                    count = least(LANES, H - i)
                    store_some(by_first, place + i, count, load(adjoints, word * P + i))
                    if G == 4:
                        store_some(by_first, place + H + i, count, load(by_cells, word * P + i))
        add_rows(grown, G * H, H, P, by_weights, lane * G * H * H, H)
        for place in spaced(0, G * H * P, LANES):
            store(grown, place, splat(zero))
    release(panels)


@loop
def second_order_forward(
    matrices: Array,
    biases: Array,
    symbols: Any,
    first: Array,
    outputs: Array,
    last: Array,
    sizes: Any,
) -> None:
    """States [R, W, T, H] of symbols [R, W, T], with matrices [R, V, H, H] and biases [R, V, H]."""
    R, W, T, V, H = sizes
    P = padded(H)
    panels, state, sums = zeros(first, (V * P * H, P, P))
    for lane in up_to(R):
        pack_columns(matrices, lane * V * H * H, V, H, H, panels)
        for word in spaced(lane * W, lane * W + W, 1):
            for i in spaced(0, H, LANES):
                store(state, i, load_some(first, word * H + i, least(LANES, H - i)))
            for row in spaced(word * T, word * T + T, 1):
                symbol = at(symbols, row)
                for i in spaced(0, H, LANES):
                    bias = (lane * V + symbol) * H + i
                    store(sums, i, load_some(biases, bias, least(LANES, H - i)))
                right = panels, symbol * H * LANES, V * H * LANES, LANES
                add_products((state, 0, P, 1), right, (1, H, P // LANES), (sums, 0, P))
                for i in spaced(0, H, LANES):
                    after = hyperbolic_tangent(load(sums, i), first)
                    store(state, i, after)
                    store_some(outputs, row * H + i, least(LANES, H - i), after)
            for i in spaced(0, H, LANES):
                store_some(last, word * H + i, least(LANES, H - i), load(state, i))
    release(panels)


@loop
def second_order_backward(
    matrices: Array,
    symbols: Any,
    first: Array,
    outputs: Array,
    by_outputs: Array,
    by_last: Array,
    by_matrices: Array,
    by_biases: Array,
    by_first: Array,
    sizes: Any,
) -> None:
    """The gradients; those by matrices and biases are added to zeros."""
    R, W, T, V, H = sizes
    P = padded(H)
    zero, one = first.dtype.type(0), first.dtype.type(1)
    adjoint, found, before = zeros(first, (P, P, P))
    for number in up_to(R * W):
        for i in up_to(H):
            put(adjoint, i, at(by_last, number * H + i) if exists(by_last) else zero)
        for t in spaced(T - 1, -1, -1):
            row = number * T + t
            symbol = number // W * V + at(symbols, row)
            for i in spaced(0, H, LANES):
                count = least(LANES, H - i)
                state = load_some(outputs, row * H + i, count)
                wanted = load_some(by_outputs, row * H + i, count) + load(adjoint, i)
                change = wanted * (one - state * state)
                store(found, i, change)
                summed = load_some(by_biases, symbol * H + i, count) + change
                store_some(by_biases, symbol * H + i, count, summed)
                if t > 0:
                    store(before, i, load_some(outputs, row * H - H + i, count))
                else:
                    store(before, i, load_some(first, number * H + i, count))
            for i in spaced(0, H, LANES):
                count = least(LANES, H - i)
                state, back = load(before, i), splat(zero)
                for j in up_to(H):
                    place = (symbol * H + j) * H + i
                    change = at(found, j)
                    back = back + change * load_some(matrices, place, count)
                    summed = load_some(by_matrices, place, count) + change * state
                    store_some(by_matrices, place, count, summed)
                store(adjoint, i, back)
        for i in up_to(H):
            put(by_first, number * H + i, at(adjoint, i))
    release(adjoint)
