"""Delta rules: products of reflections, one irreducible part in each head."""

from __future__ import annotations

from typing import Any

from statetrack.algebra import Householder, HouseholderProduct
from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.registry import construction, take
from statetrack.constructions.representations import of_part


@construction(
    Householder,
    HouseholderProduct,
    name="reflections",
    equation="H_t = prod_i (I - 2 k_i k_i^T) H_{t-1} + .., the matrix of a symbol in each "
    "irreducible part as a product of reflections",
    source="arXiv:2502.10297",
    where=lambda case: case.algebra.is_group,
)
def reflections(case: Case) -> Any:
    """The parts whose symbols turn the fewest dimensions each."""
    if case.sizes.get("layers", 1) > 1:
        raise NotBuilt("only one layer of reflections is built")
    space = case.algebra.space
    choice = space and space.with_smallest_largest(space.codimensions)
    if not choice:
        raise NotBuilt("only groups whose space is decomposed are built")
    return take(case, "reflections", [of_part(part, case.algebra) for part in choice.parts])
