"""RWKV-6: the first row of one head, kept or reset.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import OPEN, aim, put, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """One head: its first row is kept or reset. A read is of the state before the position.

    So it is read where the position keeps it; where it resets it, the symbol says all.
    """
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keeps = wanted.gains[:, 0] == 1
    receptance, key, value = np.zeros((3, len(keeps), width))
    receptance[:, 0] = keeps
    key[:, 0] = ~keeps
    value[:, :size] = wanted.terms
    aim(mixer.receptance, wanted.inputs, receptance)
    aim(mixer.key, wanted.inputs, key)
    aim(mixer.value, wanted.inputs, value)
    aim(mixer.gate, wanted.inputs, np.ones((len(keeps), width)))
    inner = np.zeros((len(keeps), mixer.decay.inner.out_features))
    inner[:, 0] = np.where(keeps, -OPEN, OPEN)  # tanh is -1 or 1
    aim(mixer.decay.inner, wanted.inputs, inner)
    outer = np.zeros(mixer.decay.outer.weight.shape)
    outer[:, 0] = 410.0
    put(mixer.decay.outer.weight, outer)
    put(mixer.decay.bias, np.full(width, -390.0))
    unit_columns(mixer.output, begin, size)


register = Layer(set_gates, free=lambda *_: {"heads": 1})
