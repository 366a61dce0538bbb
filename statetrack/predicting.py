"""Predictions from theory for a model on a task, and of its words, before any training."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from statetrack.algebra import (
    Algebra,
    Identification,
    Machine,
    Prediction,
    Recurrence,
    analyse,
    identification,
)
from statetrack.errors import SettingsError
from statetrack.models import MODEL_FACTS, MODELS, recurrence_of
from statetrack.settings import Settings, build
from statetrack.sources import Automaton
from statetrack.spec import TASKS, Task, WordSpec, load_task

if TYPE_CHECKING:
    from torch import nn


@runtime_checkable
class Configured(Protocol):
    """A model that was built from settings, as every `SequenceModel` is."""

    settings: Settings


def predict(
    task: Task | str | Path | Algebra,
    model: str | Settings | Recurrence | nn.Module,
    **settings: Any,
) -> Prediction:
    """Whether a model can track a task, and which size it needs.

    The model is given by its name, with `settings` where they are not the defaults, by its
    settings, by its class of recurrence, or as a module: one that has no settings with a class of
    recurrence gets the answer `unknown`. `task` can be its name, or its algebra, which `analyse`
    computes.

    Raises `UnknownNameError` for a name that no model has, `SettingsError` for a setting that it
    does not have, and `TaskError` for a task without an automaton.
    """
    if isinstance(model, type):
        raise SettingsError(
            f"predict: {model.__name__} is a class: give its name, its settings, or a module of it"
        )
    if isinstance(task, str) and task in MODELS and task not in TASKS:
        raise SettingsError(f"predict: {task} is a model: the task comes first, then the model")
    algebra = task if isinstance(task, Algebra) else algebra_of(load_task(task).automaton)
    if isinstance(model, str):
        model = build(MODEL_FACTS[model].settings_class, settings, model)
    elif settings:
        raise SettingsError("predict: settings belong to a model that is given by its name")
    if isinstance(model, Configured):
        model = model.settings
    recurrence = recurrence_of(model) if isinstance(model, Settings) else model
    if not isinstance(recurrence, Recurrence):
        return Prediction("unknown", "the model names no class of recurrence", "")
    return recurrence.predict(algebra)


def identification_by(words: WordSpec, machine: Machine) -> Identification:
    """How long words are that identify a machine, with labels where such words have them."""
    return identification(machine, 1 if words.supervision == "every" else words.lengths.shortest)


@lru_cache(maxsize=8)
def algebra_of(automaton: Automaton) -> Algebra:
    """The algebra of an automaton; of the last few it is kept."""
    return analyse(automaton)
