"""Rotations: a gain of modulus 1 is an angle."""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.layers._gains import blank_for, in_pairs, with_ones
from statetrack.constructions.layers._linear import finish, put_table
from statetrack.sources import Floats


def take_gains(case: Case, gains: np.ndarray, points: Floats, terms: Floats | None) -> Any:
    """The angles of the gains."""
    if terms is not None or not np.allclose(abs(gains), 1):
        raise NotBuilt("rotations keep every length: none resets a state")
    model, room = blank_for(case, gains.shape[1], 2)
    put_table(model, model.angles, np.angle(with_ones(gains, room)))
    return finish(model, case, in_pairs(points))
