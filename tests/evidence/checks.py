"""The outcome of an attack: how often it was made, and where it succeeded."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Check:
    """One claim, the number of cases in which it was attacked, and those in which it is wrong."""

    claim: str
    cases: int = 0
    broken: list[str] = field(default_factory=list)
    noted: dict[str, float] = field(default_factory=dict)

    def case(self, holds: bool, detail: str) -> None:
        """Count a case, and keep its description where the claim does not hold."""
        self.cases += 1
        if not holds:
            self.broken.append(detail)

    def note(self, name: str, value: float) -> None:
        """Keep the greatest of the values of one name."""
        self.noted[name] = max(value, self.noted.get(name, value))

    def add(self, name: str, value: float = 1) -> None:
        """Add to the count of one name."""
        self.noted[name] = self.noted.get(name, 0) + value
