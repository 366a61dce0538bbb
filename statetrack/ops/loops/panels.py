"""Weights packed in panels, as `add_products` reads them beside many rows.

The weights of `LANES` neighbouring outputs follow one another, so that a tile reads them in order.
"""

from __future__ import annotations

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, put
from statetrack.ops.loops.vectors import LANES, add_some, load, load_some, store


@part
def pack_columns(weights: Array, place: int, G: int, H: int, K: int, panels: Array) -> None:
    """Weights [G H, K] as panels [units / LANES, G, K, LANES], zeros for units there are not."""
    for i in spaced(0, H, LANES):
        for gate in up_to(G):
            own = (i * G + gate * LANES) * K
            for lane in up_to(LANES):
                row = place + (gate * H + i + lane) * K
                for j in up_to(K):
                    number = at(weights, row + j) if i + lane < H else weights.dtype.type(0)
                    put(panels, own + j * LANES + lane, number)


@part
def pack_rows(weights: Array, place: int, G: int, H: int, K: int, panels: Array) -> None:
    """Weights [G H, K] as panels [K / LANES, G, H, LANES] of the product with rows of gates."""
    for i in spaced(0, K, LANES):
        count = least(LANES, K - i)
        for gate in up_to(G):
            own = (i * G + gate * LANES) * H
            for j in up_to(H):
                row = place + (gate * H + j) * K + i
                store(panels, own + j * LANES, load_some(weights, row, count))


@part
def add_rows(
    sums: Array, M: int, K: int, stride: int, found: Array, place: int, width: int
) -> None:
    """Add sums [M, K], whose rows are vectors `stride` apart, to numbers `width` apart."""
    for row in up_to(M):
        for i in spaced(0, K, LANES):
            part = load(sums, row * stride + i)
            add_some(found, place + row * width + i, least(LANES, K - i), part)
