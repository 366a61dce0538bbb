"""Saturating units, each of which says that the word is in a state, or how it came to be there."""

from __future__ import annotations

from typing import Any

from statetrack.algebra import Saturating
from statetrack.constructions.case import Case
from statetrack.constructions.registry import construction, take
from statetrack.constructions.units import units_of

SATURATED = (
    "the least lead over the states of the machine; what units differ from -1 and 1 does not add up"
)


def _multiplied(case: Case) -> bool:
    return isinstance(case.recurrence, Saturating) and case.recurrence.multiplied


@construction(
    Saturating,
    name="a unit for each state",
    equation="h_t = tanh(g (2 T(x_t) (1 + h_{t-1}) / 2 - 1)) with the table of moves T(x): a unit "
    "is 1 in its state and -1 elsewhere",
    source="doi:10.1145/235809.235811",
    margin=SATURATED,
    where=_multiplied,
)
def states(case: Case) -> Any:
    """For layers in which symbols multiply the state."""
    return take(case, "states")


@construction(
    Saturating,
    name="a unit for each state and action",
    equation="h_t = tanh(g (W h_{t-1} + U x_t + b)): unit (s, a) is 1 where a was read in s, that "
    "is where some unit of a pair that leads to s was on, and -1 elsewhere",
    source="doi:10.1145/235809.235811",
    margin=SATURATED,
)
def pairs(case: Case) -> Any:
    """For layers in which symbols are added."""
    return take(case, "units", units_of(case.algebra.machine))
