"""A matrix and an added vector for every input, from the state 0.

S states, H hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.algebra import Affine
from statetrack.constructions.case import Case
from statetrack.constructions.registry import construction, take
from statetrack.constructions.representations import observed, smallest_known
from statetrack.sources import Floats


@construction(
    Affine,
    name="affine maps",
    equation="h_t = A(x_t) h_{t-1} + b(x_t) with A(x) p_s + b(x) = p_{delta(s, x)} and p = 0 for "
    "the start",
    source="own",
)
def affine(case: Case) -> Any:
    """Points that affine maps move as symbols move states, the start's at 0."""
    return take(case, "points", _smallest(case))


def _corners(case: Case) -> Floats:
    """The start at 0, and every other live state at a unit vector, `[S, H]`.

    One dimension fewer than there are states: affine maps are free on points in general position.
    """
    machine = case.algebra.machine
    others = [int(s) for s in np.flatnonzero(machine.live) if s != machine.automaton.start]
    points = np.zeros((len(machine.delta), max(len(others), 1)))
    points[others, np.arange(len(others))] = 1
    return points


def _smallest(case: Case) -> Floats:
    """The points of a linear representation, less the start's, in the space that they span."""
    machine = case.algebra.machine
    found = [_corners(case)]
    for representation in (smallest_known(case.algebra), observed(case.algebra)):
        points = representation.points - representation.points[machine.automaton.start]
        points[~machine.live] = 0
        sizes, rows = np.linalg.svd(points)[1:]
        found.append(points @ rows[: max(1, int((sizes > 1e-9 * max(sizes.max(), 1e-9)).sum()))].T)
    return min(found, key=lambda each: each.shape[1])
