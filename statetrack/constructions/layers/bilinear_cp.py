"""CP-factored bilinear RNN: terms of rank one are shared, their gains are the symbol's.

H hidden, K terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.layers._linear import finish, put_table
from statetrack.constructions.representations import LinearRepresentation, Terms
from statetrack.constructions.weights import put
from statetrack.errors import setting
from statetrack.sources import Floats


def take_terms(case: Case, representation: LinearRepresentation, terms: Terms) -> Any:
    """The terms as they are; gains beyond them are 0."""
    if terms.rank > case.size("rank"):
        raise NotBuilt(f"{setting('rank', case.size('rank'))}: {terms.rank} terms are known")
    model = case.blank(hidden=representation.size)
    put(model.left, _filled(terms.left, model.left.shape))
    put(model.right, _filled(terms.right, model.right.shape))
    put_table(model, model.gains, _filled(terms.gains, (len(terms.gains), model.left.shape[1])))
    return finish(model, case, representation.points)


def _filled(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Values at the beginning of an array of zeros."""
    whole = np.zeros(shape)
    whole[: values.shape[0], : values.shape[1]] = values
    return whole
