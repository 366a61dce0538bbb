"""A block-diagonal matrix for every symbol: a block for each irreducible part."""

from __future__ import annotations

from typing import Any

from statetrack.algebra import Blocks
from statetrack.constructions.case import Case
from statetrack.constructions.integers import as_large_as, smallest_integer_blocks
from statetrack.constructions.registry import construction, take
from statetrack.constructions.representations import smallest_blocks


@construction(
    Blocks,
    name="blocks",
    equation="h_t = diag(A_1(x_t), .., A_N(x_t)) h_{t-1} with A_i(x) p_i(s) = p_i(delta(s, x)): "
    "each block moves its part of a state's point",
    source="own",
    integers=True,
)
def blocks(case: Case) -> Any:
    """A block for every part, each with zeros to the size of a block."""
    name = case.prediction.needs[0].setting
    if case.integers:
        parts = smallest_integer_blocks(case.algebra)
        case = as_large_as(case, name, max(part.size for part in parts))
    else:
        parts = smallest_blocks(case.algebra)
    return take(case, "blocks", [part.padded(case.size(name)) for part in parts])
