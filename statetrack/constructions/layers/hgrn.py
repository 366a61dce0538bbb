"""HGRN: a forget gate of 1 keeps a number, one of 0 takes the input in its place.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import ONE, OPEN, SHUT, aim, silu_preimage, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """A forget gate of 1 keeps a number; one of 0 takes the input in its place. Phases are 0."""
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    parts = mixer.inputs.out_features // width
    forget = np.full((len(wanted.inputs), width), OPEN)
    forget[:, :size] = np.where(wanted.gains == 1, OPEN, SHUT)
    values = np.zeros((len(forget), parts * width))
    values[:, :size] = silu_preimage(wanted.terms)
    aim(mixer.forget, wanted.inputs, forget)
    aim(mixer.inputs, wanted.inputs, values)
    aim(mixer.output_gate, wanted.inputs, np.full(values.shape, ONE))
    unit_columns(mixer.output, begin, size)


register = Layer(set_gates)
