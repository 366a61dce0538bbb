"""What tests start from that need no run folder: an experiment with its task, a suite's cell."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from statetrack.models._base import SequenceModel
from statetrack.ops.devices import choose_device
from statetrack.runs.config import Experiment
from statetrack.runs.rows import EvaluationRow
from statetrack.runs.run import make_replica
from statetrack.spec import Task, load_task
from statetrack.sweep.results import CellResult, Measurement, num_right
from statetrack.training.words import SeedStreams, TaskWords, Words


@dataclass(frozen=True)
class Setup:
    """What `Run` joins, before there is a folder."""

    experiment: Experiment
    task: Task

    @classmethod
    def of(cls, experiment: Experiment) -> Setup:
        return cls(experiment, load_task(experiment.data.task))

    @property
    def device(self) -> torch.device:
        return choose_device(self.experiment.training.device)

    @property
    def task_words(self) -> TaskWords:
        return TaskWords(self.task, self.experiment.data, self.experiment.training)

    def words(self) -> tuple[SeedStreams, Words]:
        return self.task_words.on(self.device)

    def make_model(self) -> SequenceModel:
        return make_replica(self.experiment, self.task)


def cell_of(row: str, column: str, rows: tuple[EvaluationRow, ...]) -> CellResult:
    """A suite's cell with these rows, all of one length, of which the first is selected."""
    return CellResult(
        row=row,
        column=column,
        run="run",
        replicas=len(rows),
        rows=rows,
        curves=rows,
        selected=rows[0],
        success=num_right(rows) / len(rows),
        horizon=0,
        steps=1,
        seconds=0.1,
        measured=Measurement("0", 1, rows[0].length, 9, 0, (rows[0].length,), (), 9, 1),
    )
