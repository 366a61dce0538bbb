"""The scalar LSTM, and its backward pass.

R replicas, W words, T time, N heads, S cells of a head.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, exists, put, release, zeros
from statetrack.ops.loops.panels import add_rows
from statetrack.ops.loops.tiles import GROUP, PIECE, add_products
from statetrack.ops.loops.vectors import (
    LANES,
    exponential,
    greater,
    hyperbolic_tangent,
    load,
    load_some,
    log_sigmoid,
    padded,
    sigmoid,
    splat,
    store,
    store_some,
)


@loop
def slstm_forward(
    entering: Array,
    leaving: Array,
    biases: Array,
    recurrent: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    sizes: Any,
    sigmoidal: bool,
    strides: Any,
) -> None:
    """Hidden states [R, W, T, N, S] of gates i and f, z and o, to which two inputs are added.

    Inputs are [R, W, T, N, 2 S] each, biases [R, N, 4 S], weights [R, N, S, 4 S]. First and last
    states c, n, h and m are [R, W, N, 4, S]. Unless empty, kept are the gates' arguments, c, n, h
    and m at all positions, [R, W, T, N, 8, padded S].
    """
    R, W, T, N, S = sizes
    P = padded(S)
    panels, state, after, sums = zeros(first, (4 * P * S, GROUP * 4 * P, GROUP * P, GROUP * 4 * P))
    for number in up_to(R * N):
        lane, head = number // N, number % N
        weights = (lane * N + head) * S * 4 * S
        for i in spaced(0, S, LANES):
            for gate in up_to(4):
                for j in up_to(S):
                    row = load_some(
                        recurrent, weights + j * 4 * S + gate * S + i, least(LANES, S - i)
                    )
                    store(panels, (i * 4 + gate * LANES) * S + j * LANES, row)
        for start in spaced(lane * W, lane * W + W, GROUP):
            words = least(GROUP, lane * W + W - start)
            for word in up_to(words):
                place = ((start + word) * N + head) * 4 * S
                for part in up_to(4):
                    for i in up_to(S):
                        own = (word * 4 + part) * P + i
                        put(state, own, at(first, place + part * S + i))
            for t in up_to(T):
                for word in up_to(words):
                    row = (start + word) * T + t
                    for i in spaced(0, S, LANES):
                        count, bias = least(LANES, S - i), number * 4 * S + i
                        for gate in up_to(4):
                            part = head * 2 * S + gate % 2 * S + i
                            if gate < 2:
                                argument = load_some(entering, row * strides[0] + part, count)
                            else:
                                argument = load_some(leaving, row * strides[1] + part, count)
                            argument = argument + load_some(biases, bias + gate * S, count)
                            store(sums, (word * P + i) * 4 + gate * LANES, argument)
                left, right = (state, 2 * P, 4 * P, 1), (panels, 0, S * LANES, LANES)
                add_products(left, right, (words, S, P // LANES * 4), (sums, 0, 4 * P))
                for word in up_to(words):
                    row = ((start + word) * T + t) * N + head
                    for i in spaced(0, S, LANES):
                        count = least(LANES, S - i)
                        own, gates = word * 4 * P + i, (word * P + i) * 4
                        write, forget = load(sums, gates), load(sums, gates + LANES)
                        arguments = load(sums, gates + 2 * LANES), load(sums, gates + 3 * LANES)
                        before = forget
                        if sigmoidal:
                            before = log_sigmoid(forget, first)
                        before = before + load(state, own + 3 * P)
                        most = greater(before, write)
                        keep, enter = exponential(before - most), exponential(write - most)
                        new = hyperbolic_tangent(arguments[0], first)
                        update = keep * load(state, own) + enter * new
                        norm = keep * load(state, own + P) + enter
                        hidden = sigmoid(arguments[1], first) * update / norm
                        store(state, own, update)
                        store(state, own + P, norm)
                        store(after, word * P + i, hidden)
                        store(state, own + 3 * P, most)
                        store_some(outputs, row * S + i, count, hidden)
                        if exists(kept):
                            memory = row * 8 * P + i
                            store(kept, memory, write)
                            store(kept, memory + P, forget)
                            store(kept, memory + 2 * P, arguments[0])
                            store(kept, memory + 3 * P, arguments[1])
                            store(kept, memory + 4 * P, update)
                            store(kept, memory + 5 * P, norm)
                            store(kept, memory + 6 * P, hidden)
                            store(kept, memory + 7 * P, most)
                for word in up_to(words):
                    for i in spaced(0, S, LANES):
                        store(state, (word * 4 + 2) * P + i, load(after, word * P + i))
            for word in up_to(words):
                place = ((start + word) * N + head) * 4 * S
                for part in up_to(4):
                    for i in up_to(S):
                        own = (word * 4 + part) * P + i
                        put(last, place + part * S + i, at(state, own))
    release(panels)


@loop
def slstm_backward(
    recurrent: Array,
    first: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_entering: Array,
    by_leaving: Array,
    by_biases: Array,
    by_recurrent: Array,
    by_first: Array,
    sizes: Any,
    sigmoidal: bool,
) -> None:
    """The gradients; those by biases and weights are added to zeros.

    m has no gradient: h does not depend on it.
    """
    R, W, T, N, S = sizes
    P = padded(S)
    zero, one = first.dtype.type(0), first.dtype.type(1)
    stride, width = 4 * P + LANES, P + LANES  # no multiples of a power of two, for the caches
    several = PIECE * GROUP
    panels, begin, adjoint, found, befores, grown = zeros(
        first,
        (4 * P * S, GROUP * 4 * P, GROUP * 3 * P, several * stride, several * width, S * 4 * P),
    )
    for number in up_to(R * N):
        lane, head = number // N, number % N
        weights = (lane * N + head) * S * 4 * S
        for i in up_to(P):
            for gate in up_to(4):
                for j in up_to(S):
                    own = (i // LANES * 4 + gate) * LANES * S + j * LANES + i % LANES
                    weight = at(recurrent, weights + i * 4 * S + gate * S + j) if i < S else zero
                    put(panels, own, weight)
        for start in spaced(lane * W, lane * W + W, GROUP):
            words = least(GROUP, lane * W + W - start)
            for word in up_to(words):
                place = ((start + word) * N + head) * 4 * S
                for part in up_to(4):
                    for i in up_to(S):
                        own = (word * 4 + part) * P + i
                        put(begin, own, at(first, place + part * S + i))
                        if part < 3:
                            given = at(by_last, place + part * S + i) if exists(by_last) else zero
                            put(adjoint, (word * 3 + part) * P + i, given)
            held = 0
            for t in spaced(T - 1, -1, -1):
                for word in up_to(words):
                    row = ((start + word) * T + t) * N + head
                    for i in spaced(0, S, LANES):
                        count = least(LANES, S - i)
                        memory, own = row * 8 * P + i, word * 3 * P + i
                        if t > 0:
                            before = memory - N * 8 * P + 4 * P
                            update, norm = load(kept, before), load(kept, before + P)
                            hidden, most = load(kept, before + 2 * P), load(kept, before + 3 * P)
                        else:
                            before = word * 4 * P + i
                            update, norm = load(begin, before), load(begin, before + P)
                            hidden, most = load(begin, before + 2 * P), load(begin, before + 3 * P)
                        store(befores, (held + word) * width + i, hidden)
                        forget = load(kept, memory + P)
                        decayed, slope = forget, splat(one)
                        if sigmoidal:
                            decayed = log_sigmoid(forget, first)
                            slope = sigmoid(zero - forget, first)
                        after = load(kept, memory + 7 * P)
                        keep = exponential(decayed + most - after)
                        write = exponential(load(kept, memory) - after)
                        new = hyperbolic_tangent(load(kept, memory + 2 * P), first)
                        opened = sigmoid(load(kept, memory + 3 * P), first)
                        norm_after = load(kept, memory + 5 * P)
                        ratio = load(kept, memory + 4 * P) / norm_after
                        wanted = load_some(by_outputs, row * S + i, count)
                        wanted = wanted + load(adjoint, own + 2 * P)
                        by_output = wanted * ratio * opened * (one - opened)
                        wanted = wanted * opened / norm_after
                        by_update = load(adjoint, own) + wanted
                        by_norm = load(adjoint, own + P) - wanted * ratio
                        by_keep = by_update * update + by_norm * norm
                        place = (held + word) * stride + i
                        store(found, place, (by_update * new + by_norm) * write)
                        store(found, place + P, by_keep * keep * slope)
                        store(found, place + 2 * P, by_update * write * (one - new * new))
                        store(found, place + 3 * P, by_output)
                        store(adjoint, own, by_update * keep)
                        store(adjoint, own + P, by_norm * keep)
                        for gate in up_to(4):
                            change = load(found, place + gate * P)
                            own = (row * 2 + gate % 2) * S + i
                            if gate < 2:
                                store_some(by_entering, own, count, change)
                            else:
                                store_some(by_leaving, own, count, change)
                            bias = (number * 4 + gate) * S + i
                            summed = load_some(by_biases, bias, count) + change
                            store_some(by_biases, bias, count, summed)
                for word in up_to(words):
                    for i in spaced(0, S, LANES):
                        store(adjoint, (word * 3 + 2) * P + i, splat(zero))
                for gate in up_to(4):
                    left = found, held * stride + gate * P, stride, 1
                    right = panels, gate * LANES * S, 4 * LANES * S, LANES
                    add_products(left, right, (words, S, P // LANES), (adjoint, 2 * P, 3 * P))
                held += words
                if held + words > several or t == 0:
                    left, right = (befores, 0, 1, width), (found, 0, LANES, stride)
                    add_products(left, right, (S, held, P // LANES * 4), (grown, 0, 4 * P))
                    held = 0
            for word in up_to(words):
                place = ((start + word) * N + head) * 4 * S
                for part in up_to(3):
                    for i in up_to(S):
                        own = (word * 3 + part) * P + i
                        put(by_first, place + part * S + i, at(adjoint, own))
        add_rows(grown, 4 * S, S, P, by_recurrent, weights, S)
        for place in spaced(0, S * 4 * P, LANES):
            store(grown, place, splat(zero))
    release(panels)
