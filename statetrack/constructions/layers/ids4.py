"""IDS4: the product of the inputs' matrices, read from the row of the start.

V symbols, S states, N state size, K actions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.representations import states_of
from statetrack.constructions.weights import one_hot_embedding, put
from statetrack.sources import Integers


def take_maps(case: Case, moves: Integers, which: Integers) -> Any:
    """The start's row of the product is read as a number per label, which a norm puts on a circle.

    Entries are gelu of what is set, 0 of 0 and 1 of its preimage, or what is set itself.
    """
    machine = case.algebra.machine
    num_states = moves.shape[1]
    size, num_symbols = case.size("state"), case.automaton.num_symbols
    if size < num_states:
        raise NotBuilt(f"{num_states} coordinates are known")
    model = case.blank(width=4 * num_symbols)
    block, mixer = model.blocks[0], model.blocks[0].mixer
    one_hot_embedding(model)
    matrices = np.zeros(mixer.matrices.shape)
    one = gelu_preimage(1.0) if mixer.activation == "gelu" else 1.0
    for symbol, move in enumerate(which):
        matrices[symbol, np.arange(num_states), moves[move]] = one
    put(mixer.matrices, matrices)
    tangents = np.tan(np.linspace(-1.2, 1.2, model.num_labels))
    read = np.zeros(mixer.reading.weight.shape)
    read[0, :num_states] = tangents[machine.automaton.output[states_of(case.algebra)]]
    put(mixer.reading.weight, read)
    width = mixer.skip.in_features
    first, second = np.zeros((2, width))
    used = width - width % 4
    first[:used], second[:used] = np.tile([[1, -1, 1, -1], [1, 1, -1, -1]], used // 4)
    outward = np.zeros(mixer.outward.weight.shape)
    outward[:, 0] = first
    put(mixer.outward.weight, outward)
    put(mixer.outward.bias, second)
    if block.residual:
        put(mixer.skip.weight, -np.eye(width))  # takes the residual stream back
    else:
        for spare in model.blocks[1:]:
            put(spare.mixer.skip.weight, np.eye(width))
    read_labels(model, case)
    return model


def gelu_preimage(value: float) -> float:
    """The x > 0 with gelu(x) = value, by bisection."""
    low, high = 0.0, 9.0
    for _ in range(80):
        middle = (low + high) / 2
        reached = middle * (1 + math.erf(middle / 2**0.5)) / 2
        low, high = (middle, high) if reached < value else (low, middle)
    return low
