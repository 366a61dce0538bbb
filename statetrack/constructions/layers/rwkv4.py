"""RWKV-4: an average that the last value outweighs.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import aim, put, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """An average in which each new value has e^50 times the weight of all before it together.

    A position that keeps the state has next to no weight, and both sums of the quotient decay
    alike. The position's own value has e^50 times the weight of the sums before it.
    """
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keys, values = np.zeros((2, len(wanted.inputs), width))
    keys[:] = np.where(wanted.gains[:, :1] == 1, -1e9, 0.0)
    values[:, :size] = wanted.terms
    aim(mixer.key, wanted.inputs, keys)
    aim(mixer.value, wanted.inputs, values)
    put(mixer.log_rates, np.full(width, math.log(50.0)))
    put(mixer.bonus, np.full(width, 50.0))
    unit_columns(mixer.output, begin, size)


register = Layer(set_gates)
