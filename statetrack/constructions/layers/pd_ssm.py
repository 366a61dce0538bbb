"""PD-SSM: one-hot columns from a dictionary, moduli of 1 and phases of 0.

V symbols, S states, N state size, K actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.weights import OPEN, SHUT, aim, mixer_inputs, one_hot_embedding, put
from statetrack.sources import Integers


def take_maps(case: Case, moves: Integers, which: Integers) -> Any:
    """A matrix of the dictionary for each action; every symbol chooses its own."""
    num_states = moves.shape[1]
    size = case.size("state")
    dictionary = case.room("dictionary", len(moves))
    if size < num_states or dictionary < len(moves):
        raise NotBuilt(f"{num_states} coordinates and {len(moves)} matrices are known")
    num_symbols = case.automaton.num_symbols
    model = case.blank(width=size + num_symbols, dictionary=dictionary)
    mixer = model.blocks[0].mixer
    one_hot_embedding(model, size)
    matrices = np.zeros((dictionary, size, size))
    for number, targets in enumerate(moves):
        matrices[number, targets, np.arange(len(targets))] = 1
    put(mixer.dictionary, matrices)
    chosen = np.zeros((num_symbols, dictionary))
    chosen[np.arange(num_symbols), which] = OPEN
    aim(mixer.selection, mixer_inputs(model), chosen)
    put(mixer.moduli[-2].bias, np.full(size, OPEN))
    put(mixer.phases[-2].bias, np.full(size, SHUT))
    out = np.zeros(mixer.outward.weight.shape)
    out[:size, :size] = np.eye(size)
    put(mixer.outward.weight, out)
    read_labels(model, case, slice(size))
    return model
