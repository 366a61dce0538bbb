"""Mamba: a channel for every number, which keeps it, resets it or turns its sign.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from statetrack.constructions.layers._selective import channels_of, open_channels
from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import LONG, SHUT, aim, put, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """A channel for every number. A gain of 1 is a time step of 0; the least gain is a long one.

    exp(-dt) is then 0, and 2 exp(-dt) - 1 is -1 (Grazzi et al. 2024); it is 0 for dt = log 2, which
    is softplus(0). The first J channels hold the terms, the next N tell contexts apart.
    """
    num_contexts, size = wanted.gains.shape
    logits = np.where(np.isclose(wanted.gains.real, 1), SHUT, LONG)
    if mixer.eigenvalues == "signed":
        logits[np.isclose(wanted.gains.real, 0)] = 0
    terms = wanted.terms.real / np.where(logits == 0, math.log(2), LONG)
    open_channels(mixer, wanted.inputs, terms)
    channels = channels_of(terms, mixer.inward.out_features // 2)
    ones = np.ones((num_contexts, 1))
    rank, state, _ = mixer.sizes
    selected = np.zeros((num_contexts, rank + 2 * state))
    selected[:, :size] = logits
    selected[:, rank : rank + 1] = selected[:, rank + state : rank + state + 1] = ones
    aim(mixer.selection, channels, selected)
    weight = np.zeros(mixer.time_steps.weight.shape)
    weight[:size, :size] = np.eye(size)
    put(mixer.time_steps.weight, weight)
    bias = np.full(mixer.time_steps.bias.shape, SHUT)
    bias[:size] = 0
    put(mixer.time_steps.bias, bias)
    unit_columns(mixer.outward, begin, size)


register = signs = Layer(set_gates, free=lambda numbers, _: {"state": 1, "rank": numbers})
