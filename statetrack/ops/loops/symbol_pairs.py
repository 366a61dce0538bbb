"""Sums of two rows, one for a symbol and one for the symbol before, and their backward pass.

R replicas, W words, T time, V symbols, n tables, N width of a table.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, exists, one_of
from statetrack.ops.loops.vectors import LANES, add_some, load_some, store_some


@loop
def pairs_forward(
    like: Array, tables: Array, symbols: Array, widths: Array, outputs: Array, sizes: Any
) -> None:
    """Row x_t plus row V + x_{t-1} of n tables [R, 2 V + S, N], of widths, to outputs [R, W, T, N].

    Symbols x are [R, W, T]; at a word's start the second row is 2 V plus its number, or plus 0 for
    all words: S is W or 1. Tables and outputs, known by address, are of the type of `like`.
    """
    R, W, T, V, S, n = sizes
    for word in up_to(R * W):
        first = word // W * (V + V + S)
        before = first + V + V + word % W % S
        for t in up_to(T):
            row = word * T + t
            here = first + at(symbols, row)
            for j in up_to(n):
                width, table, to = at(widths, j), one_of(like, tables, j), one_of(like, outputs, j)
                for i in spaced(0, width, LANES):
                    count = least(LANES, width - i)
                    found = load_some(table, here * width + i, count)
                    found = found + load_some(table, before * width + i, count)
                    store_some(to, row * width + i, count, found)
            before = here + V


@loop
def pairs_backward(
    like: Array, symbols: Array, widths: Array, by_outputs: Array, by_tables: Array, sizes: Any
) -> None:
    """The gradients by tables, added to zeros, of those by outputs that there are."""
    R, W, T, V, S, n = sizes
    for word in up_to(R * W):
        first = word // W * (V + V + S)
        before = first + V + V + word % W % S
        for t in up_to(T):
            row = word * T + t
            here = first + at(symbols, row)
            for j in up_to(n):
                width, by_output = at(widths, j), one_of(like, by_outputs, j)
                by_table = one_of(like, by_tables, j)
                if exists(by_output):
                    for i in spaced(0, width, LANES):
                        count = least(LANES, width - i)
                        wanted = load_some(by_output, row * width + i, count)
                        add_some(by_table, here * width + i, count, wanted)
                        add_some(by_table, before * width + i, count, wanted)
            before = here + V
