"""A block-diagonal matrix for every symbol: a block for each irreducible part."""

from __future__ import annotations

from typing import Any

from statetrack.algebra import Blocks
from statetrack.constructions.case import Case
from statetrack.constructions.registry import construction, take
from statetrack.constructions.representations import smallest_blocks


@construction(
    Blocks,
    name="blocks",
    equation="h_t = diag(A_1(x_t), .., A_N(x_t)) h_{t-1} with A_i(x) p_i(s) = p_i(delta(s, x)): "
    "each block moves its part of a state's point",
    source="own",
)
def blocks(case: Case) -> Any:
    """A block for every part, each with zeros to the size of a block."""
    size = case.size(case.prediction.needs[0].setting)
    return take(case, "blocks", [part.padded(size) for part in smallest_blocks(case.algebra)])
