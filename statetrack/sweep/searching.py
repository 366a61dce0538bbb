"""What a suite looks for beyond accuracies, and for how long; torch is not imported here."""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.evidence import Certificate, ErrorControl, Exhaustive, Extraction, WorstCase
from statetrack.sweep.results import PointResult

KINDS = (
    WorstCase.kind,
    Exhaustive.kind,
    Extraction.kind,
    Certificate.kind,
    ErrorControl.kind,
)
"""The kinds of evidence that can be looked for, in the order in which they are."""


@dataclass(frozen=True)
class Searching:
    """The seconds for the worst word of each cell, and for every other kind; 0: not looked for."""

    worst: float = 0.0
    others: float = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds for each kind that is looked for."""
        given = {kind: self.worst if kind == WorstCase.kind else self.others for kind in KINDS}
        return {kind: seconds for kind, seconds in given.items() if seconds}

    def missing(self, result: PointResult) -> dict[str, float]:
        """The seconds for each kind that a result lacks, or has of a shorter search."""
        return {
            kind: seconds
            for kind, seconds in self.seconds.items()
            if result.searched.get(kind, 0.0) < seconds and not _is_complete(result, kind)
        }


NO_SEARCH = Searching()
"""Accuracies are enough."""


def _is_complete(result: PointResult, kind: str) -> bool:
    """Whether a search came to its end, so that more time would change nothing."""
    return any(each.kind == kind and each.complete for each in result.evidence)
