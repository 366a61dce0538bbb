"""Training one module on a task, in memory; and what is checked of a module before.

B batch, T time, C labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from statetrack.errors import SettingsError, StatetrackWarning
from statetrack.models import SequenceModel
from statetrack.ops import choose_device
from statetrack.settings import build
from statetrack.spec import Task, load_task
from statetrack.training.population import Population
from statetrack.training.records import Record, replicas_of
from statetrack.training.settings import DataSettings, TrainSettings
from statetrack.training.trainer import Trainer
from statetrack.training.words import TaskWords

OF_RUNS = ("checkpoint_every", "threads")
"""Settings that have no meaning for one module in memory."""


def train(model: nn.Module, task: Task | str | Path, **settings: Any) -> Iterator[Record]:
    """Train any module from symbols [B, T] to logits [B, T, C], in place; yield records.

    `task` is a task or its name. `settings` are those of `DataSettings` and `TrainSettings`, with
    one seed and one learning rate (`lrs`); defaults are the model's `training_defaults`, if it has
    any, and then those of the classes. `device` is by default that of the module's first parameter.
    Once the iterator ends, or is closed, the module has the weights that were best on the
    validation words, which have the training lengths. torch's global generator is seeded with
    `seed`.

    Raises `SettingsError` for a setting that does not exist, or that belongs to a run
    (`statetrack.Run`), and where the logits are not [B, T, C]; warns where the module is not
    causal, and where training diverged: the module then has its initial weights again.
    """
    for name in OF_RUNS:
        if name in settings:
            raise SettingsError(f"train: '{name}' is a setting of runs: use statetrack.Run")
    own = model.training_defaults if isinstance(model, SequenceModel) else {}
    values = {**own, **settings}
    words = {key: values.pop(key) for key in DataSettings.model_fields if key in values}
    training = build(TrainSettings, values, "train")
    if training.seeds != 1 or len(training.lrs) != 1:
        raise SettingsError(
            "train: one module has one seed and one learning rate: for more, use statetrack.Run"
        )
    if "device" in settings:
        device = choose_device(training.device)
    else:
        device = next(model.parameters()).device
    return _train(
        model, TaskWords(load_task(task), build(DataSettings, words, "train"), training), device
    )


def _train(model: nn.Module, words: TaskWords, device: torch.device) -> Iterator[Record]:
    settings, was_training = words.training, model.training
    check_logits(model.to(device), words.task, device)
    population = Population(lambda: model, replicas_of([settings.seed], settings.lrs), device)
    trainer = Trainer(population, *words.on(device), settings, device)
    torch.manual_seed(settings.seed)
    try:
        for records in trainer.run():
            yield from records
    except GeneratorExit:
        if trainer.stepped and not trainer.finished:  # left at the last step
            for _ in trainer.finish():
                pass
        raise
    finally:
        with torch.no_grad():
            for name, value in (*model.named_parameters(), *model.named_buffers()):
                value.copy_(trainer.best[name][0])
        model.train(was_training)
    if not trainer.progress[0].best_step:
        warnings.warn(
            f"training diverged{_since(trainer)}; no validation loss was finite, so the module has "
            "its initial weights again; train it with lower lrs, or with gradients clipped "
            "(clip=1.0)",
            StatetrackWarning,
            stacklevel=2,
        )


def _since(trainer: Trainer) -> str:
    step = trainer.progress[0].diverged_at
    return f": its loss is NaN or infinite from step {step:,} on" if step else ""


NUM_WORDS, LONGEST = 2, 8
"""The number of words that are read, and the most symbols of each."""


@torch.no_grad()
def check_logits(model: nn.Module, task: Task, device: torch.device) -> None:
    """Run a model on a few words of a task, in evaluation mode, and check its logits.

    Raises `SettingsError` unless the logits are [B, T, C] and finite. Warns with
    `StatetrackWarning` where logits depend on later symbols: accuracy is then no evidence of state
    tracking.
    """
    words = task.sample(NUM_WORDS, length=min(LONGEST, task.source.longest_word))
    symbols = words.to_torch().symbols.to(device)
    was_training = model.training
    model.eval()
    try:
        logits = model(symbols)
        expected = [*symbols.shape, task.source.num_labels]
        if not isinstance(logits, torch.Tensor) or list(logits.shape) != expected:
            found = (
                list(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
            )
            raise SettingsError(
                f"the model gives {found} for symbols {list(symbols.shape)}, and task "
                f"'{task.name}' needs logits {expected}: one for each of its "
                f"{task.source.num_labels} labels at every position"
            )
        if not logits.isfinite().all():
            raise SettingsError(
                "the module's logits are not finite with its initial weights: look at what it "
                "divides by and exponentiates, or at how its weights are drawn"
            )
        if symbols.shape[1] > 1:
            changed = symbols.clone()
            changed[:, -1] = (changed[:, -1] + 1) % task.source.num_symbols
            before, after = logits[:, :-1], model(changed)[:, :-1]
            if not torch.allclose(before, after, rtol=1e-3, atol=1e-4):
                warnings.warn(
                    "the model is not causal: logits change with later symbols, so that its "
                    "accuracy is no evidence of state tracking (`statetrack check` gives details)",
                    StatetrackWarning,
                    stacklevel=2,
                )
    finally:
        model.train(was_training)
