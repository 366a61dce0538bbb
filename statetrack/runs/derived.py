"""A run whose weights were made from those of another run, and not by training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from statetrack.errors import RunError, setting
from statetrack.models import SequenceModel
from statetrack.runs import files
from statetrack.runs.config import Experiment
from statetrack.runs.environment import environment
from statetrack.runs.folder import RunFolder, drop_replaced, is_run, require_replaceable
from statetrack.runs.plugins import plugins_of
from statetrack.runs.rows import Outcome, Summary
from statetrack.runs.run import Run
from statetrack.training import accuracy


def require_new(out: Path, *, force: bool = False) -> None:
    """Raise `RunError` where a folder has something in it already, or could not be written.

    With `force`, a run may be there, and nothing else.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if force:
            require_replaceable(out)
        else:
            hint = f", or replace it by {setting('force')}" if is_run(out) else ""
            raise RunError(
                f"{out}: already exists and is not empty: choose another {setting('out')}{hint}"
            )
    above = next(each for each in (out.absolute(), *out.absolute().parents) if each.exists())
    if not above.is_dir():
        raise RunError(f"{out}: {above} is no folder: choose another {setting('out')}")
    if not os.access(above, os.W_OK | os.X_OK):
        raise RunError(f"{out}: {above} cannot be written: choose another {setting('out')}")


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
    experiment = Experiment.from_values(values, str(run.path))
    made_on = environment(run.device, model, command)
    folder = RunFolder.start(
        out,
        config=experiment.values(),
        task=run.task.document(),
        environment=made_on | dict(about),
        plugins=plugins_of(experiment.values(), run.task.spec.automaton),
        force=force,
    )
    parts = dict(model.named_parameters()) | dict(model.named_buffers())
    weights = {name: value.unsqueeze(0) for name, value in parts.items()}
    folder.write(files.WEIGHTS, weights)
    _, validation = run.words.on(run.device)
    words = validation[:1]
    with torch.no_grad():
        right = accuracy(model.eval()(words.symbols[0])[None], words.labels, words.scored)
    summary = run.summary
    alone = replace(outcome, replica=0, validation_accuracy=float(right[0]), validation_loss=None)
    made = Summary(steps=summary.steps, seconds=summary.seconds, selected=0, replicas=(alone,))
    folder.write(files.SUMMARY, made)
    drop_replaced(out)
    return Run.open(out, device=str(run.device))
