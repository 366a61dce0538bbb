"""Second-order RNN: matrices are tables of moves.

S states, H hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.units import GAIN
from statetrack.constructions.weights import put


def take_states(case: Case) -> Any:
    """A unit for each state, on (+1) in it and off (-1) elsewhere; matrices are tables of moves.

    A unit is as far from 0 as `GAIN` before tanh: of all units of states that a symbol leads into
    its state, one is on, or none.
    """
    machine, size = case.algebra.machine, case.size("hidden")
    live = np.flatnonzero(machine.live)
    if size < len(live):
        raise NotBuilt(f"{len(live)} units are known, {size} are predicted")
    model = case.blank()
    moves = np.zeros((case.automaton.num_symbols, size, size))
    unit = np.cumsum(machine.live) - 1
    for symbol, targets in enumerate(machine.delta.T):
        state = live[machine.live[targets[live]]]  # to the sink no unit leads: all are off there
        moves[symbol, unit[targets[state]], unit[state]] = GAIN
    put(model.matrices, moves)
    put(model.biases, moves.sum(-1) - GAIN)
    first = np.full(size, -GAIN)
    first[unit[machine.automaton.start]] = GAIN
    put(model.first, first)
    read_labels(model, case)
    return model
