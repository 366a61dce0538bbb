"""An experiment with its task, for tests of training that need no run folder."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from statetrack.models._base import SequenceModel
from statetrack.ops.devices import choose_device
from statetrack.runs.config import Experiment
from statetrack.runs.run import make_replica
from statetrack.spec import Task, load_task
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
