"""Saturating units: one for each pair of a state and an action (Omlin and Giles 1996).

V symbols, S states, H units.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from statetrack.algebra import Machine
from statetrack.sources import Floats

GAIN = 12.0
"""How steep units are: tanh(12) differs from 1 by 8e-11, and errors do not add up."""


@dataclass(frozen=True, eq=False)
class Units:
    """A threshold network: recurrent `[H, H]`, read `[H, V]` and bias `[H]` of values +1 and -1."""

    recurrent: Floats
    read: Floats
    bias: Floats


def units_of(machine: Machine) -> Units:
    """A unit for each state and action, on (+1) after the action was read in the state; else -1.

    The last unit is 0 before the first symbol and on after it.
    """
    delta, actions = machine.delta, machine.actions
    live = np.flatnonzero(machine.live).tolist()
    pairs = list(itertools.product(live, range(len(actions))))
    size = len(pairs) + 1
    recurrent, bias = np.zeros((size, size)), np.zeros(size)
    read = np.zeros((size, delta.shape[1]))
    for unit, (state, action) in enumerate(pairs):
        leads_here = [actions[before][source] == state for source, before in pairs]
        count = sum(leads_here)
        begun = count - 2 if state == machine.automaton.start else count
        recurrent[unit, :-1] = leads_here
        recurrent[unit, -1] = begun
        bias[unit] = count - 1 - begun
        differs = (delta.T != actions[action]).any(axis=1)
        read[unit] = -4.0 * len(pairs) * differs
    bias[-1] = 2.0
    return Units(recurrent, read, bias)
