"""Full matrix simple: the state is the product of the symbols' matrices, read as a whole.

n dimensions, C labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.case import Case
from statetrack.constructions.readouts import separate
from statetrack.constructions.representations import LinearRepresentation
from statetrack.constructions.weights import put


def take_matrices(case: Case, found: LinearRepresentation) -> Any:
    """The matrices as they are; the first point is a part of the readout."""
    machine, asked = case.algebra.machine, case.asked
    model = case.blank()
    put(model.matrices, found.matrices)
    weight, _ = separate(
        found.points[asked], machine.automaton.output[asked], model.num_labels, with_bias=False
    )
    first = found.points[machine.automaton.start]
    put(model.readout.weight, np.einsum("cn,m->cnm", weight, first).reshape(len(weight), -1))
    return model
