"""The algebra of a task, and the predictions for models that follow from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statetrack.algebra.analysing import Algebra
from statetrack.predicting import predict


def describe_algebra(algebra: Algebra | None, models: Iterable[str]) -> dict[str, Any]:
    """A task's algebra and the predictions for models, as plain values; null where it has none."""
    return {
        "algebra": algebra and algebra.to_json(),
        "predictions": algebra and {name: predict(algebra, name).to_json() for name in models},
    }
