"""What linear models share: tables of symbols, first states and readouts.

V symbols, S states, H hidden, C labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.integers import integer_readout
from statetrack.constructions.readouts import separate
from statetrack.constructions.weights import put
from statetrack.errors import setting
from statetrack.sources import Floats


def put_table(model: Any, parameter: Tensor, values: Floats) -> None:
    """Write a table `[V, ...]` into a parameter; learned embeddings become unit vectors.

    Raises `NotBuilt` where embeddings have fewer dimensions than there are symbols.
    """
    vectors = model.embedding.vectors
    if vectors is None:
        put(parameter, values)
        return
    num_symbols, size = vectors.shape
    if size < num_symbols:
        raise NotBuilt(
            f"{setting('embed_dim', size)}: with less than {num_symbols}, a dimension for each "
            "symbol, no construction is known; 0 means one-hot symbols"
        )
    put(vectors, np.eye(num_symbols, size))
    rows = np.zeros((size, *values.shape[1:]))
    rows[:num_symbols] = values
    put(parameter, np.moveaxis(rows, 0, -1))


def finish(model: Any, case: Case, points: Floats, terms: Floats | None = None) -> Any:
    """The first state and the readout of a model whose state is a point `[S, H]`, or part of it.

    `terms [V, H]` are added at every step. Raises `NotBuilt` where the model adds none.
    """
    machine, size = case.algebra.machine, len(model.first)
    points = np.pad(points, ((0, 0), (0, size - points.shape[1])))
    if terms is not None:
        if model.additive_kind != "input":
            raise NotBuilt(f"it needs {setting('additive', 'input')}")
        put_table(model, model.additive, np.pad(terms, ((0, 0), (0, size - terms.shape[1]))))
    asked = case.asked
    put(model.first, points[machine.automaton.start])
    labels = machine.automaton.output[asked]
    if case.integers:
        weight = integer_readout(points[asked], labels, model.num_labels)
    else:
        weight, _ = separate(points[asked], labels, model.num_labels, with_bias=False)
    put(model.readout.weight, weight)
    return model
