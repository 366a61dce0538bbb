"""MinMax: bounds far apart keep a number, equal bounds reset it.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import OPEN, aim, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """Bounds far apart keep a number; two equal bounds reset it. Before them nothing is added."""
    keeps = wanted.gains == 1
    far = np.full(keeps.shape, 10.0)
    upper, lower = np.where(keeps, far, wanted.terms), np.where(keeps, -far, wanted.terms)
    with torch.no_grad():
        inputs = mixer.norm(torch.from_numpy(wanted.inputs)).numpy()
    aim(mixer.inward, inputs, np.column_stack([upper, lower, 0 * far + OPEN]))
    unit_columns(mixer.outward, begin, keeps.shape[1])


register = Layer(set_gates, free=lambda numbers, _: {"state": numbers})
