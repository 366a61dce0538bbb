"""Full bilinear RNN: every symbol's matrix is a parameter."""

from __future__ import annotations

from typing import Any

from statetrack.constructions.case import Case
from statetrack.constructions.layers._linear import finish, put_table
from statetrack.constructions.representations import LinearRepresentation


def take_matrices(case: Case, found: LinearRepresentation) -> Any:
    """The matrices as they are."""
    model = case.blank()
    put_table(model, model.weight, found.matrices)
    return finish(model, case, found.points)
