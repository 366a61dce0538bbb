"""What theory says of a model on a task, before any training."""

from __future__ import annotations

from statetrack.algebra.analysing import Algebra
from statetrack.algebra.prediction import Prediction
from statetrack.algebra.recurrences import Recurrence
from statetrack.models._facts import MODEL_FACTS
from statetrack.models._settings import recurrence_of
from statetrack.settings import Settings


def predict(algebra: Algebra, model: str | Settings | Recurrence) -> Prediction:
    """Whether a model can track the task that an algebra is of, and what it takes.

    The model is given by its name, which stands for its default settings, by its settings, or by
    its class of recurrence. Raises `UnknownNameError` for a name that no model has.
    """
    if isinstance(model, str):
        model = MODEL_FACTS[model].settings_class()
    recurrence = recurrence_of(model) if isinstance(model, Settings) else model
    if recurrence is None:
        return Prediction("unknown", "the model's settings name no class of recurrence", "none")
    return recurrence.predict(algebra)
