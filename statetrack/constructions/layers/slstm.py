"""sLSTM: the units are candidates, in the last layer and in one head.

V symbols, H units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from statetrack.constructions.case import BeyondBudget, Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.units import GAIN, Units
from statetrack.constructions.weights import OPEN, SHUT, inputs_of_mixer, put

MOST_UNITS = 256
"""Most units of a scalar LSTM, for which no size is predicted."""


def take_units(case: Case, units: Units) -> Any:
    """The units as the scalar LSTM's candidates, in its last layer and in one head.

    With the forget gate shut and the input gate at exp(0), c / n is the candidate's tanh.
    """
    size, num_symbols = len(units.bias), case.automaton.num_symbols
    if size > MOST_UNITS:
        raise BeyondBudget(f"{size} units")
    if "width" in case.sizes:
        model = case.blank(norm="rms")
        head = model.blocks[-1].mixer.recurrent.shape[1]
    else:
        head = size + num_symbols
        model = case.blank(width=head, heads=1, norm="rms", projection_block=1)
    if head < max(size, num_symbols):
        raise NotBuilt(f"a head has {head} units, and {size} are known")
    mixer = model.blocks[-1].mixer
    # a head sees its own channels alone; where units are written to the symbols' channels too,
    # the readout finds the symbol again in another head
    second = head if head < size + num_symbols else size
    table = np.zeros(model.embedding.weight.shape)
    table[:, :num_symbols] = np.eye(num_symbols)
    table[:, second : second + num_symbols] = np.eye(num_symbols)
    put(model.embedding.weight, table)
    symbols = torch.arange(num_symbols).unsqueeze(1)
    inputs = inputs_of_mixer(model, len(model.blocks) - 1, symbols).squeeze(1)[:, :head]
    candidate = slice(2 * head, 2 * head + size)  # of the gates i, f, z, o
    solved = np.linalg.lstsq(inputs.numpy(), GAIN * units.read.T, rcond=1e-12)[0]
    with torch.no_grad():
        mixer.update_and_output.weight[0, :, :size] = torch.from_numpy(solved)
        mixer.recurrent[0, :size, candidate] = torch.from_numpy(GAIN * units.recurrent.T)
        mixer.update_bias[0, :size] = torch.from_numpy(GAIN * units.bias)
        mixer.output_bias.fill_(OPEN)
        mixer.forget_bias.fill_(SHUT)
    read_labels(model, case, slice(second + num_symbols))
    return model
