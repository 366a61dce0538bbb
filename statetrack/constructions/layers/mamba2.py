"""Mamba-2: one head whose channels are the numbers.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import (
    LONG,
    ONE,
    SHUT,
    aim,
    identity_convolution,
    silu_preimage,
    unit_columns,
)


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """One head whose channels are the numbers: a time step of 0 keeps them, a long one resets."""
    size, inner = wanted.terms.shape[1], mixer.sizes[0]
    num_contexts = len(wanted.inputs)
    gate, x = np.zeros((2, num_contexts, inner))
    gate[:, :size] = ONE
    x[:, :size] = silu_preimage(wanted.terms / LONG)
    ones = np.full((num_contexts, mixer.sizes[1] * 2), ONE)
    steps = np.where(wanted.gains[:, :1] == 1, SHUT, LONG)
    aim(mixer.inward, wanted.inputs, np.column_stack([gate, x, ones, steps]))
    identity_convolution(mixer.convolution.filters)
    unit_columns(mixer.outward, begin, size)


register = Layer(set_gates, free=lambda numbers, _: {"heads": 1, "state": 1})
