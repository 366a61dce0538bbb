"""RNN, LSTM and GRU of torch.nn: the units are candidates, gates are held open or shut.

V symbols, H hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.units import GAIN, Units
from statetrack.constructions.weights import put

GATES: dict[str, tuple[list[float | None], float]] = {
    # rows of the gates in torch's order: None for the candidate, else how the gate is held
    "RNN_TANH": ([None], 1.0),
    "GRU": ([30.0, -30.0, None], 1.0),  # reset open, update shut, candidate
    "LSTM": ([30.0, -30.0, None, 30.0], float(np.tanh(1.0))),  # input, forget, candidate, output
}


def take_units(case: Case, units: Units) -> Any:
    """The units as candidates of a network of torch.nn; its gates are held open or shut."""
    size = case.size("hidden")
    more = size - len(units.bias)
    if more < 0:
        raise NotBuilt(f"{len(units.bias)} units are known, {size} are predicted")
    recurrent = np.pad(units.recurrent, (0, more))
    read = np.pad(units.read, ((0, more), (0, 0)))
    bias = np.pad(units.bias, (0, more))
    model = case.blank(embed_dim=case.automaton.num_symbols)
    network = model.network
    gates, height = GATES[network.mode]
    put(model.embedding.weight, np.eye(case.automaton.num_symbols))
    put(
        network.weight_ih_l0,
        np.vstack([GAIN * read if held is None else 0 * read for held in gates]),
    )
    put(
        network.weight_hh_l0,
        np.vstack([GAIN * recurrent / height if held is None else 0 * recurrent for held in gates]),
    )
    put(
        network.bias_ih_l0,
        np.concatenate([GAIN * bias if held is None else np.full(size, held) for held in gates]),
    )
    read_labels(model, case)
    return model
