"""SLiCE: blocks linear in the input, as (A(x) - I) / dt; symbols have coordinates apart.

V symbols, S states, D width, b block size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from statetrack.constructions.case import Case
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.representations import LinearRepresentation
from statetrack.constructions.weights import aim, mixer_inputs, one_hot_embedding, put


def take_blocks(case: Case, parts: Sequence[LinearRepresentation]) -> Any:
    """The first state is the start's point; or the first symbol is mapped to where it leads."""
    size = parts[0].size
    begin = size * len(parts)
    width = -(-(begin + case.automaton.num_symbols) // size) * size
    model = case.blank(width=width)
    width, mixer = model.settings.width, model.blocks[0].mixer
    one_hot_embedding(model, begin)
    fields = np.zeros((case.automaton.num_symbols, width // size, size, size))
    for place, part in enumerate(parts):
        fields[:, place] = (part.matrices - np.eye(size)) / mixer.dt
    aim(mixer.fields, mixer_inputs(model), fields.reshape(len(fields), -1))
    machine = case.algebra.machine
    points = np.column_stack([part.points for part in parts])
    points = np.pad(points, ((0, 0), (0, width - begin)))
    start = machine.automaton.start
    if mixer.first_of_symbol is None:
        put(mixer.first, points[start])
    else:
        aim(mixer.first_of_symbol, mixer_inputs(model), points[machine.delta[start]])
    read_labels(model, case, slice(begin))
    return model
