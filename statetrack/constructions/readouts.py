"""The readout that gives every state its label, solved for the points that a model reaches.

N points, D their size, C labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import coo_array

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.covering import covering_words
from statetrack.constructions.weights import inputs_of, put
from statetrack.sources import Floats, Integers

LARGEST_PROGRAM = 40_000
"""Most constraints of a linear program for a readout."""


def read_labels(model: Any, case: Case, columns: Any = slice(None)) -> None:
    """Solve the model's readout: from chosen columns of what it gets, on words that cover all."""
    words = covering_words(case.automaton)
    labels, scored = case.automaton.read(words)
    got = inputs_of(model, model.readout, torch.from_numpy(words)).numpy()
    columns = np.arange(got.shape[-1])[columns]
    features, answers = got[scored][:, columns], labels[scored].astype(np.int64)
    weight, bias = separate(
        features, answers, case.automaton.num_labels, with_bias=model.readout.bias is not None
    )
    whole = np.zeros(model.readout.weight.shape)
    whole[:, columns] = weight
    put(model.readout.weight, whole)
    if model.readout.bias is not None:
        put(model.readout.bias, bias)


def separate(
    points: Floats, labels: Integers, num_labels: int, *, with_bias: bool
) -> tuple[Floats, Floats]:
    """Rows `[C, D]` and biases `[C]` for which every point's own label has the largest score.

    The means of each label's points, their sums, the answer of least squares, or at last a linear
    program with the largest margin: whichever leads by most. Raises `NotBuilt` where none does.
    """
    first = _distinct(np.column_stack([np.round(points, 6), labels]))
    points, labels = points[first], labels[first]
    found = list(_simple_readouts(points, labels, num_labels, with_bias))
    best = max(found, key=lambda each: _lead(points, labels, *each))
    if _lead(points, labels, *best) < 1e-3:
        program = _program(points, labels, num_labels, with_bias)
        found = [best] if program is None else [best, program]
        best = max(found, key=lambda each: _lead(points, labels, *each))
    if _lead(points, labels, *best) <= 1e-9:
        raise NotBuilt("no linear readout separates the labels of the points that were reached")
    return best


def _distinct(rows: Floats) -> Integers:
    """The first places of rows `[N, K]` that differ, in the order of the rows.

    Few of many words' points differ: the sort of numpy's `unique` is left to those.
    """
    places: dict[bytes, int] = {}
    for place, row in enumerate(np.ascontiguousarray(rows)):
        places.setdefault(row.tobytes(), place)
    kept = np.fromiter(places.values(), np.int64, len(places))
    _, first = np.unique(rows[kept], axis=0, return_index=True)
    return kept[first]


def _simple_readouts(
    points: Floats, labels: Integers, num_labels: int, with_bias: bool
) -> list[tuple[Floats, Floats]]:
    mine = (labels[:, None] == np.arange(num_labels)).astype(float)  # [N, C]
    sums = mine.T @ points
    means = sums / np.maximum(mine.sum(0), 1)[:, None]
    nothing = np.zeros(num_labels)
    if not with_bias:
        return [
            (means, nothing),
            (sums, nothing),
            (np.linalg.lstsq(points, mine, rcond=1e-10)[0].T, nothing),
        ]
    never = np.where(mine.sum(0) == 0, -1e3, 0.0)
    solved = np.linalg.lstsq(np.column_stack([points, np.ones(len(points))]), mine, rcond=1e-10)[0]
    return [
        (means, never),
        (means, never - 0.5 * (means**2).sum(1)),
        (solved[:-1].T, solved[-1]),
    ]


def _lead(points: Floats, labels: Integers, weight: Floats, bias: Floats) -> float:
    """The least lead of the right label, as a part of the largest spread of a point's scores."""
    scores = points @ weight.T + bias
    if scores.shape[1] == 1:
        return 1.0
    right = scores[np.arange(len(scores)), labels]
    spread = max(float((scores.max(1) - scores.min(1)).max()), 1e-300)
    others = scores.copy()
    others[np.arange(len(scores)), labels] = -np.inf
    return float((right - others.max(1)).min()) / spread


def _program(
    points: Floats, labels: Integers, num_labels: int, with_bias: bool
) -> tuple[Floats, Floats] | None:
    """The readout in [-1, 1] of the largest margin, by a linear program (HiGHS)."""
    inputs = np.column_stack([points, np.ones(len(points))]) if with_bias else points
    present = np.unique(labels)
    size, num_weights = inputs.shape[1], len(present) * inputs.shape[1]
    own = np.searchsorted(present, labels)
    point, other = np.nonzero(own[:, None] != np.arange(len(present)))
    if not len(point) or len(point) > LARGEST_PROGRAM:
        return None
    rows, span = np.arange(len(point)), np.arange(size)
    entries = [
        (np.repeat(rows, size), ((own[point] * size)[:, None] + span).ravel(), -inputs[point]),
        (np.repeat(rows, size), ((other * size)[:, None] + span).ravel(), inputs[point]),
        (rows, np.full(len(rows), num_weights), np.ones(len(rows))),
    ]
    matrix = coo_array(
        (
            np.concatenate([values.ravel() for _, _, values in entries]),
            (
                np.concatenate([row for row, _, _ in entries]),
                np.concatenate([column for _, column, _ in entries]),
            ),
        ),
        shape=(len(rows), num_weights + 1),
    )
    solved = linprog(
        np.append(np.zeros(num_weights), -1.0),
        A_ub=matrix.tocsr(),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1, 1)] * num_weights + [(0, None)],
        method="highs",
    )
    if solved.status != 0:
        return None
    weights = solved.x[:-1].reshape(len(present), size)
    # without a bias, a label of no point has the mean of the others' scores, below the largest
    weight = np.tile(weights[:, : points.shape[1]].mean(0) * (not with_bias), (num_labels, 1))
    bias = np.full(num_labels, -1e3 if with_bias else 0.0)
    weight[present] = weights[:, : points.shape[1]]
    if with_bias:
        bias[present] = weights[:, -1]
    return weight, bias
