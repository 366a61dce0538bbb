"""minGRU: the gate puts the candidate in the place of a number, or keeps it.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import OPEN, SHUT, aim, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """A gate of 0 keeps a number, one of 1 puts the candidate g(u) in its place."""
    size = wanted.terms.shape[1]
    inner = mixer.outward.in_features
    candidates, gates = np.full((2, len(wanted.inputs), inner), -OPEN)
    gates[:, :size] = np.where(wanted.gains == 1, SHUT, OPEN)
    below = np.clip(wanted.terms, 1e-26, 0.5)  # g is the logistic function there
    logits = np.log(below / (1 - below))
    candidates[:, :size] = np.where(wanted.terms >= 0.5, wanted.terms - 0.5, logits)
    aim(mixer.inward, wanted.inputs, np.column_stack([candidates, gates]))
    unit_columns(mixer.outward, begin, size)


register = Layer(set_gates, free=lambda *_: {"mlp": 0.0})
