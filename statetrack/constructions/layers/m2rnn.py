"""M2RNN: the units are the only row of its only head, which forgets all.

V symbols, H units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.units import GAIN, Units
from statetrack.constructions.weights import one_hot_embedding, put


def take_units(case: Case, units: Units) -> Any:
    """The units as the only row of M2RNN's only head, which forgets all; without a convolution."""
    num_symbols = case.automaton.num_symbols
    size = case.size("value_size")
    more = size - len(units.bias)
    if more < 0:
        raise NotBuilt(f"{len(units.bias)} units are known, {size} are predicted")
    width = size + num_symbols
    model = case.blank(width=width, heads=1, key_size=1, conv=0, norm="none")
    symbols, width = slice(size, width), model.settings.width
    mixer = model.blocks[-1].mixer
    one_hot_embedding(model, size)
    written = np.zeros((2 + size, width))
    written[:2, symbols] = 1  # query and key
    written[2 : 2 + len(units.bias), symbols] = GAIN * (units.read + units.bias[:, None])
    put(mixer.written.linear.weight, written)
    put(mixer.weight, GAIN * np.pad(units.recurrent.T, (0, more))[None])
    put(mixer.forget_bias, [1e3])
    gate = np.zeros(mixer.gate.weight.shape)
    gate[:, symbols] = 1
    put(mixer.gate.weight, gate)
    put(mixer.output.weight, np.eye(width, size))
    read_labels(model, case, slice(size))
    return model
