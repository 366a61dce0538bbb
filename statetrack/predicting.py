"""What theory says of a model on a task, before any training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statetrack.algebra.analysing import Algebra, analyse
from statetrack.algebra.prediction import Prediction
from statetrack.algebra.recurrences import Recurrence
from statetrack.models._facts import MODEL_FACTS
from statetrack.models._settings import recurrence_of
from statetrack.settings import Settings
from statetrack.spec import Task

if TYPE_CHECKING:
    from torch import nn


def predict(task: Task | Algebra, model: str | Settings | Recurrence | nn.Module) -> Prediction:
    """Whether a model can track a task, and what it takes.

    The task may be given by its algebra, which is then worked out once for many models. The model
    is given by its name, which stands for its default settings, by its settings, by its class of
    recurrence, or as a module. Of a module that is none of this package's models nothing is known.

    Raises `UnknownNameError` for a name that no model has, and `TaskError` for a task without an
    automaton.
    """
    recurrence = _recurrence_of(model)
    if recurrence is None:
        return Prediction("unknown", "the model names no class of recurrence", "none")
    return recurrence.predict(task if isinstance(task, Algebra) else analyse(task.automaton))


def _recurrence_of(model: str | Settings | Recurrence | nn.Module) -> Recurrence | None:
    if isinstance(model, str):
        return MODEL_FACTS[model].recurrence
    if isinstance(model, Recurrence):
        return model
    settings = model if isinstance(model, Settings) else getattr(model, "settings", None)
    return recurrence_of(settings) if isinstance(settings, Settings) else None
