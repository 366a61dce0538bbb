"""A run whose weights were made from those of another run, and not by training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from statetrack.constructions import Built
from statetrack.models import SequenceModel
from statetrack.runs import files
from statetrack.runs.config import Experiment, preset
from statetrack.runs.environment import environment
from statetrack.runs.folder import RunFolder, drop_replaced
from statetrack.runs.origin import ByConstruction
from statetrack.runs.plugins import plugins_of
from statetrack.runs.rows import Outcome, Summary
from statetrack.runs.run import Run, new_paths
from statetrack.spec import Task, file_in
from statetrack.training import TaskWords, TrainSettings, accuracy, words_right


def write_derived(
    run: Run,
    outcome: Outcome,
    model: SequenceModel,
    out: Path,
    about: Mapping[str, str | float | int],
    *,
    command: str | None = None,
    force: bool = False,
) -> Run:
    """A new finished run in the folder `out`, with one replica: the given model.

    It has the settings, the task and the plugins of `run`, of which `outcome` is the replica that
    the model was made from; `about` stands in environment.json. The validation accuracy is that of
    the model, on the same words; its loss is not known. Raises `RunError` where `out` is not empty;
    with `force`, a run that is there is replaced.
    """
    values = run.experiment.values()
    values |= {"seed": outcome.seed, "seeds": 1, "lrs": [outcome.lr]}
    made = _Made(Experiment.from_values(values, str(run.path)), run.task, model, run.device)
    summary = run.summary
    return made.written(
        out, outcome, summary.steps, summary.seconds, about, command=command, force=force
    )


def write_built(
    built: Built,
    task: Task,
    model: str,
    out: Path | None = None,
    *,
    command: str | None = None,
    force: bool = False,
) -> Run:
    """A new finished run in the folder `out`, with one replica: weights set by construction.

    `out` is by default a new folder in `runs`. Its settings of training are the defaults of the
    model: nothing was trained. Raises `RunError` where `out` is not empty; with `force`, a run that
    is there is replaced.
    """
    values = preset(model, built.settings.model_dump(mode="json"))
    values |= {"model": model, "task": task.name, "seed": built.seed, "seeds": 1}
    values["lrs"] = list(values.get("lrs", TrainSettings().lrs))[:1]
    values["built"] = ByConstruction(
        construction=built.construction.name,
        equation=built.construction.equation,
        source=built.construction.source,
        margin=built.margin,
        sizes=dict(built.sizes),
        precision=built.dtype,
        noise=built.noise,
        seed=built.seed,
        integers=built.integers,
    ).model_dump(mode="json")
    experiment = Experiment.from_values(values, "build")
    made = _Made(experiment, task, built.model, torch.device("cpu"))
    ((seed, lr),) = {(each.seed, each.lr) for each in experiment.replicas}
    outcome = Outcome(0, seed, lr, None, None, 0, "")
    out = next(new_paths(experiment, task)) if out is None else out
    return made.written(out, outcome, 0, 0.0, {}, command=command, force=force)


@dataclass(frozen=True)
class _Made:
    """A model that was not made by training, with the settings and the task of its run."""

    experiment: Experiment
    task: Task
    model: SequenceModel
    device: torch.device

    def written(
        self,
        out: Path,
        outcome: Outcome,
        steps: int,
        seconds: float,
        about: Mapping[str, str | float | int],
        *,
        command: str | None,
        force: bool,
    ) -> Run:
        """The run of the model, scored on the validation words of its settings."""
        experiment, task = self.experiment, self.task
        folder = RunFolder.start(
            out,
            config=experiment.values(),
            task=task.document(),
            environment=environment(self.device, self.model, command) | dict(about),
            plugins=plugins_of(experiment.values(), task.spec.automaton),
            frequencies=file_in(experiment.data.words),
            force=force,
        )
        parts = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        folder.write(files.WEIGHTS, {name: value.unsqueeze(0) for name, value in parts.items()})
        words = TaskWords(task, experiment.data, experiment.training, folder.frequencies_file)
        _, validation = words.on(self.device)
        first = validation[:1]
        with torch.no_grad():
            logits = self.model.eval()(first.symbols[0])
            answers = logits[None], first.labels, first.scored
            right, whole = float(accuracy(*answers)[0]), float(words_right(*answers)[0])
        alone = replace(
            outcome,
            replica=0,
            validation_accuracy=right,
            validation_prefix_accuracy=whole,
            validation_loss=None,
        )
        summary = Summary(steps, seconds, 0, (alone,), weights=folder.weights_hash())
        folder.write(files.SUMMARY, summary)
        drop_replaced(out)
        return Run.open(out, device=str(self.device))
