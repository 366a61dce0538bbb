"""Training one module on a task, in memory; and what is checked of a module before.

B batch, T time, C labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from statetrack.errors import WHERE_NOT_FINITE, SettingsError, StatetrackWarning
from statetrack.models import SequenceModel, reading, require_logits, require_module
from statetrack.ops import choose_device, in_threads
from statetrack.settings import build
from statetrack.spec import Task, load_task
from statetrack.training.keywords import TrainingKeywords
from statetrack.training.losses import require_smoothing
from statetrack.training.memory import require_memory
from statetrack.training.pending import Pending
from statetrack.training.population import Population
from statetrack.training.records import Record, replicas_of
from statetrack.training.settings import DataSettings, TrainSettings
from statetrack.training.trainer import Trainer
from statetrack.training.words import TaskWords

OF_RUNS = ("checkpoint_every",)
"""Settings that have no meaning for one module in memory."""

UNUSED = (
    "train: nothing was trained, since a step is taken as the iterator asks for records: loop over "
    "it, or call statetrack.fit, which trains to the end"
)


@dataclass(frozen=True)
class Fit:
    """What `fit` did: `steps` of training, and the best validation, whose weights the module has.

    `records` are those that `train` yields. `best_step` is 0 and the validation None where training
    diverged, `diverged_at` the first step whose loss was not finite (0: none). `stopped` says why
    training ended early, and is empty where it did not.
    """

    steps: int
    best_step: int
    validation_accuracy: float | None
    validation_loss: float | None
    stopped: str
    diverged_at: int
    records: tuple[Record, ...] = field(repr=False)


def fit(model: nn.Module, task: Task | str | Path, **settings: Unpack[TrainingKeywords]) -> Fit:
    """Train any module from symbols [B, T] to logits [B, T, C], in place, to the end.

    `task` is a task or its name. `settings` are those of `DataSettings` and `TrainSettings`, with
    one seed and one learning rate (`lrs=0.01`); defaults are the model's `training_defaults`, if it
    has any, and then those of the classes. `device` is by default that of the module's first
    parameter; `threads` are those of the CPU, by default one for a module of less than a million
    weights, as in runs. At the end the module has the weights that were best on the validation
    words, which have the training lengths. torch's global generator is seeded with `seed`.

    Raises `SettingsError` for what is no module, for a setting that does not exist, or that belongs
    to a run (`statetrack.Run`), where the words surely need more memory than is free, where the
    module cannot read the task's symbols, and where the logits are not [B, T, C]; warns where the
    module is not causal, and where training diverged: it then has its initial weights again.
    """
    trainer, items = _begun(model, task, dict(settings), "fit")
    records = tuple(items)
    progress = trainer.progress[0]
    return Fit(
        steps=trainer.step,
        best_step=progress.best_step,
        validation_accuracy=progress.best_accuracy if progress.best_step else None,
        validation_loss=progress.best_loss if progress.best_step else None,
        stopped=progress.stopped,
        diverged_at=progress.diverged_at,
        records=records,
    )


def train(
    model: nn.Module, task: Task | str | Path, **settings: Unpack[TrainingKeywords]
) -> Iterator[Record]:
    """Train as `fit` does, step by step: an iterator of records, which trains as it is iterated.

    Arguments and errors are those of `fit`. Once the iterator ends, or is closed, the module has
    the weights that were best on the validation words. Warns where it is dropped before its first
    record: nothing was trained then.
    """
    _, items = _begun(model, task, dict(settings), "train")
    return Pending(items, UNUSED)


def _begun(
    model: nn.Module, task: Task | str | Path, settings: dict[str, Any], where: str
) -> tuple[Trainer, Iterator[Record]]:
    """What trains a module, at its start, and its records; nothing of the module has changed."""
    model = require_module(model, where)
    for name in OF_RUNS:
        if name in settings:
            raise SettingsError(f"{where}: '{name}' is a setting of runs: use statetrack.Run")
    own = model.training_defaults if isinstance(model, SequenceModel) else {}
    values = {**own, **settings}
    words = {key: values.pop(key) for key in DataSettings.model_fields if key in values}
    training = build(TrainSettings, values, where)
    if "label_smoothing" in settings:
        require_smoothing(training)
    if training.seeds != 1 or len(training.lrs) != 1:
        raise SettingsError(
            f"{where}: one module has one seed and one learning rate: for more, use statetrack.Run"
        )
    parameters = list(model.parameters())
    if not parameters:
        raise SettingsError(
            f"{where}: {type(model).__name__} has no parameters, so there is nothing to train"
        )
    if isinstance(model, torch.jit.ScriptModule):
        raise SettingsError(
            f"{where}: a module of torch.jit cannot be trained: give the module that it was made of"
        )
    device = choose_device(training.device) if "device" in settings else parameters[0].device
    drawn = TaskWords(load_task(task), build(DataSettings, words, where), training)
    require_memory(lambda: model, drawn, device)
    try:
        check_logits(model.to(device), drawn.task, device)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as problem:
        why = " ".join(str(problem).split())
        raise SettingsError(
            f"{where}: {type(model).__name__} cannot read symbols [B, T] of int64: {why}"
        ) from problem
    population = Population(lambda: model, replicas_of([training.seed], training.lrs), device)
    trainer = Trainer(population, *drawn.on(device), training, device)
    num_weights = sum(parameter.numel() for parameter in parameters)
    return trainer, in_threads(_records(model, trainer), training.threads, num_weights)


def _records(model: nn.Module, trainer: Trainer) -> Iterator[Record]:
    """The records of training, at the end of which the module has the best weights."""
    was_training = model.training
    torch.manual_seed(trainer.settings.seed)
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
                if 0 in value.stride():  # expanded: several of its numbers are one in memory
                    value.data = value.contiguous()
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

    Raises `SettingsError` unless the model reads all symbols, and the logits are [B, T, C] and
    finite. Warns with
    `StatetrackWarning` where logits depend on later symbols: accuracy is then no evidence of state
    tracking.
    """
    words = task.sample(NUM_WORDS, length=min(LONGEST, task.source.longest_word))
    symbols = words.to_torch().symbols.to(device)
    num_symbols, num_labels = task.source.num_symbols, task.source.num_labels
    was_training = model.training
    model.eval()
    try:
        with reading(model, num_symbols):
            model(torch.full_like(symbols[:, :1], num_symbols - 1))
            logits = require_logits(model(symbols), symbols.shape, num_labels)
        if not logits.isfinite().all():
            raise SettingsError(
                f"the module's logits are not finite with its initial weights: {WHERE_NOT_FINITE}"
            )
        warn_of_later_symbols(model, symbols, num_symbols, num_labels)
    finally:
        model.train(was_training)


@torch.no_grad()
def warn_of_later_symbols(
    model: nn.Module, symbols: Tensor, num_symbols: int, num_labels: int
) -> None:
    """Warn with `StatetrackWarning` where logits before the last symbol of words change with it.

    They may change with which symbol it is, or with whether there is one. `symbols` [B, T] are
    below `num_symbols`. Logits that are not finite show nothing of it; raises `SettingsError` for
    what is no logits [B, T, C].
    """
    if symbols.shape[1] < 2:
        return
    changed = symbols.clone()
    changed[:, -1] = (changed[:, -1] + 1) % num_symbols
    others = {"later symbols": changed, "the number of later symbols": symbols[:, :-1]}
    with reading(model, num_symbols):
        before = require_logits(model(symbols), symbols.shape, num_labels)[:, :-1]
        for what, words in others.items():
            after = require_logits(model(words), words.shape, num_labels)[:, : before.shape[1]]
            finite = before.isfinite() & after.isfinite()
            if not torch.allclose(before[finite], after[finite], rtol=1e-3, atol=1e-4):
                warnings.warn(
                    f"the model is not causal: logits change with {what}, so that its accuracy is "
                    "no evidence of state tracking (`statetrack check` gives details)",
                    StatetrackWarning,
                    stacklevel=3,
                )
                return
