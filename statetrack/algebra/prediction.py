"""A prediction: whether a class of models can track a task, what it takes, and by which theorem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Size:
    """A setting that gives the size of a recurrence, such as `block_size`, and its value."""

    setting: str
    value: int


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
    """The value of the setting in `given` that is enough; None where it is not known."""
    given: Size | None = None
    """The setting that has to be large enough, as the model has it; None where none matters."""
    smallest: bool = False
    """Whether no smaller size does; otherwise the size is one that a construction needs."""
    robust: Answer = "unknown"
    """Whether states stay distinguishable for ever under small disturbances of the hidden state."""

    @property
    def size_of(self) -> str | None:
        """The name of the setting that has to be large enough; None where none matters."""
        return None if self.given is None else self.given.setting

    @property
    def answer(self) -> Answer:
        """Whether the model can track the task with the size that it is given."""
        if self.can != "yes" or self.given is None:
            return self.can
        if self.size is None:
            return "unknown"
        if self.given.value >= self.size:
            return "yes"
        return "no" if self.smallest else "unknown"

    def to_json(self) -> dict[str, Any]:
        """What holds whatever the size, as plain values."""
        return {
            "can": self.can,
            "theorem": self.theorem,
            "source": self.source,
            "size": self.size,
            "size_of": self.size_of,
            "smallest": self.smallest,
            "robust": self.robust,
        }
