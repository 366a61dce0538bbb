"""Rows of tables at symbols, and the sums of gradients by symbol.

R replicas, M positions, V symbols, D width.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at
from statetrack.ops.loops.vectors import LANES, add_some, load_some, store_some


@loop
def rows_forward(table: Array, symbols: Any, found: Array, sizes: Any) -> None:
    """The rows [R, M, D] of tables [R, V, D] at symbols [R, M]."""
    R, M, V, D = sizes
    for row in up_to(R * M):
        own = (row // M * V + at(symbols, row)) * D
        for i in spaced(0, D, LANES):
            count = least(LANES, D - i)
            store_some(found, row * D + i, count, load_some(table, own + i, count))


@loop
def rows_backward(symbols: Any, by_found: Array, by_table: Array, sizes: Any) -> None:
    """The gradients by tables, added to zeros."""
    R, M, V, D = sizes
    for row in up_to(R * M):
        own = (row // M * V + at(symbols, row)) * D
        for i in spaced(0, D, LANES):
            count = least(LANES, D - i)
            add_some(by_table, own + i, count, load_some(by_found, row * D + i, count))
