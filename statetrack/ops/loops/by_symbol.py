"""Recurrences whose operator is the symbol's, with a linear readout: matrices, blocks, or factors.

Rows are whole vectors: what follows their numbers is zero. Words of a replica that read the same
symbol are multiplied four at a time, so that a matrix is loaded once for all four.

Gradients are zero after the last position of a word whose logits have any: padding takes no time.

G lanes (replicas), B words of each, T time, V symbols, C labels, N numbers of a row, b block size.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import spaced, up_to
from statetrack.ops.loops.memory import Array, at, empty, exists, put, release, smallest, zeros
from statetrack.ops.loops.panels import pack_columns
from statetrack.ops.loops.rows import GROUP, map_rows, no_rows
from statetrack.ops.loops.tiles import (
    add_products,
    add_products_of_terms,
    products_of_rows,
)
from statetrack.ops.loops.vectors import (
    LANES,
    load,
    padded,
    splat,
    store,
    total,
)

# --- rows ---


@part
def _zeros(array: Array) -> Any:
    return splat(array.dtype.type(0.0))


@part
def _read(
    readout: Array, first: int, row: Array, place: int, N: int, C: int, logits: Array, to: int
) -> None:
    """The logits of one row."""
    for label in up_to(C):
        found = _zeros(logits)
        for n in spaced(0, N, LANES):
            found = found + load(readout, first + label * N + n) * load(row, place + n)
        put(logits, to + label, total(found))


@part
def _read_backward(
    readout: Array,
    first: int,
    row: Array,
    place: int,
    N: int,
    C: int,
    by_logits: Array,
    given: int,
    by_readout: Array,
    by_row: Array,
    to: int,
) -> None:
    """Add the gradients by the readout and by the row of one row's logits."""
    for label in up_to(C):
        factor = splat(at(by_logits, given + label))
        for n in spaced(0, N, LANES):
            weight = first + label * N + n
            store(by_row, to + n, load(by_row, to + n) + factor * load(readout, weight))
            added = factor * load(row, place + n)
            store(by_readout, weight, load(by_readout, weight) + added)


@part
def _read_rows_backward(
    given: Any, rows: Any, readout: Any, sizes: Any, by_readout: Array, by_rows: Any
) -> None:
    """Add the gradients by the readout and by rows [M, N] of their logits; sizes are M, N and C.

    Gradients, rows and gradients by rows are an array, a place and a stride, the readout an array
    and a place, which is that of its gradient too.
    """
    (by_logits, place, step), (numbers, row, stride), (M, N, C) = given, rows, sizes
    (weights, first), vectors = readout, N // LANES
    add_products((by_logits, place, step, 1), (weights, first, LANES, N), (M, C, vectors), by_rows)
    left, right = (by_logits, place, 1, step), (numbers, row, LANES, stride)
    add_products(left, right, (C, M, vectors), (by_readout, first, N))


@part
def _any(array: Array, first: int, count: int) -> bool:
    """Whether any number is not zero."""
    found = False
    for n in spaced(first, first + count, 1):
        found = found or at(array, n) != 0
    return found


@part
def _words_read(
    by_logits: Array, first: int, stride: int, B: int, C: int, reading: Array, words: Array
) -> int:
    """How many words have a gradient at a position or behind it, and which: they are read there."""
    count = 0
    for word in up_to(B):
        if at(reading, word) or _any(by_logits, first + word * stride, C):
            put(reading, word, 1)
            put(words, count, word)
            count += 1
    return count


@part
def _read_words_backward(
    given: Any, rows: Any, readout: Any, sizes: Any, words: Any, by_readout: Array, by_rows: Any
) -> None:
    """The same as `_read_rows_backward` of some words: what others hold may not be finite."""
    (B, N, C), (numbers, count) = sizes, words
    if count == B:
        _read_rows_backward(given, rows, readout, sizes, by_readout, by_rows)
    else:
        (by_logits, place, step), (states, row, stride), (weights, first) = given, rows, readout
        found, to, width = by_rows
        for number in up_to(count):
            word = at(numbers, number)
            _read_backward(
                weights, first, states, row + word * stride, N, C,
                by_logits, place + word * step, by_readout, found, to + word * width,
            )  # fmt: skip


@part
def _normalise(row: Array, place: int, N: int) -> None:
    """Divide a row by a power of two, so that its largest magnitude is in [1, 2); zeros stay."""
    largest = smallest(row)
    for n in spaced(place, place + N, 1):
        size = abs(at(row, n))
        if size > largest:
            largest = size
    _, exponent = math.frexp(largest)
    factor = splat(row.dtype.type(math.ldexp(1.0, exponent - 1)))
    for n in spaced(0, N, LANES):
        store(row, place + n, load(row, place + n) / factor)


@part
def _sort(keys: Array, words: Array, count: int, V: int, starts: Array, order: Array) -> None:
    """The first `count` words in the order of their keys; where in it those of each key start."""
    for key in up_to(V + 1):
        put(starts, key, 0)
    for n in up_to(count):
        key = at(keys, n) + 1
        put(starts, key, at(starts, key) + 1)
    for key in up_to(V):
        put(starts, key + 1, at(starts, key + 1) + at(starts, key))
    for n in up_to(count):
        key = at(keys, n)
        put(order, at(starts, key), at(words, n))
        put(starts, key, at(starts, key) + 1)
    for key in spaced(V, 0, -1):
        put(starts, key, at(starts, key - 1))
    put(starts, 0, 0)


@part
def _products(
    matrix: Array,
    first: int,
    N: int,
    words: Array,
    begin: int,
    end: int,
    rows: Array,
    place: int,
    out: Array,
    to: int,
) -> None:
    """Multiply the rows of some words by one matrix [N, N], whose row n belongs to their number n.

    The row of word w is at `place` + w N, and its product is written at `to` + w N.
    """
    left, right = (rows, place, N, 1), (matrix, first, LANES, N)
    products_of_rows(left, right, (N, N // LANES), (out, to, N), (words, begin, end))


@part
def _begin(first: Array, place: int, F: int, B: int, N: int, states: Array, base: int) -> None:
    """Write the first states of B words, of which one or as many are given."""
    for word in up_to(B):
        for n in spaced(0, N, LANES):
            store(states, base + word * N + n, load(first, place + word % F * N + n))


# --- matrices ---


@loop
def matrices_forward(
    symbols: Array,
    columns: Array,
    first: Array,
    readout: Array,
    states: Array,
    logits: Array,
    sizes: Any,
    every: int,
    keep: bool,
) -> None:
    """h_t = A(x_t) h_{t-1}, z_t = C h_t: columns [G, V, N, N] of matrices, logits [G, B, T, C].

    States are [G, T + 1, B, N], or without `keep` [G, 2, B, N]: those of even and of odd positions.
    Of first states there are B, or F = 1 for all words. Every so many steps a state is divided by a
    power of two.
    """
    G, B, T, V, C, N, F = sizes
    keys, words, order, starts = empty(symbols, (B, B, B, V + 1))
    panel, sums = empty(states, (padded(C) * N, GROUP * padded(C)))
    for word in up_to(B):
        put(words, word, word)
    rows = T + 1 if keep else 2
    for lane in up_to(G):
        pack_columns(readout, lane * C * N, 1, C, N, panel)
        base = lane * rows * B * N
        _begin(first, lane * F * N, F, B, N, states, base)
        for t in up_to(T):
            before = base + (t if keep else t % 2) * B * N
            after = base + (t + 1 if keep else (t + 1) % 2) * B * N
            for word in up_to(B):
                put(keys, word, at(symbols, (lane * B + word) * T + t))
            _sort(keys, words, B, V, starts, order)
            for symbol in up_to(V):
                matrix, begin, end = (
                    (lane * V + symbol) * N * N,
                    at(starts, symbol),
                    at(starts, symbol + 1),
                )
                _products(columns, matrix, N, order, begin, end, states, before, states, after)
            if every > 0 and (t + 1) % every == 0:
                for word in up_to(B):
                    _normalise(states, after + word * N, N)
            found = logits, (lane * B * T + t) * C, T * C
            rows_now = states, after, N
            map_rows(rows_now, (B, N, C), (panel, 0), no_rows(states), found, sums)
    release(keys)
    release(panel)


@loop
def matrices_backward(
    symbols: Array,
    matrices: Array,
    readout: Array,
    states: Array,
    by_logits: Array,
    by_last: Array,
    by_matrices: Array,
    by_first: Array,
    by_readout: Array,
    sizes: Any,
    ends: bool,
) -> None:
    """The gradients, of matrices [G, V, N, N] and all states; with `ends` also from the last.

    Those by matrices and by the readout are added to what is there.
    """
    G, B, T, V, C, N, _ = sizes
    (adjoints,) = empty(states, (T * B * N,))
    keys, words, order, starts, every, places, reading = empty(
        symbols, (T * B, B, T * B, V + 1, T * B, 2 * T * B, B)
    )
    for lane in up_to(G):
        base, own = lane * (T + 1) * B * N, lane * B * N
        for n in spaced(0, B * N, LANES):
            store(by_first, own + n, load(by_last, own + n) if ends else _zeros(states))
        for word in up_to(B):
            put(reading, word, 1 if ends else 0)
        found = 0
        for t in spaced(T - 1, -1, -1):
            count = _words_read(by_logits, (lane * B * T + t) * C, T * C, B, C, reading, words)
            given, now = (by_logits, (lane * B * T + t) * C, T * C), (t + 1) * B * N + base
            _read_words_backward(
                given, (states, now, N), (readout, lane * C * N), (B, N, C), (words, count),
                by_readout, (by_first, own, N),
            )  # fmt: skip
            for number in up_to(count):
                word = at(words, number)
                row, place = own + word * N, (t * B + word) * N
                for n in spaced(0, N, LANES):
                    store(adjoints, place + n, load(by_first, row + n))
                put(keys, number, at(symbols, (lane * B + word) * T + t))
            _sort(keys, words, count, V, starts, order)
            for symbol in up_to(V):
                matrix, begin, end = (
                    (lane * V + symbol) * N * N,
                    at(starts, symbol),
                    at(starts, symbol + 1),
                )
                now = t * B * N
                _products(matrices, matrix, N, order, begin, end, adjoints, now, by_first, own)
            for n in up_to(count):
                put(every, found, t * B + at(words, n))
                found += 1
        for n in up_to(found):
            position = at(every, n)
            word = lane * B + position % B
            put(keys, n, at(symbols, word * T + position // B))
        _place_positions(keys, every, found, V, starts, order, places, N, base)
        for symbol in up_to(V):
            begin, end, to = at(starts, symbol), at(starts, symbol + 1), (lane * V + symbol) * N * N
            of_symbol = N, end - begin, N // LANES
            summed = by_matrices, to, N
            add_products_of_terms((adjoints, 1), (states,), of_symbol, summed, (places, 2 * begin))
    release(adjoints)
    release(keys)


@part
def _place_positions(
    keys: Array,
    every: Array,
    count: int,
    V: int,
    starts: Array,
    order: Array,
    places: Array,
    N: int,
    base: int,
) -> None:
    """The places of adjoints, and of the states before them, in the order of keys."""
    _sort(keys, every, count, V, starts, order)
    for n in up_to(count):
        put(places, 2 * n, at(order, n) * N)
        put(places, 2 * n + 1, base + at(order, n) * N)


# --- factors ---


@loop
def factors_forward(
    symbols: Array,
    columns: Array,
    gains: Array,
    first: Array,
    readout: Array,
    kept: Array,
    logits: Array,
    sizes: Any,
    every: int,
    keep: bool,
) -> None:
    """z_t = s(x_t) * p_{t-1}, p_t = M z_t, logits = C z_t: columns [G, N, N] of M.

    Gains are [G, V, N]. What is kept is p_0 .. and then z_1 .., [G, 2, T, B, N], or without `keep`
    [G, 2, 2, B, N]: those of even and of odd positions.
    """
    G, B, T, V, C, N, F = sizes
    (words,) = empty(symbols, (B,))
    panel, sums = empty(kept, (padded(C) * N, GROUP * padded(C)))
    for word in up_to(B):
        put(words, word, word)
    rows = T if keep else 2
    later = rows * B * N  # from a p to the z that follows
    for lane in up_to(G):
        pack_columns(readout, lane * C * N, 1, C, N, panel)
        base = 2 * lane * later
        _begin(first, lane * F * N, F, B, N, kept, base)
        for t in up_to(T):
            now = base + (t if keep else t % 2) * B * N
            for word in up_to(B):
                row, position = now + word * N, (lane * B + word) * T + t
                gain = (lane * V + at(symbols, position)) * N
                for n in spaced(0, N, LANES):
                    gated = load(gains, gain + n) * load(kept, row + n)
                    store(kept, row + later + n, gated)
                if every > 0 and (t + 1) % every == 0:
                    _normalise(kept, row + later, N)
            found = logits, (lane * B * T + t) * C, T * C
            rows_now = kept, now + later, N
            map_rows(rows_now, (B, N, C), (panel, 0), no_rows(kept), found, sums)
            if t + 1 < T:
                after = base + (t + 1 if keep else (t + 1) % 2) * B * N
                matrix = lane * N * N
                _products(columns, matrix, N, words, 0, B, kept, now + later, kept, after)
    release(words)
    release(panel)


@loop
def factors_backward(
    symbols: Array,
    core: Array,
    gains: Array,
    readout: Array,
    kept: Array,
    by_logits: Array,
    by_last: Array,
    by_core: Array,
    by_gains: Array,
    by_first: Array,
    by_readout: Array,
    sizes: Any,
    ends: bool,
) -> None:
    """The gradients, of M [G, N, N] and all states; with `ends` also from the last z.

    Those by M, the gains and the readout are added to what is there.
    """
    G, B, T, V, C, N, _ = sizes
    adjoints, gradient = empty(kept, (T * B * N, B * N))
    words, places, reading = empty(symbols, (B, 2 * T * B, B))
    for lane in up_to(G):
        base = 2 * lane * T * B * N
        later = base + T * B * N
        for n in spaced(0, B * N, LANES):
            last = load(by_last, lane * B * N + n) if ends else _zeros(kept)
            store(gradient, n, last)
            store(by_first, lane * B * N + n, _zeros(kept))
        for word in up_to(B):
            put(reading, word, 1 if ends else 0)
        found = 0
        for t in spaced(T - 1, -1, -1):
            now = t * B * N
            count = _words_read(by_logits, (lane * B * T + t) * C, T * C, B, C, reading, words)
            given = by_logits, (lane * B * T + t) * C, T * C
            _read_words_backward(
                given, (kept, later + now, N), (readout, lane * C * N), (B, N, C), (words, count),
                by_readout, (gradient, 0, N),
            )  # fmt: skip
            for number in up_to(count):
                word = at(words, number)
                row = word * N
                gain = (lane * V + at(symbols, (lane * B + word) * T + t)) * N
                for n in spaced(0, N, LANES):
                    adjoint = load(gradient, row + n)
                    added = adjoint * load(kept, base + now + row + n)
                    store(by_gains, gain + n, load(by_gains, gain + n) + added)
                    store(adjoints, now + row + n, adjoint * load(gains, gain + n))
            if t > 0:
                _products(core, lane * N * N, N, words, 0, count, adjoints, now, gradient, 0)
                for n in up_to(count):
                    place = now + at(words, n) * N
                    put(places, 2 * found, place)
                    put(places, 2 * found + 1, later + place - B * N)
                    found += 1
            else:
                for number in up_to(count):
                    row = at(words, number) * N
                    for n in spaced(0, N, LANES):
                        store(by_first, lane * B * N + row + n, load(adjoints, row + n))
        of_core, summed = (N, found, N // LANES), (by_core, lane * N * N, N)
        add_products_of_terms((adjoints, 1), (kept,), of_core, summed, (places, 0))
    release(adjoints)
    release(words)


# --- blocks ---


@part
def _spread(vectors: Array, place: int, M: int, N: int, b: int, rows: Array) -> None:
    """Vectors [M, N, b] as rows of planes [M, b, padded N], where zeros are."""
    for m in up_to(M):
        for i in up_to(b):
            own, row = place + m * N * b + i, (m * b + i) * padded(N)
            for n in up_to(N):
                put(rows, row + n, at(vectors, own + n * b))


@part
def _gather(rows: Array, base: int, M: int, N: int, b: int, vectors: Array, place: int) -> None:
    """Write rows of planes as vectors [M, N, b]."""
    for m in up_to(M):
        for i in up_to(b):
            own, row = place + m * N * b + i, base + (m * b + i) * padded(N)
            for n in up_to(N):
                put(vectors, own + n * b, at(rows, row + n))


@part
def _spread_blocks(
    blocks: Array, lane: int, V: int, N: int, b: int, turns: bool, planes: Array
) -> None:
    """Blocks [V, N, b, b], or angles [V, N] of turned planes, as planes [V, b, b, padded N]."""
    P = padded(N)
    for v in up_to(V):
        for n in up_to(N):
            own, place = (lane * V + v) * N + n, v * b * b * P + n
            if turns:
                cosine, sine = math.cos(at(blocks, own)), math.sin(at(blocks, own))
                put(planes, place, cosine)
                put(planes, place + P, -sine)
                put(planes, place + 2 * P, sine)
                put(planes, place + 3 * P, cosine)
            else:
                for entry in up_to(b * b):
                    put(planes, place + entry * P, at(blocks, own * b * b + entry))


@part
def _gather_blocks(
    by_planes: Array,
    planes: Array,
    lane: int,
    V: int,
    N: int,
    b: int,
    turns: bool,
    by_blocks: Array,
) -> None:
    """Write the gradient by planes as that by blocks, or by angles."""
    P = padded(N)
    for v in up_to(V):
        for n in up_to(N):
            own, place = (lane * V + v) * N + n, v * b * b * P + n
            if turns:
                cosine, sine = at(planes, place), at(planes, place + 2 * P)
                along = at(by_planes, place + 2 * P) - at(by_planes, place + P)
                across = at(by_planes, place) + at(by_planes, place + 3 * P)
                put(by_blocks, own, cosine * along - sine * across)
            else:
                for entry in up_to(b * b):
                    put(by_blocks, own * b * b + entry, at(by_planes, place + entry * P))


@loop
def blocks_forward(
    symbols: Array,
    blocks: Array,
    first: Array,
    readout: Array,
    states: Array,
    logits: Array,
    last: Array,
    sizes: Any,
    b: int,
    turns: bool,
    every: int,
    keep: bool,
) -> None:
    """The same of blocks [G, V, N, b, b], or of angles [G, V, N] by which planes turn.

    First and last states are [G, F or B, N, b] and the readout [G, C, N, b]. States are
    [G, B, T + 1, b, padded N], or without `keep` [G, B, 2, b, padded N].
    """
    G, B, T, V, C, N, F = sizes
    rows, row = T + 1 if keep else 2, b * padded(N)
    planes, weights, begin = zeros(states, (V * b * row, C * row, row))
    panel, sums = empty(states, (padded(C) * row, GROUP * padded(C)))
    for lane in up_to(G):
        _spread_blocks(blocks, lane, V, N, b, turns, planes)
        _spread(readout, lane * C * N * b, C, N, b, weights)
        pack_columns(weights, 0, 1, C, row, panel)
        for word in spaced(lane * B, lane * B + B, 1):
            base = word * rows * row
            if F > 1 or word == lane * B:
                _spread(first, (word if F > 1 else lane) * N * b, 1, N, b, begin)
            for n in spaced(0, row, LANES):
                store(states, base + n, load(begin, n))
            for t in up_to(T):
                before = base + (t if keep else t % 2) * row
                after = base + (t + 1 if keep else (t + 1) % 2) * row
                operator = at(symbols, word * T + t) * b * row
                for to in up_to(b):
                    for n in spaced(0, padded(N), LANES):
                        found = _zeros(states)
                        for k in up_to(b):
                            plane = operator + to * row + k * padded(N) + n
                            state = load(states, before + k * padded(N) + n)
                            found = found + load(planes, plane) * state
                        store(states, after + to * padded(N) + n, found)
                if every > 0 and (t + 1) % every == 0:
                    _normalise(states, after, row)
                if not keep:
                    _read(weights, 0, states, after, row, C, logits, (word * T + t) * C)
            end = base + (T if keep else T % 2) * row
            _gather(states, end, 1, N, b, last, word * N * b)
            if keep:
                found, own = (logits, word * T * C, C), (states, base + row, row)
                map_rows(own, (T, row, C), (panel, 0), no_rows(states), found, sums)
    release(planes)
    release(panel)


@loop
def blocks_backward(
    symbols: Array,
    blocks: Array,
    readout: Array,
    states: Array,
    by_logits: Array,
    by_last: Array,
    by_blocks: Array,
    by_first: Array,
    by_readout: Array,
    sizes: Any,
    b: int,
    turns: bool,
) -> None:
    """The gradients, of all states."""
    G, B, T, V, C, N, F = sizes
    row, ends = b * padded(N), exists(by_last)
    planes, weights, by_planes, by_weights, adjoint, summed = zeros(
        states, (V * b * row, C * row, V * b * row, C * row, row, row)
    )
    gradient, wanted = empty(states, (row, T * row))
    for lane in up_to(G):
        _spread_blocks(blocks, lane, V, N, b, turns, planes)
        _spread(readout, lane * C * N * b, C, N, b, weights)
        for n in spaced(0, V * b * row, LANES):
            store(by_planes, n, _zeros(states))
        for n in spaced(0, C * row, LANES):
            store(by_weights, n, _zeros(states))
        for n in spaced(0, row, LANES):
            store(summed, n, _zeros(states))
        for word in spaced(lane * B, lane * B + B, 1):
            base = word * (T + 1) * row
            for n in spaced(0, row, LANES):
                store(adjoint, n, _zeros(states))
            if ends:
                _spread(by_last, word * N * b, 1, N, b, adjoint)
            until = T
            while not ends and until > 0 and not _any(by_logits, (word * T + until - 1) * C, C):
                until -= 1
            for n in spaced(0, until * row, LANES):
                store(wanted, n, _zeros(states))
            given, rows, found = (
                (by_logits, word * T * C, C),
                (states, base + row, row),
                (wanted, 0, row),
            )
            _read_rows_backward(given, rows, (weights, 0), (until, row, C), by_weights, found)
            for t in spaced(until - 1, -1, -1):
                for n in spaced(0, row, LANES):
                    store(adjoint, n, load(adjoint, n) + load(wanted, t * row + n))
                before, operator = base + t * row, at(symbols, word * T + t) * b * row
                for k in up_to(b):
                    for n in spaced(0, padded(N), LANES):
                        state, grown = load(states, before + k * padded(N) + n), _zeros(states)
                        for to in up_to(b):
                            plane = operator + to * row + k * padded(N) + n
                            along = load(adjoint, to * padded(N) + n)
                            grown = grown + load(planes, plane) * along
                            store(by_planes, plane, load(by_planes, plane) + along * state)
                        store(gradient, k * padded(N) + n, grown)
                for n in spaced(0, row, LANES):
                    store(adjoint, n, load(gradient, n))
            if F > 1:
                _gather(adjoint, 0, 1, N, b, by_first, word * N * b)
            for n in spaced(0, row, LANES):
                store(summed, n, load(summed, n) + load(adjoint, n))
        _gather_blocks(by_planes, planes, lane, V, N, b, turns, by_blocks)
        _gather(by_weights, 0, C, N, b, by_readout, lane * C * N * b)
        if F == 1:
            _gather(summed, 0, 1, N, b, by_first, lane * N * b)
    release(planes)
    release(gradient)
