"""Real gains: every gain is a parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case
from statetrack.constructions.layers._gains import blank_for, real_part, with_ones
from statetrack.constructions.layers._linear import finish, put_table
from statetrack.sources import Floats


def take_gains(case: Case, gains: np.ndarray, points: Floats, terms: Floats | None) -> Any:
    """The gains as they are."""
    model, room = blank_for(case, gains.shape[1], 1)
    put_table(model, model.gains, with_ones(gains.real, room))
    return finish(model, case, real_part(points), None if terms is None else real_part(terms))
