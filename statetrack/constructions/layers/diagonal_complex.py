"""Complex gains: every gain is a parameter, of two numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case
from statetrack.constructions.layers._gains import blank_for, in_pairs, with_ones
from statetrack.constructions.layers._linear import finish, put_table
from statetrack.sources import Floats


def take_gains(case: Case, gains: np.ndarray, points: Floats, terms: Floats | None) -> Any:
    """The gains as they are."""
    model, room = blank_for(case, gains.shape[1], 2)
    gains = with_ones(gains, room)
    put_table(model, model.gains, np.stack([gains.real, gains.imag], -1))
    return finish(model, case, in_pairs(points), None if terms is None else in_pairs(terms))
