"""Matrices that can be those of any symbol: maps of coordinates, one for each state."""

from __future__ import annotations

from typing import Any

from statetrack.algebra import OneHotTimesDiagonal, TransitionMatrices
from statetrack.constructions.case import Case
from statetrack.constructions.registry import construction, take
from statetrack.constructions.representations import maps_of


@construction(
    TransitionMatrices,
    OneHotTimesDiagonal,
    name="maps of states",
    equation="h_t = P(x_t) h_{t-1} with P(x) e_s = e_{delta(s, x)}: states are unit vectors",
    source="arXiv:2509.22284",
)
def maps(case: Case) -> Any:
    """The different maps that symbols make."""
    return take(case, "maps", *maps_of(case.algebra))
