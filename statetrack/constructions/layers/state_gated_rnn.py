"""State-gated RNN: as the token-gated one; behind tanh, a unit for each state.

S states, H hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case
from statetrack.constructions.layers.token_gated_rnn import take_points
from statetrack.constructions.weights import OPEN


def take_states(case: Case) -> Any:
    """A unit for each state, 1 in it and -1 in others, and one more that is always -1.

    So the first vector, 0, is in general position to the others, and an affine map can move it as
    it moves the start. Before tanh 60 stands for 1, so errors vanish.
    """
    live = np.flatnonzero(case.algebra.machine.live)
    points = np.zeros((len(case.algebra.machine.live), len(live) + 1))
    points[live] = (2 * np.eye(len(live) + 1) - 1)[:-1]
    return take_points(case, points, steep=OPEN)


__all__ = ["take_points", "take_states"]
