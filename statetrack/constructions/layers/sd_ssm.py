"""SD-SSM: a dictionary of matrices, and a constant that takes back what inputs add.

V symbols, S states, N state size, K actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.weights import OPEN, aim, mixer_inputs, one_hot_embedding, put
from statetrack.sources import Integers


def take_maps(case: Case, moves: Integers, which: Integers) -> Any:
    """Column and row of the constant are the last; the start is the first coordinate."""
    num_states = moves.shape[1]
    size, dictionary = case.size("state"), case.size("dictionary")
    if size <= num_states or dictionary < len(moves):
        raise NotBuilt(f"{num_states + 1} coordinates and {len(moves)} matrices are known")
    num_symbols = case.automaton.num_symbols
    model = case.blank(width=size + num_symbols)
    mixer = model.blocks[0].mixer
    one_hot_embedding(model)
    matrices = np.zeros(mixer.dictionary.shape)
    matrices[:] = np.eye(size)  # where there are more coordinates than are used
    for number, targets in enumerate(moves):
        matrices[number] = np.eye(size)
        matrices[number, :, : len(targets)] = np.eye(size)[:, targets]
        matrices[number, :, -1] = -np.eye(size)[targets[0]]
    put(mixer.dictionary, matrices)
    chosen, written = np.zeros((num_symbols, dictionary)), np.zeros((num_symbols, size))
    chosen[np.arange(num_symbols), which] = OPEN
    written[np.arange(num_symbols), moves[which, 0]] = 1
    written[:, -1] = 1
    aim(mixer.selection, mixer_inputs(model), chosen)
    aim(mixer.writings, mixer_inputs(model), written)
    out = np.zeros(mixer.outward.weight.shape)
    out[:size, :size] = np.eye(size)
    put(mixer.outward.weight, out)
    put(mixer.state_norm.weight, np.ones(size))
    read_labels(model, case, slice(size))
    return model
