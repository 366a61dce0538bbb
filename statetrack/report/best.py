"""Which cells of a column are its best: those that no test tells from the highest, if it tells any.

Of one replica, shares of test words are compared by the interval of their difference; so is the
share of replicas that succeed. Means and medians are compared by the permutation test of the
replicas' numbers, which tells none of fewer than four apart. Lengths have no test: the longest is
the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from statetrack.report.entries import FIELDS, Entry, Kind, Measure, Over, statistics_at
from statetrack.report.table import Styled
from statetrack.scoring import tells_apart
from statetrack.sweep import Of

LEVEL = 0.05
"""The level of tests over replicas."""


@dataclass(frozen=True)
class MeasuredOn:
    """What the number of a cell was measured on: a share of so many, or a number of each replica.

    Both are empty where the number is a length.
    """

    hits: int = 0
    total: int = 0
    values: tuple[float, ...] = ()

    def differs(self, other: MeasuredOn) -> bool:
        """Whether a test tells the two numbers apart, at 95 %."""
        if self.values or other.values:
            return _means_differ(self.values, other.values)
        if not (self.total and other.total):
            return True
        return tells_apart((self.hits, self.total), (other.hits, other.total))


def sample_of(entry: Entry, measure: Measure, of: Of, over: Over, length: int) -> MeasuredOn:
    """What the number of an entry was measured on."""
    if measure in ("horizon", "worst"):
        return MeasuredOn()
    found = statistics_at(entry, length)
    those = found.over(over)
    if measure == "success":
        return MeasuredOn(those.right, those.replicas)
    kind: Kind = "prefix" if measure == "prefix" else "accuracy"
    rows = [
        row
        for row in entry.at(length)
        if math.isfinite(row.accuracy) and (over == "all" or row.lr == found.lr)
    ]
    if of in ("mean", "median"):
        gone = [0.0] * those.diverged
        return MeasuredOn(values=(*(getattr(row, FIELDS[kind]) for row in rows), *gone))
    row = max(rows, key=lambda row: row.accuracy) if of == "best" and rows else found.selected
    if row is None or not math.isfinite(row.accuracy):
        return MeasuredOn()
    return MeasuredOn(round(getattr(row, FIELDS[kind]) * row.sequences), row.sequences)


def with_best(table: Sequence[Sequence[tuple[Styled, MeasuredOn | None]]]) -> list[list[Styled]]:
    """The cells, of which the best of each column are strong; none where no test tells any apart.

    The best are the highest, and those that are not told from it.
    """
    marked = []
    for cells in zip(*table, strict=True):
        known = [each for each in cells if each[0].value is not None]
        top = max(known, key=lambda each: float(each[0].value), default=None)
        below = [each for each in known if top is not None and _below(each, top)]
        strong = [each for each in known if below and each not in below]
        marked.append([replace(cell, strong=(cell, sample) in strong) for cell, sample in cells])
    return [list(row) for row in zip(*marked, strict=True)]


def _below(one: tuple[Styled, MeasuredOn | None], top: tuple[Styled, MeasuredOn | None]) -> bool:
    lower = bool(one[0].value < top[0].value)
    return lower and one[1] is not None and top[1] is not None and one[1].differs(top[1])


def _means_differ(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the exact permutation test tells two means apart; never of fewer than four each."""
    if len(one) < 2 or len(other) < 2:
        return False
    from scipy.stats import permutation_test  # which takes a second

    found = permutation_test(
        (one, other),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        vectorized=True,
        n_resamples=20_000,
        rng=0,
    )
    return bool(found.pvalue < LEVEL)
