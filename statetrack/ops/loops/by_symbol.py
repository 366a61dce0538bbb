"""Recurrences whose operator is the symbol's, with a linear readout: matrices, or factors.

Rows are whole vectors: what follows their numbers is zero. Words of a replica that read the same
symbol are multiplied four at a time, so that a matrix is loaded once for all four.

G lanes (replicas), B words of each, T time, V symbols, C labels, N numbers of a row.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import spaced, up_to
from statetrack.ops.loops.memory import Array, at, empty, put, release
from statetrack.ops.loops.panels import pack_columns
from statetrack.ops.loops.readouts import normalise_row, read_words_backward, words_read
from statetrack.ops.loops.rows import GROUP, map_rows, no_rows
from statetrack.ops.loops.tiles import add_products_of_terms, products_of_rows
from statetrack.ops.loops.vectors import LANES, load, padded, store, zero_vector


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
def _products(matrix: Any, N: int, words: Any, rows: Any, found: Any) -> None:
    """Multiply the rows of some words by one matrix [N, N], whose row n belongs to their number n.

    Matrix, rows and products are an array and a place, behind which those of word w are at w N;
    words are an array and the places in it of the first one and behind the last one.
    """
    (numbers, first), (given, place), (out, to) = matrix, rows, found
    left, right = (given, place, N, 1), (numbers, first, LANES, N)
    products_of_rows(left, right, (N, N // LANES), (out, to, N), words)


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
                matrix = columns, (lane * V + symbol) * N * N
                some = order, at(starts, symbol), at(starts, symbol + 1)
                _products(matrix, N, some, (states, before), (states, after))
            if every > 0 and (t + 1) % every == 0:
                for word in up_to(B):
                    normalise_row(states, after + word * N, N)
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
            store(by_first, own + n, load(by_last, own + n) if ends else zero_vector(states))
        for word in up_to(B):
            put(reading, word, 1 if ends else 0)
        found = 0
        for t in spaced(T - 1, -1, -1):
            count = words_read(by_logits, (lane * B * T + t) * C, T * C, B, C, reading, words)
            given, now = (by_logits, (lane * B * T + t) * C, T * C), (t + 1) * B * N + base
            read_words_backward(
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
                matrix = matrices, (lane * V + symbol) * N * N
                some = order, at(starts, symbol), at(starts, symbol + 1)
                _products(matrix, N, some, (adjoints, t * B * N), (by_first, own))
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
                    normalise_row(kept, row + later, N)
            found = logits, (lane * B * T + t) * C, T * C
            rows_now = kept, now + later, N
            map_rows(rows_now, (B, N, C), (panel, 0), no_rows(kept), found, sums)
            if t + 1 < T:
                after = base + (t + 1 if keep else (t + 1) % 2) * B * N
                matrix = columns, lane * N * N
                _products(matrix, N, (words, 0, B), (kept, now + later), (kept, after))
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
            last = load(by_last, lane * B * N + n) if ends else zero_vector(kept)
            store(gradient, n, last)
            store(by_first, lane * B * N + n, zero_vector(kept))
        for word in up_to(B):
            put(reading, word, 1 if ends else 0)
        found = 0
        for t in spaced(T - 1, -1, -1):
            now = t * B * N
            count = words_read(by_logits, (lane * B * T + t) * C, T * C, B, C, reading, words)
            given = by_logits, (lane * B * T + t) * C, T * C
            read_words_backward(
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
                matrix = core, lane * N * N
                _products(matrix, N, (words, 0, count), (adjoints, now), (gradient, 0))
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
