"""A prediction: whether a class of models can track a task, what it takes, and by which theorem."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from statetrack.algebra.witness import Witness

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Need:
    """What a setting has to be at least, such as `block_size`, and what the model has."""

    setting: str
    value: int | None
    """A value that is enough; None where none is known."""
    given: int
    """The value that the model has."""
    smallest: bool = False
    """Whether no smaller value does, whatever the other settings are."""
    least: int | None = None
    """A value below which none does, whatever the other settings are; None where none is known."""

    @property
    def met(self) -> Answer:
        """Whether the value that the model has is enough."""
        if self.value is not None and self.given >= self.value:
            return "yes"
        too_few = self.least is not None and self.given < self.least
        return "no" if too_few or self.smallest else "unknown"


@dataclass(frozen=True)
class Size:
    """A setting that gives the size of a recurrence, such as `block_size`, and its value."""

    setting: str
    value: int

    def at_least(
        self, value: int | None, smallest: bool = False, *, least: int | None = None
    ) -> Need:
        """The need for a value of this setting, of which less than `least` is known not to do."""
        smallest = value is not None and (smallest or value == least)
        return Need(self.setting, value, self.value, smallest, value if smallest else least)


@dataclass(frozen=True)
class Prediction:
    """What theory says of one class of models on one task.

    Tracking is exact: on words of every length the right label is ahead of all others by a fixed
    margin, in real arithmetic, with gains anywhere in the closure of their range. Whether training
    finds such weights is another question.
    """

    can: Answer
    """Whether it can, where every setting in `needs` is as large as it has to be."""
    theorem: str
    source: str
    needs: tuple[Need, ...] = ()
    """The settings that have to be large enough, the one that counts most first."""
    robust: Answer = "unknown"
    """Whether states stay distinguishable for ever under small disturbances of the hidden state."""
    margin: float | None = None
    """By how much the right label is ahead in the construction; None where not worked out."""
    witness: Witness | None = None
    """Words that show why not; None where the answer is another one, or rests on a size.

    A size is that of a setting in `needs`, or a longest word that can be read at all.
    """

    @property
    def size(self) -> int | None:
        """The value of the first setting that is enough; None where it is not known."""
        return self.needs[0].value if self.needs else None

    @property
    def size_of(self) -> str | None:
        """The name of the first setting that has to be large enough; None where none matters."""
        return self.needs[0].setting if self.needs else None

    @property
    def smallest(self) -> bool:
        """Whether no smaller size does; otherwise the size is one that a construction needs."""
        return bool(self.needs) and self.needs[0].smallest

    @property
    def unmet(self) -> tuple[Need, ...]:
        """The settings that are smaller than they have to be, or than is known to be enough."""
        return tuple(
            need
            for need in self.needs
            if need.met == "no" or (need.value is not None and need.given < need.value)
        )

    @property
    def answer(self) -> Answer:
        """Whether the model can track the task with the settings that it has."""
        if self.can != "yes":
            return self.can
        met = {need.met for need in self.needs}
        return "no" if "no" in met else "unknown" if "unknown" in met else "yes"

    def to_json(self) -> dict[str, Any]:
        """The prediction as plain values."""
        return {
            "can": self.can,
            "suffices": self.answer,
            "theorem": self.theorem,
            "source": self.source,
            "size": self.size,
            "size_of": self.size_of,
            "smallest": self.smallest,
            "needs": [asdict(need) for need in self.needs],
            "robust": self.robust,
            "margin": self.margin,
        }
