"""Counting right answers: at the last position, over all positions, and of whole words.

Models and shortcuts are counted by the same rules, so their accuracies can be compared. An
accuracy without a word to count is not a number, which JSON has no value for: `plain` makes it
null.

B words, T time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for 95 % intervals."""


@dataclass(frozen=True)
class Accuracies:
    """How right the answers on some words are; each a share between 0 and 1.

    `accuracy` is over the last scored position of each word, with its 95 % Wilson interval
    `low` to `high`; `symbol_accuracy` over all scored positions; `prefix_accuracy` is the share
    of words with every scored position right. `sequences` is the number of words that have a
    scored position; where there is none, all others are not numbers.
    """

    sequences: int
    accuracy: float
    low: float
    high: float
    symbol_accuracy: float
    prefix_accuracy: float


class Tally:
    """Counts what was right, word by word, as words are read from left to right."""

    def __init__(self, num_words: int) -> None:
        self.num_right = np.zeros(num_words, np.int64)
        self.num_scored = np.zeros(num_words, np.int64)
        self.last_right = np.zeros(num_words, bool)

    def add(self, right: NDArray[np.bool_], scored: NDArray[np.bool_]) -> None:
        """Add the next positions, [B, T]: whether each was right, and whether it counts."""
        if not right.shape[1]:
            return
        self.num_right += (right & scored).sum(1)
        self.num_scored += scored.sum(1)
        last = right.shape[1] - 1 - scored[:, ::-1].argmax(1)
        some = scored.any(1)
        rows = np.flatnonzero(some)
        self.last_right[rows] = right[rows, last[rows]]

    def part(self, first: int, last: int) -> Tally:
        """The tally of the words `first .. last - 1` alone; what is added to it is counted here."""
        part = Tally(0)
        part.num_right = self.num_right[first:last]
        part.num_scored = self.num_scored[first:last]
        part.last_right = self.last_right[first:last]
        return part

    def accuracies(self) -> Accuracies:
        """Those of everything read so far. Words with no scored position do not count."""
        counted = self.num_scored > 0
        total = int(counted.sum())
        hits = int(self.last_right[counted].sum())
        low, high = wilson(hits, total)
        return Accuracies(
            sequences=total,
            accuracy=ratio(hits, total),
            low=low,
            high=high,
            symbol_accuracy=ratio(self.num_right.sum(), self.num_scored.sum()),
            prefix_accuracy=ratio((self.num_right == self.num_scored)[counted].sum(), total),
        )


def ratio(part: int, total: int) -> float:
    """The part's share of the total; not a number where the total is 0."""
    return float(part / total) if total else float("nan")


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
    if not total:
        return float("nan"), float("nan")
    p, z2 = hits / total, Z_95**2
    centre = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = Z_95 / (1 + z2 / total) * (p * (1 - p) / total + z2 / (4 * total**2)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def plain(content: Any) -> Any:
    """Nested content as strict JSON has it: None for NaN and infinity, lists for tuples."""
    if isinstance(content, Mapping):
        return {key: plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
