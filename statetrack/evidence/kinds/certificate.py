"""Certificates: what is proven about the answers of a model to all words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from statetrack.evidence.records import EVIDENCE, Evidence, Verdict


@EVIDENCE.register("certificate")
@dataclass(frozen=True, kw_only=True)
class Certificate(Evidence):
    """What is proven about the answers to all words that can be drawn, wherever one is asked for.

    `verdict` is about the model as it runs in its own floating-point type, with every rounding
    counted, and `verdict_real` about the same weights in exact arithmetic. Words are proven up to
    `length` (`length_real`) symbols where the verdict is "to length", else it is None. No word is
    proven to be answered wrongly: what is not proven may still hold.
    """

    kind = "certificate"
    commands = ("certify",)
    place = 0.5
    found_by = "statetrack.evidence.certificate:find_certificate"

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

    @property
    def proves(self) -> float:
        """The length of a proof, infinity for all words."""
        if self.verdict == "not proven":
            return 0
        return math.inf if self.length is None else self.length

    @property
    def proves_real(self) -> float:
        """The length of a proof in exact arithmetic, infinity for all words."""
        if self.verdict_real == "not proven":
            return 0
        return math.inf if self.length_real is None else self.length_real

    def merged(self, later: Self) -> Self:
        """The longer proof of either kind; of equal ones the later."""
        mine, new = (self.proves, self.proves_real), (later.proves, later.proves_real)
        best, other = (self, later) if mine > new else (later, self)
        if other.proves_real <= best.proves_real:
            return best
        return replace(best, verdict_real=other.verdict_real, length_real=other.length_real)

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        parts = [f"{_proven(self.verdict, self.length)}, rounding counted"]
        if (self.verdict_real, self.length_real) != (self.verdict, self.length):
            parts.append(f"{_proven(self.verdict_real, self.length_real)} in exact arithmetic")
        if self.method != "none":
            parts.append(f"method: {self.method}")
        if self.reason:
            parts.append(self.reason)
        return "; ".join(parts)


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


def _proven(verdict: str, length: int | None) -> str:
    return verdict if length is None else f"proven {verdict} {length:,}"


def length_text(verdict: Verdict, length: int | None) -> str:
    """What is proven, in a cell of a table: `408`, `all lengths`, or `-` for nothing."""
    if verdict == "not proven":
        return "-"
    return verdict if length is None else f"{length:,}"
