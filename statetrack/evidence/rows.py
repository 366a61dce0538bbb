"""What is found about a trained model, as typed values that a run's folder keeps.

Every class is one kind of evidence; its fields are plain values, so that it can be written as JSON
and read again without torch. Positions count from 1: the position of the first symbol is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One kind of evidence about one trained model; `kind` is its name in evidence.jsonl."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Failure:
    """A word that a model answers wrongly: `prefix`, then `period` again and again.

    `position` is that of the first wrong answer, after which the word may end; there the task asks
    for `label` and the model gives `answer` (None where its logits are not all finite).
    """

    prefix: tuple[int, ...]
    period: tuple[int, ...]
    position: int
    label: int
    answer: int | None

    @property
    def word(self) -> tuple[int, ...]:
        """The symbols up to the wrong answer."""
        missing = self.position - len(self.prefix)
        repeats = -(-missing // len(self.period)) if missing > 0 else 0
        return (self.prefix + self.period * repeats)[: self.position]


EVIDENCE: dict[str, type[Evidence]] = {}
"""The kinds of evidence by name."""
