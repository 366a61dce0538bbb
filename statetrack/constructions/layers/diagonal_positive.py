"""Gains in (0, 1): the logistic function of a parameter, which is 0 or 1 to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case
from statetrack.constructions.layers._gains import blank_for, real_part, with_ones
from statetrack.constructions.layers._linear import finish, put_table
from statetrack.constructions.weights import OPEN, SHUT
from statetrack.sources import Floats


def take_gains(case: Case, gains: np.ndarray, points: Floats, terms: Floats | None) -> Any:
    """Gains of 0 and 1 by their logits."""
    assert np.isin(gains, (0, 1)).all()
    model, room = blank_for(case, gains.shape[1], 1)
    logits = np.where(with_ones(gains.real, room) > 0, OPEN, SHUT)
    put_table(model, model.gain_logits, logits)
    return finish(model, case, real_part(points), None if terms is None else real_part(terms))
