"""mLSTM: one head, which a reset writes into at an input gate of 1.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import (
    ONE,
    OPEN,
    SHUT,
    aim,
    identity_convolution,
    put,
    unit_columns,
)


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """One head: a reset writes the value with key e_0 at an input gate of 1; else it is shut.

    The keys' next coordinate says that the state is kept, and only the gates see it.
    """
    num_contexts, size = wanted.terms.shape
    inner = mixer.inner
    keeps = wanted.gains[:, 0] == 1
    upper = np.zeros((num_contexts, inner))
    upper[:, :num_contexts] = np.eye(num_contexts)
    gate = np.full((num_contexts, inner), ONE)
    aim(mixer.up, wanted.inputs, np.column_stack([upper, gate]))
    identity_convolution(mixer.convolution.filters)
    mixed = upper / (1 + np.exp(-upper))
    queries, keys, values = np.zeros((3, num_contexts, inner))
    queries[:, 0] = 1
    keys[:, 0] = math.sqrt(inner)
    keys[:, 1] = keeps
    values[:, :size] = wanted.terms
    pair = np.linalg.lstsq(mixed, np.column_stack([queries, keys]), rcond=1e-12)[0]
    put(mixer.queries_and_keys.weight, pair[None])
    put(mixer.values.weight, np.linalg.lstsq(upper, values, rcond=1e-12)[0][None])
    weight = np.zeros(mixer.gates.weight.shape)
    kept = OPEN if mixer.forget_kind == "sigmoid" else 0.0
    weight[:, inner + 1] = SHUT, kept - SHUT
    put(mixer.gates.weight, weight)
    put(mixer.gates.bias, [0.0, SHUT])
    unit_columns(mixer.down, begin, size)


register = Layer(
    set_gates,
    free=lambda _, width: {"heads": 1, "expand": 1.0, "projection_block": width},
)
