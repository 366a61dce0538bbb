"""How many numbers the state of a network has after its first word's last symbol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from statetrack.evidence.records import EVIDENCE, Evidence, Facts, Named, SearchBudget

if TYPE_CHECKING:
    from statetrack.evidence.subject import Subject


@EVIDENCE.register("width")
@dataclass(frozen=True, kw_only=True)
class StateWidth(Evidence):
    """The `numbers` that the state of one word has."""

    kind = "width"
    commands = ("probe",)
    place = 6.5
    share = 0.01

    numbers: int

    @classmethod
    def search(cls, subject: Subject, *, budget: SearchBudget, seed: int = 0, **given: Any) -> Self:
        """The numbers of the first state."""
        return cls(numbers=subject.vectors(subject.first(1)).shape[1], complete=True, seconds=0.0)

    @property
    def summary(self) -> str:
        """How many there are."""
        return f"{self.numbers:,} numbers"

    def lines(self, names: Named) -> list[Facts]:
        """One line."""
        return [Facts([("state", self.summary)])]
