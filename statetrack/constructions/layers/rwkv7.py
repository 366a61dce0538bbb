"""RWKV-7: the first row of one head, which a reset replaces.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import OPEN, SHUT, aim, put, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """One head, nothing decays: a reset removes the first row and writes another in its place.

    What keeps the state removes the second row, which is 0.
    """
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    receptance, key, value = np.zeros((3, len(wanted.inputs), width))
    receptance[:, 0] = 1
    key[:, 0] = wanted.gains[:, 0] != 1
    key[:, 1] = wanted.gains[:, 0] == 1  # a key of length 1: one near 0 is divided by its length
    value[:, :size] = wanted.terms
    aim(mixer.receptance, wanted.inputs, receptance)
    aim(mixer.key, wanted.inputs, key)
    aim(mixer.value, wanted.inputs, value)
    put(mixer.decay.bias, np.full(width, SHUT))
    put(mixer.rate.bias, np.full(width, OPEN))
    put(mixer.removal, np.ones(width))
    gate = np.zeros(mixer.gate.outer.weight.shape)
    gate[:, 0] = 2.0  # the sigmoid of 0 is 1/2
    put(mixer.gate.outer.weight, gate)
    unit_columns(mixer.output, begin, size)


register = Layer(set_gates, free=lambda *_: {"heads": 1})
