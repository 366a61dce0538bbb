"""What is found about a trained model, as typed values that a run's folder keeps.

Every class is one kind of evidence; its fields are plain values, so that it can be written as JSON
and read again without torch. Positions count from 1: the position of the first symbol is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


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

    def __post_init__(self) -> None:
        if not 1 <= self.position or not (self.period or self.position <= len(self.prefix)):
            raise ValueError(f"'position': the word has no symbol {self.position}")

    @property
    def word(self) -> tuple[int, ...]:
        """The symbols up to the wrong answer."""
        missing = self.position - len(self.prefix)
        repeats = -(-missing // len(self.period)) if missing > 0 else 0
        return (self.prefix + self.period * repeats)[: self.position]


# --- certificate ---

Verdict = Literal["all lengths", "to length", "not proven"]
"""What is proven of all words: of every length, of those up to a length, or nothing."""


@dataclass(frozen=True, kw_only=True)
class Certificate(Evidence):
    """What is proven about the answers to all words that can be drawn, wherever one is asked for.

    `verdict` is about the model as it runs in its own floating-point type, with every rounding
    counted, and `verdict_real` about the same weights in exact arithmetic. Words are proven up to
    `length` (`length_real`) symbols where the verdict is "to length", else it is None. No word is
    proven to be answered wrongly: what is not proven may still hold.
    """

    kind: ClassVar[str] = "certificate"
    verdict: Verdict
    length: int | None
    verdict_real: Verdict
    length_real: int | None
    method: str
    """What the proof rests on, in a few words."""
    margin: float | None
    """The smallest distance between the logits of a right and a wrong label that is proven at the
    beginning, as a share of the largest logit difference between any two states; None without."""
    residual: float | None
    """How far one step may lead off the centres or regions of the states, at most, relative to
    their size; None where the method knows no such number."""
    growth: float | None
    """The factor by which one step may multiply a distance, at most; None without such a number."""
    reason: str
    """What ends the proof, in plain terms; empty where nothing does."""
    complete: bool
    seconds: float


def not_proven(
    reason: str, *, method: str = "none", complete: bool = True, seconds: float = 0.0
) -> Certificate:
    """A certificate of nothing, and why."""
    return Certificate(
        verdict="not proven",
        length=None,
        verdict_real="not proven",
        length_real=None,
        method=method,
        margin=None,
        residual=None,
        growth=None,
        reason=reason,
        complete=complete,
        seconds=seconds,
    )


# --- exhaustive ---


@dataclass(frozen=True, kw_only=True)
class Exhaustive(Evidence):
    """All words up to some length, through the tree of the states that a model can reach.

    Every word of at most `length` symbols is answered rightly, of those that the task draws where
    it forbids symbols (`forbids`); these are `words` in number, None where they are too many to
    count. `failure` is the shortest word with a wrong answer, the first of these in the order of
    the symbols. `states` different states were met, of the model and the automaton together; two
    are one where the automaton's are equal and no number of the model's differs, or, with a
    `tolerance`, where the model's are at most so far apart, as a share of their size.

    `closed` says that no word leads out of these states. With tolerance 0 that proves that words of
    every length are answered rightly, in the arithmetic of this model reading one word at a time,
    symbol by symbol, on this machine. With a tolerance it is a heuristic that may miss wrong words,
    and proves nothing. `reason` is what ended the search: see `ENDINGS`.
    """

    kind: ClassVar[str] = "exhaustive"

    length: int
    words: int | None
    forbids: bool
    closed: bool
    states: int
    tolerance: float
    failure: Failure | None
    reason: str
    complete: bool
    seconds: float

    @property
    def verdict(self) -> str:
        """What was found, in a few words."""
        if self.failure is not None:
            return f"fails at length {self.failure.position}"
        if self.closed:
            return "closed" if self.tolerance == 0 else "closed within tolerance"
        return f"right to length {self.length}"


ENDINGS: dict[str, str] = {
    "failure": "a word is answered wrongly",
    "closed": "no word leads to a state that was not met",
    "alone": "closed, but not confirmed for words that are read one at a time",
    "length": "the greatest length was reached",
    "states": "the most states were met, or as many of one length as there is memory for",
    "time": "the time was spent",
}
"""What ends an exhaustive search: `Exhaustive.reason`, and what it says."""


EVIDENCE: dict[str, type[Evidence]] = {
    Certificate.kind: Certificate,
    Exhaustive.kind: Exhaustive,
}
"""The kinds of evidence by name."""
