"""The scalar LSTM, and its backward pass.

R replicas, W words, T time, N heads, S cells of a head.
"""

from __future__ import annotations

import numpy as np

from statetrack.ops.loops.compiling import compiled
from statetrack.ops.loops.vectors import (
    LANES,
    Array,
    at,
    exponential,
    greater,
    hyperbolic_tangent,
    load,
    load_some,
    log_sigmoid,
    padded,
    put,
    sigmoid,
    splat,
    store,
    store_some,
)


@compiled
def slstm_forward(
    inputs: Array,
    recurrent: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    R: int,
    W: int,
    T: int,
    N: int,
    S: int,
    sigmoidal: bool,
    stride: int,
) -> None:
    """Hidden states [R, W, T, N, S] of gates i, f, z, o that inputs [R, W, T, N, 4 S] add to.

    First and last states c, n, h and m are [R, W, N, 4, S], weights [R, N, S, 4 S]. Unless empty,
    kept are the gates' arguments, c, n, h and m at all positions, [R, W, T, N, 8, padded S].
    """
    P = padded(S)
    state = np.zeros(4 * P, first.dtype)
    gates = np.zeros(4 * P, first.dtype)
    for number in range(R * W):
        for head in range(N):
            place = (number * N + head) * 4 * S
            for part in range(4):
                for i in range(S):
                    put(state, part * P + i, at(first, place + part * S + i))
            weights = (number // W * N + head) * S * 4 * S
            for t in range(T):
                row = number * T + t
                for gate in range(4):
                    for i in range(0, S, LANES):
                        count = min(LANES, S - i)
                        own = gate * S + i
                        summed = load_some(inputs, row * stride + head * 4 * S + own, count)
                        for j in range(S):
                            weight = load_some(recurrent, weights + j * 4 * S + own, count)
                            summed = summed + at(state, 2 * P + j) * weight
                        store(gates, gate * P + i, summed)
                for i in range(0, S, LANES):
                    count = min(LANES, S - i)
                    write, before = load(gates, i), load(gates, P + i)
                    if sigmoidal:
                        before = log_sigmoid(before, first)
                    before = before + load(state, 3 * P + i)
                    most = greater(before, write)
                    keep, write = exponential(before - most), exponential(write - most)
                    new = hyperbolic_tangent(load(gates, 2 * P + i), first)
                    update = keep * load(state, i) + write * new
                    norm = keep * load(state, P + i) + write
                    hidden = sigmoid(load(gates, 3 * P + i), first) * update / norm
                    store(state, i, update)
                    store(state, P + i, norm)
                    store(state, 2 * P + i, hidden)
                    store(state, 3 * P + i, most)
                    store_some(outputs, (row * N + head) * S + i, count, hidden)
                if kept.size > 0:
                    own = (row * N + head) * 8 * P
                    for i in range(0, 4 * P, LANES):
                        store(kept, own + i, load(gates, i))
                        store(kept, own + 4 * P + i, load(state, i))
            for part in range(4):
                for i in range(S):
                    put(last, place + part * S + i, at(state, part * P + i))


@compiled
def slstm_backward(
    transposed: Array,
    first: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_inputs: Array,
    by_first: Array,
    R: int,
    W: int,
    T: int,
    N: int,
    S: int,
    sigmoidal: bool,
) -> None:
    """The gradients by inputs and first states, of weights transposed, [R, N, 4 S, S].

    m has no gradient: h does not depend on it.
    """
    P = padded(S)
    zero, one = first.dtype.type(0), first.dtype.type(1)
    start = np.zeros(4 * P, first.dtype)
    adjoint = np.zeros(3 * P, first.dtype)
    found = np.zeros(4 * P, first.dtype)
    for number in range(R * W):
        for head in range(N):
            place = (number * N + head) * 4 * S
            for part in range(4):
                for i in range(S):
                    put(start, part * P + i, at(first, place + part * S + i))
                    if part < 3:
                        given = at(by_last, place + part * S + i) if by_last.size > 0 else zero
                        put(adjoint, part * P + i, given)
            weights = (number // W * N + head) * S * 4 * S
            for t in range(T - 1, -1, -1):
                row = number * T + t
                own = (row * N + head) * 8 * P
                before = own - N * 8 * P + 4 * P
                for i in range(0, S, LANES):
                    count = min(LANES, S - i)
                    if t > 0:
                        update = load(kept, before + i)
                        norm = load(kept, before + P + i)
                        most = load(kept, before + 3 * P + i)
                    else:
                        update, norm = load(start, i), load(start, P + i)
                        most = load(start, 3 * P + i)
                    forget = load(kept, own + P + i)
                    decayed, slope = forget, splat(one)
                    if sigmoidal:
                        decayed = log_sigmoid(forget, first)
                        slope = sigmoid(zero - forget, first)
                    after = load(kept, own + 7 * P + i)
                    keep = exponential(decayed + most - after)
                    write = exponential(load(kept, own + i) - after)
                    new = hyperbolic_tangent(load(kept, own + 2 * P + i), first)
                    opened = sigmoid(load(kept, own + 3 * P + i), first)
                    norm_after = load(kept, own + 5 * P + i)
                    ratio = load(kept, own + 4 * P + i) / norm_after
                    wanted = load_some(by_outputs, (row * N + head) * S + i, count)
                    wanted = wanted + load(adjoint, 2 * P + i)
                    by_output = wanted * ratio * opened * (one - opened)
                    wanted = wanted * opened / norm_after
                    by_update = load(adjoint, i) + wanted
                    by_norm = load(adjoint, P + i) - wanted * ratio
                    store(found, i, (by_update * new + by_norm) * write)
                    by_keep = by_update * update + by_norm * norm
                    store(found, P + i, by_keep * keep * slope)
                    store(found, 2 * P + i, by_update * write * (one - new * new))
                    store(found, 3 * P + i, by_output)
                    store(adjoint, i, by_update * keep)
                    store(adjoint, P + i, by_norm * keep)
                for gate in range(4):
                    for i in range(0, S, LANES):
                        count = min(LANES, S - i)
                        put_at = (row * N + head) * 4 * S + gate * S + i
                        store_some(by_inputs, put_at, count, load(found, gate * P + i))
                for i in range(0, S, LANES):
                    count = min(LANES, S - i)
                    back = splat(zero)
                    for gate in range(4):
                        for j in range(S):
                            weight = weights + (gate * S + j) * S + i
                            weight_row = load_some(transposed, weight, count)
                            back = back + at(found, gate * P + j) * weight_row
                    store(adjoint, 2 * P + i, back)
            for part in range(3):
                for i in range(S):
                    put(by_first, place + part * S + i, at(adjoint, part * P + i))
