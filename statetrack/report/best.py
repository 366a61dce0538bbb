"""Which cells of a column are its best: those that no test tells from the highest, if it tells any.

Of one replica, shares of test words are compared by the interval of their difference; so is the
share of replicas that succeed. Means and medians are compared by the permutation test of the means
of the replicas' numbers, which tells none of fewer than four apart; where a median is lower and the
mean is not, it does not say that the median is. Lengths have no test: the longest is the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import fmean

from statetrack.report.entries import FIELDS, Entry, Measure, Over, statistics_at
from statetrack.report.table import Styled
from statetrack.scoring import tells_apart
from statetrack.sweep import Of

LEVEL = 0.05
"""The level of tests over replicas."""

RESAMPLES = 20_000
"""The most ways to divide replicas that a permutation test goes through."""


@dataclass(frozen=True)
class MeasuredOn:
    """What the number of a cell was measured on: a share of so many, or a number of each replica.

    Both are empty where the number is a length.
    """

    hits: int = 0
    total: int = 0
    values: tuple[float, ...] = ()

    def is_below(self, other: MeasuredOn) -> bool:
        """Whether a test tells the number from another one, which is higher, at 95 %."""
        if self.values or other.values:
            return _mean_is_below(self.values, other.values)
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
    share_of = attrgetter(FIELDS["prefix" if measure == "prefix" else "accuracy"])
    rows = [
        row
        for row in entry.at(length)
        if math.isfinite(row.accuracy) and (over == "all" or row.lr == found.lr)
    ]
    if of in ("mean", "median"):
        gone = [0.0] * those.diverged
        return MeasuredOn(values=(*map(share_of, rows), *gone))
    row = max(rows, key=share_of) if of == "best" and rows else found.selected
    if row is None or not math.isfinite(row.accuracy):
        return MeasuredOn()
    return MeasuredOn(round(share_of(row) * row.sequences), row.sequences)


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
    return lower and one[1] is not None and top[1] is not None and one[1].is_below(top[1])


def _mean_is_below(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the permutation test tells a mean from a higher one; never of fewer than four each.

    The test is exact where there are at most `RESAMPLES` ways to divide the numbers.
    """
    if len(one) < 2 or len(other) < 2 or fmean(one) >= fmean(other):
        return False
    from scipy.stats import permutation_test  # which takes a second

    found = permutation_test(
        (one, other),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=0,
    )
    return bool(found.pvalue < LEVEL)
