"""The delta rule, with gates and several keys per position, and its backward pass.

W words, T time, N heads, n keys per position, K key size, V value size, G gates of a head.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.matrix_states import (
    CHUNK,
    add_gates,
    expect_row,
    gain_lanes,
    gains_of,
    kept_place,
    kept_row,
    num_wanted,
    transposed,
)
from statetrack.ops.loops.memory import Array, at, empty, exists, put, release
from statetrack.ops.loops.vectors import (
    LANES,
    expect,
    load,
    load_some,
    padded,
    splat,
    store,
    store_some,
    total,
)


@loop
def delta_forward(
    queries: Array,
    keys: Array,
    values: Array,
    betas: Array,
    log_gates: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """Outputs [W, T, N, V] and, unless empty, the last state [W, N, K, V] and what is kept.

    First states are of B words, which repeat; kept are the states before chunks, but the first, and
    the errors. Of the sequences the row (w, t) starts at (w T + t) times its stride. `log_gates`
    have G = K numbers a head, one or none.
    """
    W, T, N, n, K, V, G, B = sizes
    state, gates = empty(first, (K * LANES, K + LANES))
    ahead = least(T, CHUNK)
    for word in up_to(W):
        for head in up_to(N):
            for column in spaced(0, V, LANES):
                count = least(LANES, V - column)
                own = (word * N + head) * K * V + column
                given = (word % B * N + head) * K * V + column
                for i in up_to(K):
                    store(state, i * LANES, load_some(first, given + i * V, count))
                for t in up_to(T):
                    if exists(kept) and t > 0 and t % CHUNK == 0:
                        place = kept_place(word * N + head, t, T, K, V) + column
                        for i in up_to(K):
                            store(kept, place + i * padded(V), load(state, i * LANES))
                    row = word * T + t
                    query = row * strides[0] + head * K
                    expect_row(queries, query + ahead * strides[0], K)
                    expect(outputs, ((row + ahead) * N + head) * V + column)
                    if G > 0:
                        gains_of(log_gates, row * strides[4] + head * G, G, K, gates)
                        for i in up_to(K):
                            store(state, i * LANES, at(gates, i) * load(state, i * LANES))
                    read = splat(first.dtype.type(0))
                    for p in up_to(n):
                        key = row * strides[1] + (p * N + head) * K
                        value = row * strides[2] + (p * N + head) * V + column
                        error = load_some(values, value, count)
                        expect_row(keys, key + ahead * strides[1], K)
                        expect(values, value + ahead * strides[2])
                        for i in up_to(K):
                            error = error - at(keys, key + i) * load(state, i * LANES)
                        if exists(kept):
                            place = kept_row(word * N + head, W * N, t * n + p, T, n, K, V)
                            store(kept, place + column, error)
                        error = at(betas, row * strides[3] + p * N + head) * error
                        if p < n - 1:
                            for i in up_to(K):
                                after = load(state, i * LANES) + at(keys, key + i) * error
                                store(state, i * LANES, after)
                        else:
                            for i in up_to(K):
                                after = load(state, i * LANES) + at(keys, key + i) * error
                                store(state, i * LANES, after)
                                read = read + at(queries, query + i) * after
                    store_some(outputs, (row * N + head) * V + column, count, read)
                if exists(last):
                    for i in up_to(K):
                        store_some(last, own + i * V, count, load(state, i * LANES))
    release(state)


@loop
def delta_backward(
    queries: Array,
    keys: Array,
    values: Array,
    betas: Array,
    log_gates: Array,
    initial: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_betas: Array,
    by_gates: Array,
    by_first: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """The gradients, those by gates added to zeros, of the gradients of outputs and last state.

    First those of values, with columns of the state's gradient as lanes, which need no state; then
    those of queries and keys, with rows as lanes, of states that are computed anew in each chunk.
    So no sum is over lanes.
    """
    W, T, N, n, K, V, _, _ = sizes
    alongs, states, adjoint, gates = empty(
        kept, (T * n * padded(V), (CHUNK * (n + 1) + 1) * V * LANES, (K + V) * LANES, K + LANES)
    )
    for own in up_to(W * N):
        word, head = own // N, own % N
        until = num_wanted(by_outputs, by_last, word, head, T, N, V)
        for column in spaced(0, V, LANES):
            _delta_by_values(
                (queries, keys, betas, log_gates),
                (by_outputs, by_last, by_values, by_first),
                (alongs, adjoint, gates),
                (word, head, column, until),
                sizes,
                strides,
            )
        for t in up_to(until * n):
            found = splat(kept.dtype.type(0))
            place = kept_row(own, W * N, t, T, n, K, V)
            for column in spaced(0, V, LANES):
                error = load(kept, place + column)
                found = found + error * load(alongs, t * padded(V) + column)
            put(by_betas, (word * T * n + t) * N + head, total(found))
        for first in spaced(0, K, LANES):
            _delta_by_keys(
                (queries, keys, betas, log_gates, initial, kept),
                (by_outputs, by_last, by_queries, by_keys, by_gates),
                (alongs, adjoint, states),
                (word, head, first, until),
                sizes,
                strides,
            )
    release(alongs)


@part
def _delta_by_values(
    given: Any, gradients: Any, memory: Any, places: Any, sizes: Any, strides: Any
) -> None:
    queries, keys, betas, log_gates = given
    by_outputs, by_last, by_values, by_first = gradients
    alongs, adjoint, gates = memory
    word, head, column, until = places
    _, T, N, n, K, V, G, _ = sizes
    zero = adjoint.dtype.type(0)
    count = least(LANES, V - column)
    own = (word * N + head) * K * V + column
    for i in up_to(K):
        store(adjoint, i * LANES, splat(zero))
        if exists(by_last):
            store(adjoint, i * LANES, load_some(by_last, own + i * V, count))
    ahead = T if T <= CHUNK else -CHUNK
    for t in spaced(until - 1, -1, -1):
        row = word * T + t
        query = row * strides[0] + head * K
        key = row * strides[1] + ((n - 1) * N + head) * K
        wanted = load_some(by_outputs, (row * N + head) * V + column, count)
        expect_row(queries, query + ahead * strides[0], K)
        expect(by_outputs, ((row + ahead) * N + head) * V + column)
        if G > 0:
            gains_of(log_gates, row * strides[4] + head * G, G, K, gates)
        along = splat(zero)
        for i in up_to(K):
            held = load(adjoint, i * LANES) + at(queries, query + i) * wanted
            store(adjoint, i * LANES, held)
            along = along + at(keys, key + i) * held
        for p in spaced(n - 1, -1, -1):
            store(alongs, (t * n + p) * padded(V) + column, along)
            along = at(betas, row * strides[3] + p * N + head) * along
            place = ((row * n + p) * N + head) * V + column
            store_some(by_values, place, count, along)
            expect(by_values, place + ahead * n * N * V)
            expect_row(keys, key + ahead * strides[1], K)
            following = splat(zero)
            before = key - N * K
            if p > 0:
                for i in up_to(K):
                    held = load(adjoint, i * LANES) - at(keys, key + i) * along
                    store(adjoint, i * LANES, held)
                    following = following + at(keys, before + i) * held
            elif G > 0:
                for i in up_to(K):
                    held = load(adjoint, i * LANES) - at(keys, key + i) * along
                    store(adjoint, i * LANES, at(gates, i) * held)
            else:
                for i in up_to(K):
                    held = load(adjoint, i * LANES) - at(keys, key + i) * along
                    store(adjoint, i * LANES, held)
            along, key = following, before
    if exists(by_first):
        for i in up_to(K):
            store_some(by_first, own + i * V, count, load(adjoint, i * LANES))


@part
def _delta_by_keys(
    given: Any, gradients: Any, memory: Any, places: Any, sizes: Any, strides: Any
) -> None:
    queries, keys, betas, log_gates, initial, kept = given
    by_outputs, by_last, by_queries, by_keys, by_gates = gradients
    alongs, adjoint, states = memory
    word, head, first, until = places
    W, T, N, n, K, V, G, B = sizes
    zero = kept.dtype.type(0)
    count = least(LANES, K - first)
    own, size = word * N + head, V * LANES
    ahead = T if T <= CHUNK else -CHUNK
    transposed(by_last, (own * K + first) * V, V, count, V, adjoint)
    for start in spaced((until - 1) // CHUNK * CHUNK, -1, -CHUNK):
        length = least(CHUNK, until - start)
        if start > 0:
            place = kept_place(own, start, T, K, V) + first * padded(V)
            transposed(kept, place, padded(V), count, V, states)
        else:
            place = (word % B * N + head) * K * V + first * V
            transposed(initial, place, V, count, V, states)
        now = 0
        for t in up_to(length):
            row = word * T + start + t
            gain = gain_lanes(log_gates, row * strides[4] + head * G, G, first, count)
            for j in spaced(0, size, LANES):
                store(states, now + size + j, gain * load(states, now + j))
            now += size
            for p in up_to(n):
                key = load_some(keys, row * strides[1] + (p * N + head) * K + first, count)
                key = at(betas, row * strides[3] + p * N + head) * key
                place = kept_row(own, W * N, (start + t) * n + p, T, n, K, V)
                for j in up_to(V):
                    after = load(states, now + j * LANES) + at(kept, place + j) * key
                    store(states, now + size + j * LANES, after)
                now += size
        for t in spaced(length - 1, -1, -1):
            row = word * T + start + t
            query = load_some(queries, row * strides[0] + head * K + first, count)
            place = (row * N + head) * V
            found = splat(zero)
            for j in up_to(V):
                wanted = at(by_outputs, place + j)
                found = found + wanted * load(states, now + j * LANES)
                store(adjoint, j * LANES, load(adjoint, j * LANES) + wanted * query)
            place = (row * N + head) * K + first
            store_some(by_queries, place, count, found)
            expect(by_queries, place + ahead * N * K)
            for p in spaced(n - 1, -1, -1):
                now -= size
                key = load_some(keys, row * strides[1] + (p * N + head) * K + first, count)
                beta = at(betas, row * strides[3] + p * N + head)
                place = kept_row(own, W * N, (start + t) * n + p, T, n, K, V)
                other = ((start + t) * n + p) * padded(V)
                found = splat(zero)
                for j in up_to(V):
                    held = load(adjoint, j * LANES)
                    along = at(alongs, other + j)
                    found = found + at(kept, place + j) * held
                    found = found - along * load(states, now + j * LANES)
                    store(adjoint, j * LANES, held - beta * along * key)
                place = ((row * n + p) * N + head) * K + first
                store_some(by_keys, place, count, beta * found)
                expect(by_keys, place + ahead * n * N * K)
            if G > 0:
                gain = gain_lanes(log_gates, row * strides[4] + head * G, G, first, count)
                found = splat(zero)
                for j in spaced(0, size, LANES):
                    held = load(adjoint, j)
                    found = found + held * load(states, now + j)
                    store(adjoint, j, gain * held)
                add_gates(by_gates, (row * N + head) * G, G, first, count, found)
            now -= size
