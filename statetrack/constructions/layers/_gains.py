"""What linear models with gains share.

V symbols, S states, N gains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.sources import Floats


def blank_for(case: Case, num_gains: int, each: int) -> tuple[Any, int]:
    """The model with room for so many gains, and how many it has; one takes `each` numbers.

    Raises `NotBuilt` where it has less room than that.
    """
    model = case.blank(hidden=each * num_gains)
    room = model.settings.hidden // each
    if room < num_gains:
        raise NotBuilt(
            f"{num_gains} gains are known, of {each} numbers each, and there is room for {room}"
        )
    return model, room


def with_ones(gains: np.ndarray, number: int) -> np.ndarray:
    """Gains `[V, N]` with as many of 1 beside them as make `number`."""
    return np.pad(gains, ((0, 0), (0, number - gains.shape[1])), constant_values=1)


def real_part(points: Floats) -> Floats:
    """Points `[S, N, 2]` on the real axis as `[S, N]`."""
    assert not points[..., 1].any()
    return points[..., 0]


def in_pairs(points: Floats) -> Floats:
    """Points `[S, N, 2]` as `[S, 2 N]`."""
    return points.reshape(len(points), -1)
