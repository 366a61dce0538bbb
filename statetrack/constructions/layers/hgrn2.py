"""HGRN2: the first row of one head, kept or written by its forget gate.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import ONE, OPEN, SHUT, aim, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """One head: its first row is kept by a forget gate of 1, and written by one of 0."""
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keeps = wanted.gains[:, 0] == 1
    forget = np.full((len(keeps), width), OPEN)
    forget[:, 0] = np.where(keeps, OPEN, SHUT)
    query, value = np.zeros((2, len(keeps), width))
    query[:, 0] = ONE
    value[:, :size] = wanted.terms
    aim(mixer.query, wanted.inputs, query)
    aim(mixer.forget, wanted.inputs, forget)
    aim(mixer.value, wanted.inputs, value)
    unit_columns(mixer.output, begin, size)


register = Layer(set_gates, free=lambda *_: {"heads": 1})
