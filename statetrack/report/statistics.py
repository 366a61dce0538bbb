"""What the replicas of a run reach at one length: the selected one, and all of them together.

The replicas of a run are every seed at every learning rate. Two populations are told apart: all of
them, and the seeds at the selected learning rate, which is what papers report. A replica that
diverged counts as 0, and as one that failed: its answers would be NaN, and such answers are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from statetrack.report.entries import Entry, Over
from statetrack.runs import EvaluationRow, Outcome
from statetrack.scoring import ReplicaSpread, horizon, wilson
from statetrack.sweep import Of

Kind = Literal["accuracy", "scaled", "prefix"]
"""Accuracy at the last position, the same with chance at 0, and whole words right."""

FIELDS = {"accuracy": "accuracy", "scaled": "scaled", "prefix": "prefix_accuracy"}
"""The field of a row that holds each kind."""


@dataclass(frozen=True, kw_only=True)
class ReplicaStatistics(ReplicaSpread):
    """What some replicas reach together at one length, in one kind of accuracy.

    `replicas` counts those that diverged too, `evaluated` those that were evaluated at the length,
    `right` those with every answer right at every scored position of every word. The spread is
    known where every replica that did not diverge was evaluated: the best of some is not the best.
    """

    replicas: int
    diverged: int
    evaluated: int
    right: int

    @property
    def complete(self) -> bool:
        """Whether every replica that did not diverge was evaluated."""
        return self.replicas > 0 and self.evaluated == self.replicas - self.diverged

    @property
    def success(self) -> float | None:
        """The fraction of replicas with every answer right; None unless `complete`."""
        return self.right / self.replicas if self.complete else None

    @property
    def success_interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval of `success`; None unless `complete`."""
        return wilson(self.right, self.replicas) if self.complete else None


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The results of a run at one length.

    `selected` is the row of the replica that validation selected, None where it was not evaluated
    or all diverged. `everyone` has all replicas; `seeds` those at `lr`, the learning rate of the
    selected one.
    """

    length: int
    selected: EvaluationRow | None
    everyone: ReplicaStatistics
    seeds: ReplicaStatistics
    lr: float | None

    def over(self, which: Over) -> ReplicaStatistics:
        """All replicas, or the seeds at the selected learning rate."""
        return self.everyone if which == "all" else self.seeds

    def of(self, which: Of, kind: Kind, over: Over = "all") -> float | None:
        """A number of the table: of the selected replica, or over several."""
        if which != "selected":
            value: float | None = getattr(self.over(over), which)
            return value
        return None if self.selected is None else _finite(getattr(self.selected, FIELDS[kind]))


def statistics_at(entry: Entry, length: int, kind: Kind = "accuracy") -> Statistics:
    """The results of an entry at a length, where it may not have been evaluated."""
    rows = entry.at(length)
    chosen = next((one for one in entry.outcomes if one.replica == entry.selected), None)
    lr = None if chosen is None else chosen.lr
    same = [one for one in entry.outcomes if one.lr == lr]
    return Statistics(
        length=length,
        selected=next((row for row in rows if row.selected), None),
        everyone=_population(rows, entry.outcomes, kind),
        seeds=_population([row for row in rows if row.lr == lr], same, kind),
        lr=lr,
    )


def common_length(entries: Sequence[Entry], *, of_all_replicas: bool = False) -> int:
    """The longest length of all evaluated entries; 0 where there are none.

    Where they have no length in common, the length that most of them have, of several the longest.
    With `of_all_replicas`, only lengths count at which all trained replicas were evaluated.
    """
    lengths = [
        {
            length
            for length in entry.lengths
            if not of_all_replicas or statistics_at(entry, length).everyone.complete
        }
        for entry in entries
        if entry.rows
    ]
    every: set[int] = set().union(*lengths)
    if not every:
        return 0
    if common := set.intersection(*lengths):
        return max(common)
    return max(every, key=lambda length: (sum(length in of for of in lengths), length))


def horizon_of_entry(entry: Entry) -> int | None:
    """The longest length tested up to which the selected replica answers everything rightly.

    0: it is wrong at the shortest; None: it was not evaluated.
    """
    rows = [row for row in entry.rows if row.selected]
    return horizon(rows) if rows else None


def _population(
    rows: Sequence[EvaluationRow], outcomes: Sequence[Outcome], kind: Kind
) -> ReplicaStatistics:
    trained = {one.replica for one in outcomes if not one.diverged}
    scored = [row for row in rows if row.replica in trained]
    values = [value for row in scored if (value := _finite(getattr(row, FIELDS[kind]))) is not None]
    whole = len(scored) == len(trained) and len(values) == len(scored)
    known = [*values, *[0.0] * (len(outcomes) - len(trained))] if whole else []
    return ReplicaStatistics(
        replicas=len(outcomes),
        diverged=len(outcomes) - len(trained),
        evaluated=len(scored),
        right=sum(row.all_right for row in scored),
        **vars(ReplicaSpread.of(known)),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
