"""RG-LRU: a gate that is shut keeps a number, one that is open takes the input.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.layers._selective import channels_of
from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import (
    LONG,
    OPEN,
    SHUT,
    aim,
    identity_convolution,
    put,
    unit_columns,
)

ONE_OF_GELU = 1.1447
"""gelu(x) is 1, to within a thousandth; the readout is solved for what it gives."""


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """A gate that is shut keeps a number; one that is open takes the input in its place.

    Gates depend on the convolution's outputs, whose first J channels hold the terms and whose next
    N tell contexts apart.
    """
    size = wanted.terms.shape[1]
    channels = channels_of(wanted.terms.real, mixer.rates.numel())
    aim(mixer.inward, wanted.inputs, channels)
    identity_convolution(mixer.convolution.filters)
    forget = np.full(channels.shape, OPEN)
    forget[:, :size] = np.where(np.isclose(wanted.gains.real, 1), SHUT, OPEN)
    put(mixer.forgetting.blocks[0], np.linalg.lstsq(channels, forget, rcond=1e-12)[0])
    put(mixer.rates, np.full(channels.shape[1], LONG))
    put(mixer.writing.bias, np.full(channels.shape[1], OPEN))
    put(mixer.gate.bias, np.full(channels.shape[1], ONE_OF_GELU))
    unit_columns(mixer.outward, begin, size)


register = Layer(set_gates, free=lambda *_: {"heads": 1, "expand": 2})
