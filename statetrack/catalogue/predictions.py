"""The algebra of a task, and the predictions for models that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statetrack.algebra.analysing import Algebra
from statetrack.predicting import predict
from statetrack.settings import Settings


def describe_algebra(algebra: Algebra | None, models: Mapping[str, Settings]) -> dict[str, Any]:
    """A task's algebra and the predictions for models, as plain values; null where it has none.

    `models` are the settings of every model, by the text that is the key of its prediction.
    """
    return {
        "algebra": algebra and algebra.to_json(),
        "predictions": algebra
        and {name: predict(algebra, settings).to_json() for name, settings in models.items()},
    }
