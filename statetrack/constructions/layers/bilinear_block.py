"""Block-diagonal bilinear RNN: every block of a symbol is a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from statetrack.constructions.case import Case
from statetrack.constructions.layers._linear import finish, put_table
from statetrack.constructions.representations import LinearRepresentation


def take_blocks(case: Case, parts: Sequence[LinearRepresentation]) -> Any:
    """The parts as they are; blocks beyond them are 0."""
    size = parts[0].size
    model = case.blank(hidden=size * len(parts))
    blocks = np.zeros((case.automaton.num_symbols, model.settings.hidden // size, size, size))
    blocks[:, : len(parts)] = np.stack([part.matrices for part in parts], 1)
    put_table(model, model.weight, blocks)
    return finish(model, case, np.column_stack([part.points for part in parts]))
