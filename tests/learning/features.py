"""What is known of a cell before training: a model at its default settings on a task.

Letters: S states, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from statetrack.algebra import Prediction
from statetrack.models import recurrence_of
from statetrack.predicting import algebra_of, identification_by, predict
from statetrack.report import LearnedMap, MapCell, RecordedTable
from statetrack.spec import Task, WordSpec, golden_hash, load_task
from statetrack.sweep import Point

CAN = ("learned", "not held", "not learned")
"""The standings of cells whose model can at the size that it has, or may be able to."""

FEATURES = {
    "surplus": "the size that the model has over the one that is known to be enough, log2, of the "
    "setting that counts most, between -4 and 1",
    "rarest": "how often a word of training takes the transition that it takes least, log10",
    "longest": "symbols of the longest word of training, log2",
    "identified": "symbols of words that are known to identify the machine, log2",
    "permutes": "1 where words permute some states of the machine, 0 where it is aperiodic",
}
"""The features of the law, and what each is."""

LEAST_SURPLUS, MOST_SURPLUS = -4.0, 1.0
"""Beyond these, more or less makes no difference: on the map, twice the size is as good as more."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A model on a task, with its features in the order of `FEATURES`.

    `recurrence` is the class of the model's recurrence, `machine` the fingerprint of the task's
    automaton and words.
    """

    model: str
    task: str
    recurrence: str
    machine: str
    features: tuple[float, ...]

    @classmethod
    def of(cls, point: Point) -> Cell | None:
        """The cell of a point of a suite; None where the model cannot with its settings."""
        settings = point.experiment.model_settings
        task = load_task(point.experiment.data.task)
        found = predict(algebra_of(task.automaton), settings)
        if found.can != "yes" or found.answer == "no":
            return None
        return cls(
            model=point.row,
            task=point.column,
            recurrence=type(recurrence_of(settings)).__name__,
            machine=golden_hash(task)[:12],
            features=(surplus(found), *_features_of(task)),
        )


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A cell, and how many of its replicas are right at every longer length."""

    cell: Cell
    right: int
    replicas: int

    @property
    def learned(self) -> bool:
        """Whether some replica is right."""
        return self.right > 0


def surplus(found: Prediction) -> float:
    """How many times the size that is enough the model has, as a power of 2; 0 if not known."""
    least = found.needs[0].value if found.needs else None
    if least is None:
        return 0.0
    if least == 0:
        return MOST_SURPLUS
    size = math.log2(found.needs[0].given / least)
    return min(max(size, LEAST_SURPLUS), MOST_SURPLUS)


@lru_cache(maxsize=64)
def _features_of(task: Task) -> tuple[float, float, float, float]:
    words, algebra = WordSpec.of(task), algebra_of(task.automaton)
    groups = algebra.holonomy_groups
    assert groups is not None, f"{task.name}: its groups are not known"
    return (
        math.log10(rarest_transition(task)),
        math.log2(words.lengths.longest),
        math.log2(identification_by(words, algebra.machine).enough),
        float(any(group.order > 1 for group in groups)),
    )


def rarest_transition(task: Task) -> float:
    """How often a word of training takes the transition that it takes least, if it can at all."""
    automaton, lengths = task.automaton, WordSpec.of(task).lengths
    shortest, longest = lengths.shortest, lengths.longest
    states = np.zeros(automaton.num_states)
    states[automaton.start] = 1
    taken = np.zeros(automaton.delta.shape)  # [S, V]
    for position in range(longest):
        here = states[:, None] * automaton.chances_at(position)
        reach = (longest - max(position, shortest - 1)) / (longest - shortest + 1)
        taken += reach * here
        states = np.zeros_like(states)
        np.add.at(states, automaton.delta, here)
    return float(taken[taken > 0].min())


def trained_cells(table: RecordedTable) -> Iterator[Trained]:
    """The cells of a recorded map whose model can."""
    points = {(point.row, point.column): point for point in table.points}
    for cell in LearnedMap.of_records(table).cells:
        if (found := trained_of(cell, points[cell.row, cell.column])) is not None:
            yield found


def trained_of(cell: MapCell, point: Point) -> Trained | None:
    """A cell of a map with its features; None where the model cannot."""
    if cell.standing not in CAN:
        return None
    found = Cell.of(point)
    assert found is not None
    return Trained(cell=found, right=cell.right, replicas=cell.replicas)


def read_map(record: Path) -> list[Trained]:
    """The cells of the record of a map."""
    return list(trained_cells(RecordedTable.read(record)))
