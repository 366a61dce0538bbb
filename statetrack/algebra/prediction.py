"""A prediction: whether a class of models can track a task, what it takes, and by which theorem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Prediction:
    """What theory says of one class of models on one task.

    Tracking is exact: the right label after every word, however long, in real arithmetic. Whether
    training finds such weights is another question.
    """

    can: Answer
    theorem: str
    source: str
    size: int | None = None
    """What is enough, as a value of the setting `size_of`; None where it is not known."""
    size_of: str | None = None
    """The setting that has to be large enough, such as `block_size`; None where none matters."""
    smallest: bool = False
    """Whether no smaller size does; otherwise the size is one that a construction needs."""
    robust: Answer = "unknown"
    """Whether states stay told apart for ever under small disturbances of the hidden state."""

    def answer_for(self, settings: Mapping[str, Any]) -> Answer:
        """Whether a model with given settings can track the task."""
        if self.can != "yes" or self.size_of is None or self.size_of not in settings:
            return self.can
        if self.size is None:
            return "unknown"
        if settings[self.size_of] >= self.size:
            return "yes"
        return "no" if self.smallest else "unknown"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)
