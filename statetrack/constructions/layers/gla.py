"""Gated linear attention: one head with one row, whose gate and key are 1 and 0, or 0 and 1.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import OPEN, SHUT, aim, put, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """One head with one row, whose gate and key are 1 and 0, or 0 and 1."""
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keeps = wanted.gains[:, :1] == 1
    values = np.zeros((len(keeps), width))
    values[:, :size] = wanted.terms
    keys = (~keeps).astype(float)
    aim(mixer.projection.linear, wanted.inputs, np.column_stack([np.ones_like(keys), keys, values]))
    aim(mixer.gate[0], wanted.inputs, np.where(keeps, OPEN, SHUT))
    put(mixer.gate[1].weight, [[mixer.slowness]])
    aim(mixer.output_gate, wanted.inputs, np.ones((len(keeps), width)))
    unit_columns(mixer.output, begin, size)


register = Layer(
    set_gates,
    free=lambda _, width: {"heads": 1, "gate_rank": 1, "expand_keys": 1 / width},
)
