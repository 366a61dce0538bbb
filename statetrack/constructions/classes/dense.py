"""A free matrix for every symbol: a representation of the task's machine, as small as is known."""

from __future__ import annotations

from typing import Any

from statetrack.algebra import Dense
from statetrack.constructions.case import Case
from statetrack.constructions.integers import as_large_as, smallest_integers
from statetrack.constructions.registry import construction, take
from statetrack.constructions.representations import smallest_known


@construction(
    Dense,
    name="matrices",
    equation="h_t = A(x_t) h_{t-1} with A(x) p_s = p_{delta(s, x)}: the point p_s of every state "
    "is moved as the state is",
    source="arXiv:2505.21749",
    integers=True,
)
def matrices(case: Case) -> Any:
    """The smallest representation that is known, with zeros beside it."""
    name = case.prediction.needs[0].setting
    if case.integers:
        found = smallest_integers(case.algebra)
        case = as_large_as(case, name, found.size)
    else:
        found = smallest_known(case.algebra)
    return take(case, "matrices", found.padded(case.size(name)))
