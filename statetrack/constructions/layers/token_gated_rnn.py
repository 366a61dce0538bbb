"""Token-gated RNN: a matrix and a term for every input, and a gate that is open.

V symbols, S states, H hidden, D width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.weights import OPEN, aim, mixer_inputs, one_hot_embedding, put
from statetrack.sources import Floats


def take_points(case: Case, points: Floats, steep: float = 1.0) -> Any:
    """Affine maps, each solved from the moves of its symbol, and `steep` times as large."""
    machine = case.algebra.machine
    size, num_symbols = case.size("hidden"), case.automaton.num_symbols
    if size < points.shape[1]:
        raise NotBuilt(f"{points.shape[1]} units are known, {size} are predicted")
    points = np.pad(points, ((0, 0), (0, size - points.shape[1])))
    matrices, terms = np.zeros((num_symbols, size, size)), np.zeros((num_symbols, size))
    start = machine.automaton.start
    for symbol, targets in enumerate(machine.delta.T):
        drawn = machine.live & machine.live[targets]
        here, there = np.zeros(size), points[targets[start]]  # where the first vector, 0, is moved
        if drawn.any() and not drawn[start]:  # the symbol moves other states alone
            state = int(drawn.argmax())
            here, there = points[state], points[targets[state]]
        moved = points[targets[drawn]] - there
        solved = np.linalg.lstsq(points[drawn] - here, moved, rcond=1e-10)[0]
        if np.abs((points[drawn] - here) @ solved - moved).max(initial=0) > 1e-8:
            raise NotBuilt("no affine map moves the points as a symbol moves states")
        matrices[symbol] = solved.T
        terms[symbol] = there - here @ solved
    model = case.blank(width=size + num_symbols)
    mixer = model.blocks[0].mixer
    width = model.settings.width
    one_hot_embedding(model, width - num_symbols)
    inputs = mixer_inputs(model)
    aim(mixer.matrices.map, inputs, steep * matrices.reshape(num_symbols, -1))
    aim(mixer.bias, inputs, steep * terms)
    put(mixer.gate.bias, np.full(size, OPEN))
    put(mixer.output.weight, np.eye(width, size))
    read_labels(model, case, slice(size))
    return model
