"""The law of learning: a penalised logistic regression of a chance on few features.

The log odds of a cell are a constant, a slope for each feature, a constant for its model, and a
further slope of each feature for its class of recurrence. Features are scaled to mean 0 and
deviation 1 over the cells that the law is fitted on. A squared penalty draws every term but the
constant to 0, so that a model or class with few cells follows the others.

Letters: N cells, F features, K terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.learning.features import Cell, Trained

Floats = npt.NDArray[np.float64]

FEATURE, MODEL, SLOPE = 2.0, 2.0, 1.0
"""The penalties of slopes, of constants of models, and of slopes of classes of recurrence."""
CONSTANT = 1e-4
RESAMPLED, RESAMPLED_SEED = 400, 0
"""Laws that an interval rests on, each fitted on machines that are drawn with replacement."""
LEVEL = 0.95
SPACE = 2.0
"""How far from 0 and 1 the share of a model is drawn to that of all cells, in cells."""


@dataclass(frozen=True, eq=False)
class Law:
    """A fitted law."""

    mean: Floats  # [F]
    deviation: Floats  # [F]
    models: tuple[str, ...]
    recurrences: tuple[str, ...]
    weights: Floats  # [K]

    @classmethod
    def fit(cls, cells: Sequence[Cell], chances: Floats) -> Law:
        """The law of cells, with the share of right replicas of each, or 1 where some is right."""
        features = np.array([cell.features for cell in cells])
        deviation = features.std(axis=0)
        law = cls(
            features.mean(axis=0),
            np.where(deviation > 0, deviation, 1.0),
            tuple(sorted({cell.model for cell in cells})),
            tuple(sorted({cell.recurrence for cell in cells})),
            np.zeros(0),
        )
        weights = _ridge(law.terms(cells), chances, law.penalties)
        return cls(law.mean, law.deviation, law.models, law.recurrences, weights)

    @property
    def penalties(self) -> Floats:
        """The penalty of each term."""
        num_features = len(self.mean)
        return np.array(
            [CONSTANT]
            + [FEATURE] * num_features
            + [MODEL] * len(self.models)
            + [SLOPE] * num_features * len(self.recurrences)
        )

    def terms(self, cells: Sequence[Cell]) -> Floats:
        """The terms of each cell, [N, K]."""
        rows = []
        for cell in cells:
            scaled = (np.array(cell.features) - self.mean) / self.deviation
            of_model = [float(cell.model == model) for model in self.models]
            of_class = [scaled * (cell.recurrence == each) for each in self.recurrences]
            rows.append(np.concatenate([[1.0], scaled, of_model, *of_class]))
        return np.array(rows)

    def chances(self, cells: Sequence[Cell]) -> Floats:
        """The chance of each cell, [N]."""
        return _logistic(self.terms(cells) @ self.weights)


def intervals(trained: Sequence[Trained], chances: Floats, cells: Sequence[Cell]) -> Floats:
    """The interval of each cell's chance, [N, 2]: of laws fitted on machines drawn anew."""
    machines = sorted({each.cell.machine for each in trained})
    places = {name: _places(trained, name) for name in machines}
    generator = np.random.default_rng(RESAMPLED_SEED)
    known = [each.cell for each in trained]
    found = []
    for _ in range(RESAMPLED):
        drawn = generator.choice(len(machines), len(machines))
        chosen = np.concatenate([places[machines[number]] for number in drawn])
        law = Law.fit([known[place] for place in chosen], chances[chosen])
        found.append(law.chances(cells))
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    return np.quantile(np.array(found), ends, axis=0).T


def left_out(trained: Sequence[Trained], chances: Floats) -> Floats:
    """The chance of each cell by the law that is fitted on all cells of other machines, [N]."""
    found = np.zeros(len(trained))
    known = [each.cell for each in trained]
    for name in {cell.machine for cell in known}:
        own = _places(trained, name)
        others = np.setdiff1d(np.arange(len(trained)), own)
        law = Law.fit([known[place] for place in others], chances[others])
        found[own] = law.chances([known[place] for place in own])
    return found


def left_out_shares(trained: Sequence[Trained], chances: Floats) -> tuple[Floats, Floats]:
    """The share of all cells, and of those of its model, of each cell, of other machines: [N]."""
    every, own_model = np.zeros(len(trained)), np.zeros(len(trained))
    machines = np.array([each.cell.machine for each in trained])
    for name in set(machines):
        others = [place for place, machine in enumerate(machines) if machine != name]
        known = [trained[place] for place in others]
        every[machines == name] = chances[others].mean()
        for place in np.flatnonzero(machines == name).tolist():
            own_model[place] = share_of_model(known, chances[others], trained[place].cell.model)
    return every, own_model


def share_of_model(trained: Sequence[Trained], chances: Floats, model: str) -> float:
    """The share of a model's cells, with `SPACE` cells at the share of all cells beside them."""
    own = chances[[each.cell.model == model for each in trained]]
    return float((own.sum() + SPACE * chances.mean()) / (len(own) + SPACE))


def _places(trained: Sequence[Trained], machine: str) -> npt.NDArray[np.intp]:
    return np.flatnonzero([each.cell.machine == machine for each in trained])


def _logistic(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-odds))


def _ridge(terms: Floats, chances: Floats, penalties: Floats) -> Floats:
    """The weights of least penalised log loss, by Newton's method with bounded steps."""
    weights = np.zeros(terms.shape[1])
    for _ in range(200):
        found = _logistic(terms @ weights)
        slope = terms.T @ (chances - found) - penalties * weights
        curve = (terms.T * (found * (1 - found))) @ terms + np.diag(penalties)
        step = np.linalg.solve(curve, slope)
        largest = float(np.abs(step).max())
        weights += step * min(1.0, 3.0 / max(largest, 1e-12))
        if largest < 1e-9:
            return weights
    raise AssertionError("the weights did not settle")
