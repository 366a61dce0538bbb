"""Attention without a softmax under one decay for each head, chunk by chunk, and its backward pass.

With a(s, t) = a_{s+1} + .. + a_t, inside a chunk that begins after S_0,

    y_t = sum_{s <= t} e^a(s, t) w_s (q_t . k_s) v_s + e^a(0, t) S_0^T q_t
    S_c = e^a(0, c) S_0 + sum_s e^a(s, c) w_s k_s v_s^T

(Dao & Gu 2024, arXiv:2405.21060, section 6): products of small matrices, which take less arithmetic
than updates of the state one by one. A first state of zeros is not read, and what nobody wants,
such as a last state, is not computed.

Values may lack a last column, which is then one of ones: what reads it is the sum of the weights.

W words, T time, N heads, M heads of keys (N, or 1 for all), K key size, U size of the values that
are given, V value size (U or U + 1), G gates of a head (1 or 0), B words with first states.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.matrix_states import CHUNK, expect_rows, kept_place
from statetrack.ops.loops.memory import Array, at, exists, put, release, zeros
from statetrack.ops.loops.products import (
    ALL,
    FROM,
    UP_TO,
    keep_first,
    multiply,
    sums_between,
)
from statetrack.ops.loops.squares import turned
from statetrack.ops.loops.vectors import (
    LANES,
    exponential,
    load,
    load_some,
    padded,
    splat,
    store,
    store_some,
    total,
)


@part
def _is_zero(first: Array, place: int, size: int) -> bool:
    """Whether the first state of a word is zero."""
    for i in spaced(place, place + size, 1):
        if at(first, i) != first.dtype.type(0):
            return False
    return True


@part
def _decays(
    log_gates: Any, weights: Any, length: int, G: int, plain: Array, decays: Array, since: Array
) -> None:
    """Rows t of e^a(s, t), [length, LANES], zeros for s > t, and times w_s; e^a(0, t) of every t.

    Gates and weights w are an array, a place and a stride each; without weights the first rows
    are not written.
    """
    log_gates, place, stride = log_gates
    weights, weight, weight_stride = weights
    one = decays.dtype.type(1)
    if G == 0:
        for t in up_to(length):
            keep_first(decays, t * LANES, t + 1, splat(one))
        store(since, 0, splat(one))
    else:
        sums_between(log_gates, place, stride, length, decays)
        summed = decays.dtype.type(0)
        for t in up_to(length):
            keep_first(decays, t * LANES, t + 1, exponential(load(decays, t * LANES)))
            summed += at(log_gates, place + t * stride)
            put(since, t, summed)
        store(since, 0, exponential(load_some(since, 0, length)))
    if exists(weights):
        store(plain, 0, splat(decays.dtype.type(0)))
        for t in up_to(length):
            put(plain, t, at(weights, weight + t * weight_stride))
        by_position = load(plain, 0)
        for t in up_to(length):
            row = load(decays, t * LANES)
            store(plain, t * LANES, row)
            store(decays, t * LANES, row * by_position)


@part
def _scaled(rows: Any, factors: Any, sizes: Any, found: Array) -> None:
    """Rows [length, size] times factors, from the start of `found`, whose rows are padded.

    Rows are an array, a place and a stride, factors an array and a place.
    """
    (numbers, place, stride), (factors, first), (length, size) = rows, factors, sizes
    for t in up_to(length):
        factor = at(factors, first + t)
        for i in spaced(0, size, LANES):
            part = load_some(numbers, place + t * stride + i, least(LANES, size - i))
            store(found, t * padded(size) + i, factor * part)


@part
def _add_scaled(rows: Any, factors: Any, sizes: Any, found: Any) -> None:
    """Rows [length, size], an array and a width, times factors, added to rows that are found."""
    (numbers, width), (factors, first), (length, size) = rows, factors, sizes
    results, own, own_stride = found
    for t in up_to(length):
        factor = at(factors, first + t)
        for i in spaced(0, size, LANES):
            count = least(LANES, size - i)
            to = own + t * own_stride + i
            part = load_some(results, to, count) + factor * load(numbers, t * width + i)
            store_some(results, to, count, part)


@part
def _add_columns(
    rows: Array, length: int, size: int, found: Array, place: int, stride: int, added: bool
) -> None:
    """The sums of columns of padded rows [length, size], or added to numbers a stride apart."""
    for i in spaced(0, size, LANES):
        summed = splat(rows.dtype.type(0))
        for t in up_to(length):
            summed = summed + load(rows, t * padded(size) + i)
        store(rows, i, summed)
        for k in spaced(i, least(size, i + LANES), 1):
            to = place + k * stride
            put(found, to, at(rows, k) + (at(found, to) if added else rows.dtype.type(0)))


@loop
def decayed_forward(
    queries: Array,
    keys: Array,
    values: Array,
    log_gates: Array,
    writes: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """Outputs [W, T, N, V], the last state [W, N, K, V] and the states before chunks.

    The last state, and those kept, only unless their arrays are empty; first states are of B words,
    which repeat. What is written has weights w [W, T, N], unless they are empty. Of the sequences
    the row (w, t) starts at (w T + t) times its stride.
    """
    W, T, N, M, K, U, V, G, B = sizes
    P, Q = padded(V), padded(K)
    state, turned_keys, scores, weights, plain, decays, since, read, decayed, square = zeros(
        first,
        (
            N * K * P,
            Q * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            LANES,
            CHUNK * P,
            CHUNK * Q,
            LANES * LANES,
        ),
    )
    for word in up_to(W):
        held = not _is_zero(first, word % B * N * K * V, N * K * V)
        if held:
            for row in up_to(N * K):
                for j in spaced(0, V, LANES):
                    place = (word % B * N * K + row) * V + j
                    store(state, row * P + j, load_some(first, place, least(LANES, V - j)))
        for start in spaced(0, T, CHUNK):
            length = least(CHUNK, T - start)
            row = word * T + start
            if exists(kept) and start > 0:
                for head in up_to(N):
                    place = kept_place(word * N + head, start, T, K, V)
                    for i in spaced(0, K * P, LANES):
                        store(kept, place + i, load(state, head * K * P + i))
            for head in up_to(N):
                shared = head * K if M > 1 else 0
                query, key = row * strides[0] + shared, row * strides[1] + shared
                value, output = row * strides[2] + head * U, (row * N + head) * V
                if head == 0 or M > 1:
                    expect_rows((queries, query + length * strides[0], strides[0]), length, K)
                    expect_rows((keys, key + length * strides[1], strides[1]), length, K)
                expect_rows((values, value + length * strides[2], strides[2]), length, U)
                expect_rows((outputs, output + length * N * V, N * V), length, V)
                if head == 0 or M > 1:
                    turned((keys, key, strides[1]), length, K, turned_keys, 0, LANES, square)
                    multiply(
                        (queries, query, strides[0], 1),
                        (turned_keys, 0, LANES),
                        (scores, 0, LANES),
                        (length, K, LANES),
                        ALL,
                        False,
                    )
                gates = (log_gates, row * strides[3] + head, strides[3])
                written = (writes, row * strides[4] + head, strides[4])
                _decays(gates, written, length, G, plain, decays, since)
                for t in up_to(length):
                    weight = load(decays, t * LANES) * load(scores, t * LANES)
                    keep_first(weights, t * LANES, t + 1, weight)
                    if U < V:
                        put(outputs, output + t * N * V + U, total(load(weights, t * LANES)))
                multiply(
                    (weights, 0, LANES, 1),
                    (values, value, strides[2]),
                    (outputs, output, N * V),
                    (length, length, U),
                    UP_TO,
                    False,
                )
                if held:
                    multiply(
                        (queries, query, strides[0], 1),
                        (state, head * K * P, P),
                        (read, 0, P),
                        (length, K, P),
                        ALL,
                        False,
                    )
                    _add_scaled((read, P), (since, 0), (length, V), (outputs, output, N * V))
                if exists(last) or start + length < T:
                    end = (length - 1) * LANES
                    _scaled((keys, key, strides[1]), (decays, end), (length, K), decayed)
                    if held:
                        factor = at(since, length - 1)
                        for i in spaced(head * K * P, (head + 1) * K * P, LANES):
                            store(state, i, factor * load(state, i))
                    multiply(
                        (decayed, 0, 1, Q),
                        (values, value, strides[2]),
                        (state, head * K * P, P),
                        (K, length, U),
                        ALL,
                        held,
                    )
                    if U < V:
                        _add_columns(decayed, length, K, state, head * K * P + U, P, held)
            held = True
        if exists(last):
            for row in up_to(N * K):
                for j in spaced(0, V, LANES):
                    place = (word * N * K + row) * V + j
                    store_some(last, place, least(LANES, V - j), load(state, row * P + j))
    release(state)


@loop
def decayed_backward(
    queries: Array,
    keys: Array,
    values: Array,
    log_gates: Array,
    writes: Array,
    first: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_gates: Array,
    by_writes: Array,
    by_first: Array,
    sizes: Any,
    strides: Any,
) -> None:
    """The gradients of those of the outputs and, unless empty, of the last state.

    A gate's gradient is the sum over all pairs of positions that it stands between.
    """
    W, T, N, M, K, U, V, G, B = sizes
    P, Q, zero = padded(V), padded(K), by_outputs.dtype.type(0)
    (
        adjoint,
        turned_adjoint,
        turned_state,
        turned_keys,
        turned_values,
        scores,
        weights,
        pairs,
        by_weights,
        by_scores,
        plain,
        decays,
        since,
        wanted,
        by_value,
        by_key,
        by_query,
        square,
    ) = zeros(
        by_outputs,
        (
            N * K * P,
            N * V * Q + LANES * Q,
            P * Q,
            Q * LANES,
            P * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            CHUNK * LANES,
            LANES,
            CHUNK * P,
            CHUNK * P,
            CHUNK * Q,
            CHUNK * Q,
            LANES * LANES,
        ),
    )
    for word in up_to(W):
        carried = exists(by_last)
        if carried:
            for row in up_to(N * K):
                for j in spaced(0, V, LANES):
                    place = (word * N * K + row) * V + j
                    store(adjoint, row * P + j, load_some(by_last, place, least(LANES, V - j)))
            for head in up_to(N):
                place = (word * N + head) * K * V
                to = head * V * Q
                turned((by_last, place, V), K, V, turned_adjoint, to, Q, square)
        for start in spaced((T - 1) // CHUNK * CHUNK, -1, -CHUNK):
            length = least(CHUNK, T - start)
            row = word * T + start
            held = start > 0 or not _is_zero(first, word % B * N * K * V, N * K * V)
            needed = start > 0 or exists(by_first)
            for head in up_to(N):
                shared = head * K if M > 1 else 0
                query, key = row * strides[0] + shared, row * strides[1] + shared
                value, output = row * strides[2] + head * U, (row * N + head) * V
                to_query, to_value = row * M * K + shared, (row * N + head) * U
                ahead = length if T <= CHUNK else -CHUNK
                if head == 0 or M > 1:
                    expect_rows((queries, query + ahead * strides[0], strides[0]), length, K)
                    expect_rows((keys, key + ahead * strides[1], strides[1]), length, K)
                    expect_rows((by_queries, to_query + ahead * M * K, M * K), length, K)
                    expect_rows((by_keys, to_query + ahead * M * K, M * K), length, K)
                expect_rows((values, value + ahead * strides[2], strides[2]), length, U)
                expect_rows((by_outputs, output + ahead * N * V, N * V), length, V)
                expect_rows((by_values, to_value + ahead * N * U, N * U), length, U)
                if head == 0 or M > 1:
                    turned((keys, key, strides[1]), length, K, turned_keys, 0, LANES, square)
                    multiply(
                        (queries, query, strides[0], 1),
                        (turned_keys, 0, LANES),
                        (scores, 0, LANES),
                        (length, K, LANES),
                        ALL,
                        False,
                    )
                    for t in up_to(length):
                        store(by_scores, t * LANES, splat(zero))
                gates = (log_gates, row * strides[3] + head, strides[3])
                written = (writes, row * strides[4] + head, strides[4])
                _decays(gates, written, length, G, plain, decays, since)
                turned((values, value, strides[2]), length, U, turned_values, 0, LANES, square)
                multiply(
                    (by_outputs, output, N * V, 1),
                    (turned_values, 0, LANES),
                    (by_weights, 0, LANES),
                    (length, U, LANES),
                    ALL,
                    False,
                )
                if U < V:
                    for t in up_to(length):
                        by_sum = splat(at(by_outputs, output + t * N * V + U))
                        store(by_weights, t * LANES, load(by_weights, t * LANES) + by_sum)
                by_write = splat(zero)
                if exists(writes):
                    for t in up_to(length):
                        found = load_some(by_weights, t * LANES, t + 1) * load(plain, t * LANES)
                        by_write = by_write + found * load(scores, t * LANES)
                for t in up_to(length):
                    decay, score = load(decays, t * LANES), load(scores, t * LANES)
                    keep_first(weights, t * LANES, t + 1, decay * score)
                    found = load(by_weights, t * LANES) * decay
                    keep_first(pairs, t * LANES, t + 1, found * score)
                    keep_first(by_weights, t * LANES, t + 1, found)
                    found = load(by_scores, t * LANES) + load(by_weights, t * LANES)
                    store(by_scores, t * LANES, found)
                multiply(
                    (weights, 0, 1, LANES),
                    (by_outputs, output, N * V),
                    (by_values, to_value, N * U),
                    (length, length, U),
                    FROM,
                    False,
                )
                if head == N - 1 or M > 1:
                    multiply(
                        (by_scores, 0, LANES, 1),
                        (keys, key, strides[1]),
                        (by_queries, to_query, M * K),
                        (length, length, K),
                        UP_TO,
                        M == 1 and N > 1,
                    )
                    multiply(
                        (by_scores, 0, 1, LANES),
                        (queries, query, strides[0]),
                        (by_keys, to_query, M * K),
                        (length, length, K),
                        FROM,
                        M == 1 and N > 1,
                    )
                elif head == 0:
                    for t in up_to(length):
                        for i in spaced(0, K, LANES):
                            place, count = to_query + t * K + i, least(LANES, K - i)
                            store_some(by_queries, place, count, splat(zero))
                            store_some(by_keys, place, count, splat(zero))
                end = (length - 1) * LANES
                if carried:
                    multiply(
                        (keys, key, strides[1], 1),
                        (adjoint, head * K * P, P),
                        (by_value, 0, P),
                        (length, K, P),
                        ALL,
                        False,
                    )
                    _add_scaled(
                        (by_value, P), (decays, end), (length, U), (by_values, to_value, N * U)
                    )
                    multiply(
                        (values, value, strides[2], 1),
                        (turned_adjoint, head * V * Q, Q),
                        (by_key, 0, Q),
                        (length, U, Q),
                        ALL,
                        False,
                    )
                    if U < V:
                        for i in spaced(0, Q, LANES):
                            by_norm = load(turned_adjoint, (head * V + U) * Q + i)
                            for t in up_to(length):
                                store(by_key, t * Q + i, load(by_key, t * Q + i) + by_norm)
                    _add_scaled((by_key, Q), (decays, end), (length, K), (by_keys, to_query, M * K))
                if held or needed:
                    _scaled((by_outputs, output, N * V), (since, 0), (length, V), wanted)
                if held:
                    if start > 0:
                        place = kept_place(word * N + head, start, T, K, V)
                        turned((kept, place, P), K, V, turned_state, 0, Q, square)
                    else:
                        place = (word % B * N + head) * K * V
                        turned((first, place, V), K, V, turned_state, 0, Q, square)
                    multiply(
                        (wanted, 0, P, 1),
                        (turned_state, 0, Q),
                        (by_query, 0, Q),
                        (length, V, Q),
                        ALL,
                        False,
                    )
                    for t in up_to(length):
                        for i in spaced(0, K, LANES):
                            place, count = to_query + t * M * K + i, least(LANES, K - i)
                            found = load_some(by_queries, place, count)
                            found = found + load(by_query, t * Q + i)
                            store_some(by_queries, place, count, found)
                if G > 0:
                    _by_gates(
                        (queries, query, strides[0]),
                        (keys, key, strides[1]),
                        by_query,
                        by_key,
                        turned_state,
                        (turned_adjoint, head * V * Q),
                        pairs,
                        (decays, end, since),
                        (length, K, V),
                        held,
                        carried,
                        (by_gates, row * N + head, N),
                    )
                if exists(writes):
                    store(by_weights, 0, by_write)
                    for t in up_to(length):
                        found = at(by_weights, t)
                        if carried:
                            along = _product(keys, key + t * strides[1], by_key, t * Q, K)
                            found += at(plain, end + t) * along
                        put(by_writes, (row + t) * N + head, found)
                if needed:
                    if carried:
                        factor = at(since, length - 1)
                        for i in spaced(head * K * P, (head + 1) * K * P, LANES):
                            store(adjoint, i, factor * load(adjoint, i))
                        for i in spaced(head * V * Q, (head + 1) * V * Q, LANES):
                            store(turned_adjoint, i, factor * load(turned_adjoint, i))
                    multiply(
                        (queries, query, 1, strides[0]),
                        (wanted, 0, P),
                        (adjoint, head * K * P, P),
                        (K, length, P),
                        ALL,
                        carried,
                    )
                    if start > 0:
                        multiply(
                            (wanted, 0, 1, P),
                            (queries, query, strides[0]),
                            (turned_adjoint, head * V * Q, Q),
                            (V, length, K),
                            ALL,
                            carried,
                        )
            carried = True
        if exists(by_first):
            for row in up_to(N * K):
                for j in spaced(0, V, LANES):
                    place = (word * N * K + row) * V + j
                    store_some(by_first, place, least(LANES, V - j), load(adjoint, row * P + j))
    release(adjoint)


@part
def _product(left: Array, place: int, right: Array, other: int, size: int) -> Any:
    """The inner product of two vectors."""
    found = splat(right.dtype.type(0))
    for i in spaced(0, size, LANES):
        count = least(LANES, size - i)
        found = found + load_some(left, place + i, count) * load_some(right, other + i, count)
    return total(found)


@part
def _by_gates(
    queries: Any,
    keys: Any,
    by_query: Array,
    by_key: Array,
    turned_state: Array,
    turned_adjoint: Any,
    pairs: Array,
    decays: Any,
    sizes: Any,
    held: bool,
    carried: bool,
    by_gates: Any,
) -> None:
    """The gradients by a head's log-gates: of pairs, of reads of S_0, of what reaches S_c."""
    queries, query, query_stride = queries
    keys, key, key_stride = keys
    turned_adjoint, own = turned_adjoint
    decays, end, since = decays
    length, K, V = sizes
    by_gates, to, to_stride = by_gates
    Q = padded(K)
    through = pairs.dtype.type(0)
    if held and carried:
        through = at(since, length - 1) * _product(turned_state, 0, turned_adjoint, own, V * Q)
    written = pairs.dtype.type(0)
    for t in up_to(length):
        put(by_gates, to + t * to_stride, through + written)
        if carried:
            along = _product(keys, key + t * key_stride, by_key, t * Q, K)
            written += at(decays, end + t) * along
    row = splat(pairs.dtype.type(0))
    read = pairs.dtype.type(0)
    for t in spaced(length - 1, -1, -1):
        row = row + load(pairs, t * LANES)
        store(pairs, t * LANES, row)
        if held:
            read += _product(queries, query + t * query_stride, by_query, t * Q, K)
        found = at(by_gates, to + t * to_stride) + read
        put(by_gates, to + t * to_stride, found + total(load_some(pairs, t * LANES, t)))
