"""Attention without a softmax, whose matrix memory decays and forgets, and its backward pass.

W words, T time, N heads, M heads of keys, K key size, V value size, G gates of a head.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.matrix_states import (
    CHUNK,
    add_gates,
    clear,
    expect_row,
    gain_lanes,
    gains_of,
    kept_place,
    kept_row,
    num_wanted,
    transposed,
)
from statetrack.ops.loops.memory import Array, at, empty, exists, release
from statetrack.ops.loops.vectors import (
    LANES,
    expect,
    load,
    load_some,
    padded,
    splat,
    store,
    store_some,
)


@loop
def attention_forward(
    queries: Array,
    keys: Array,
    values: Array,
    log_gates: Array,
    removals: Array,
    replacements: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    sizes: Any,
    early: bool,
    strides: Any,
) -> None:
    """S <- diag(a) S - p (S^T r)^T + k v^T, read as S^T q: outputs [W, T, N, V], the last state.

    `early` reads the state before a position. Queries and keys are of M heads, N or 1 for all.
    Log-gates have G = K numbers a head, one or none. Removals r and replacements p [W, T, N, K] are
    empty where nothing is removed, as has to be the case with `early`.
    """
    W, T, N, M, K, V, G, B = sizes
    zero = first.dtype.type(0)
    state, gates = empty(first, (K * LANES, K + LANES))
    ahead = least(T, CHUNK)
    for word in up_to(W):
        for head in up_to(N):
            shared = head * K if M > 1 else 0
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
                    gains_of(log_gates, row * strides[3] + head * G, G, K, gates)
                    value = load_some(values, row * strides[2] + head * V + column, count)
                    query, key = row * strides[0] + shared, row * strides[1] + shared
                    expect_row(queries, query + ahead * strides[0], K)
                    expect_row(keys, key + ahead * strides[1], K)
                    expect_row(log_gates, (row + ahead) * strides[3] + head * G, G)
                    expect(values, (row + ahead) * strides[2] + head * V + column)
                    expect(outputs, ((row + ahead) * N + head) * V + column)
                    read = splat(zero)
                    if exists(removals):
                        remove = row * strides[4] + head * K
                        replace = row * strides[5] + head * K
                        expect_row(removals, remove + ahead * strides[4], K)
                        expect_row(replacements, replace + ahead * strides[5], K)
                        gone = splat(zero)
                        for i in up_to(K):
                            gone = gone + at(removals, remove + i) * load(state, i * LANES)
                        if exists(kept):
                            place = kept_row(word * N + head, W * N, t, T, 1, K, V)
                            store(kept, place + column, gone)
                        for i in up_to(K):
                            after = at(gates, i) * load(state, i * LANES)
                            after = after - at(replacements, replace + i) * gone
                            after = after + at(keys, key + i) * value
                            store(state, i * LANES, after)
                            read = read + at(queries, query + i) * after
                    else:
                        for i in up_to(K):
                            held = load(state, i * LANES)
                            after = at(gates, i) * held
                            after = after + at(keys, key + i) * value
                            store(state, i * LANES, after)
                            seen = held if early else after
                            read = read + at(queries, query + i) * seen
                    store_some(outputs, (row * N + head) * V + column, count, read)
                if exists(last):
                    for i in up_to(K):
                        store_some(last, own + i * V, count, load(state, i * LANES))
    release(state)


@loop
def attention_backward(
    queries: Array,
    keys: Array,
    values: Array,
    log_gates: Array,
    removals: Array,
    replacements: Array,
    initial: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_gates: Array,
    by_removals: Array,
    by_replacements: Array,
    by_first: Array,
    sizes: Any,
    early: bool,
    strides: Any,
) -> None:
    """The gradients, in two passes as those of the delta rule."""
    W, T, N, M, K, V, G, _ = sizes
    gones, states, adjoint, gates = empty(
        kept, (T * padded(V), (CHUNK + 1) * V * LANES, (K + V) * LANES, K + LANES)
    )
    for own in up_to(W * N):
        word, head = own // N, own % N
        until = num_wanted(by_outputs, by_last, word, head, T, N, V)
        if M == N or head == 0:
            clear(by_queries, word, head, until, T, M, K)
            clear(by_keys, word, head, until, T, M, K)
        clear(by_values, word, head, until, T, N, V)
        clear(by_gates, word, head, 0 if G == 1 else until, T, N, G)
        if exists(removals):
            clear(by_removals, word, head, until, T, N, K)
            clear(by_replacements, word, head, until, T, N, K)
        for column in spaced(0, V, LANES):
            _attention_by_values(
                (queries, keys, log_gates, removals, replacements),
                (by_outputs, by_last, by_values, by_first),
                (gones, adjoint, gates),
                (word, head, column, until),
                sizes,
                early,
                strides,
            )
        for first in spaced(0, K, LANES):
            _attention_by_keys(
                (queries, keys, values, log_gates, removals, replacements, initial, kept),
                (by_outputs, by_last, by_queries, by_keys, by_gates, by_removals, by_replacements),
                (gones, adjoint, states),
                (word, head, first, until),
                sizes,
                early,
                strides,
            )
    release(gones)


@part
def _attention_by_values(
    given: Any, gradients: Any, memory: Any, places: Any, sizes: Any, early: bool, strides: Any
) -> None:
    queries, keys, log_gates, removals, replacements = given
    by_outputs, by_last, by_values, by_first = gradients
    gones, adjoint, gates = memory
    word, head, column, until = places
    _, T, N, M, K, V, G, _ = sizes
    zero = adjoint.dtype.type(0)
    count = least(LANES, V - column)
    own = (word * N + head) * K * V + column
    shared = head * K if M > 1 else 0
    for i in up_to(K):
        store(adjoint, i * LANES, splat(zero))
        if exists(by_last):
            store(adjoint, i * LANES, load_some(by_last, own + i * V, count))
    ahead = T if T <= CHUNK else -CHUNK
    for t in spaced(until - 1, -1, -1):
        row = word * T + t
        query, key = row * strides[0] + shared, row * strides[1] + shared
        expect_row(queries, query + ahead * strides[0], K)
        expect_row(keys, key + ahead * strides[1], K)
        expect_row(log_gates, (row + ahead) * strides[3] + head * G, G)
        expect(by_outputs, ((row + ahead) * N + head) * V + column)
        expect(by_values, ((row + ahead) * N + head) * V + column)
        wanted = load_some(by_outputs, (row * N + head) * V + column, count)
        gains_of(log_gates, row * strides[3] + head * G, G, K, gates)
        by_value = splat(zero)
        if exists(removals):
            remove, replace = row * strides[4] + head * K, row * strides[5] + head * K
            expect_row(removals, remove + ahead * strides[4], K)
            expect_row(replacements, replace + ahead * strides[5], K)
            by_gone = splat(zero)
            for i in up_to(K):
                held = load(adjoint, i * LANES) + at(queries, query + i) * wanted
                store(adjoint, i * LANES, held)
                by_value = by_value + at(keys, key + i) * held
                by_gone = by_gone - at(replacements, replace + i) * held
            store(gones, t * padded(V) + column, by_gone)
            for i in up_to(K):
                held = at(gates, i) * load(adjoint, i * LANES)
                store(adjoint, i * LANES, held + at(removals, remove + i) * by_gone)
        else:
            for i in up_to(K):
                held, asked = load(adjoint, i * LANES), at(queries, query + i) * wanted
                if not early:
                    held = held + asked
                by_value = by_value + at(keys, key + i) * held
                held = at(gates, i) * held
                if early:
                    held = held + asked
                store(adjoint, i * LANES, held)
        store_some(by_values, (row * N + head) * V + column, count, by_value)
    if exists(by_first):
        for i in up_to(K):
            store_some(by_first, own + i * V, count, load(adjoint, i * LANES))


@part
def _attention_by_keys(
    given: Any, gradients: Any, memory: Any, places: Any, sizes: Any, early: bool, strides: Any
) -> None:
    queries, keys, values, log_gates, removals, replacements, initial, kept = given
    by_outputs, by_last, by_queries, by_keys, by_gates, by_removals, by_replacements = gradients
    gones, adjoint, states = memory
    word, head, first, until = places
    W, T, N, M, K, V, G, B = sizes
    zero = kept.dtype.type(0)
    count = least(LANES, K - first)
    own, size = word * N + head, V * LANES
    shared = (head * K if M > 1 else 0) + first
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
        for t in up_to(length):
            row = word * T + start + t
            before, now = t * size, (t + 1) * size
            gain = gain_lanes(log_gates, row * strides[3] + head * G, G, first, count)
            key = load_some(keys, row * strides[1] + shared, count)
            value = row * strides[2] + head * V
            for j in up_to(V):
                after = gain * load(states, before + j * LANES) + at(values, value + j) * key
                store(states, now + j * LANES, after)
            if exists(removals):
                replace = load_some(replacements, row * strides[5] + head * K + first, count)
                place = kept_row(own, W * N, start + t, T, 1, K, V)
                for j in up_to(V):
                    after = load(states, now + j * LANES) - at(kept, place + j) * replace
                    store(states, now + j * LANES, after)
        for t in spaced(length - 1, -1, -1):
            row = word * T + start + t
            before, now = t * size, (t + 1) * size
            gain = gain_lanes(log_gates, row * strides[3] + head * G, G, first, count)
            query = load_some(queries, row * strides[0] + shared, count)
            value, output = row * strides[2] + head * V, (row * N + head) * V
            expect_row(values, value + ahead * strides[2], V)
            expect(by_queries, (row + ahead) * M * K + shared)
            expect(by_keys, (row + ahead) * M * K + shared)
            expect(by_gates, ((row + ahead) * N + head) * G + least(first, G))
            by_query, by_key, found = splat(zero), splat(zero), splat(zero)
            if exists(removals):
                remove = load_some(removals, row * strides[4] + head * K + first, count)
                place = kept_row(own, W * N, start + t, T, 1, K, V)
                other = (start + t) * padded(V)
                expect(by_removals, ((row + ahead) * N + head) * K + first)
                expect(by_replacements, ((row + ahead) * N + head) * K + first)
                by_removal, by_replacement = splat(zero), splat(zero)
                for j in up_to(V):
                    wanted, by_gone = at(by_outputs, output + j), at(gones, other + j)
                    held = load(adjoint, j * LANES) + wanted * query
                    earlier = load(states, before + j * LANES)
                    by_query = by_query + wanted * load(states, now + j * LANES)
                    by_key = by_key + at(values, value + j) * held
                    by_removal = by_removal + by_gone * earlier
                    by_replacement = by_replacement - at(kept, place + j) * held
                    found = found + held * earlier
                    store(adjoint, j * LANES, gain * held + by_gone * remove)
                place = (row * N + head) * K + first
                store_some(by_removals, place, count, by_removal)
                store_some(by_replacements, place, count, by_replacement)
            else:
                for j in up_to(V):
                    wanted, held = at(by_outputs, output + j), load(adjoint, j * LANES)
                    seen = before if early else now
                    if not early:
                        held = held + wanted * query
                    by_query = by_query + wanted * load(states, seen + j * LANES)
                    by_key = by_key + at(values, value + j) * held
                    found = found + held * load(states, before + j * LANES)
                    held = gain * held
                    if early:
                        held = held + wanted * query
                    store(adjoint, j * LANES, held)
            place = row * M * K + shared
            if M < N and head > 0:
                by_query = by_query + load_some(by_queries, place, count)
                by_key = by_key + load_some(by_keys, place, count)
            store_some(by_queries, place, count, by_query)
            store_some(by_keys, place, count, by_key)
            add_gates(by_gates, (row * N + head) * G, G, first, count, gain * found)
