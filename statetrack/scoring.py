"""Scores: counts of right answers at the last position, over all positions, and of whole words.

Models and shortcuts are scored by the same rules, so their accuracies can be compared. The
accuracy over no words is NaN, which JSON cannot represent: `plain` makes it null.

B words, T time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HORIZON_ACCURACY = 1.0
"""The accuracy that defines a horizon: every answer is right."""

NOISE = 1e-13
"""The rounding error of accuracies, and of what is computed from them."""

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for 95 % intervals."""


@dataclass(frozen=True)
class Accuracies:
    """The accuracies of the answers on some words; each a fraction between 0 and 1.

    `accuracy` is over the last scored position of each word, with its 95 % Wilson interval
    `low` to `high`; `symbol_accuracy` over all scored positions; `prefix_accuracy` is the share
    of words with every scored position right, and `first_error` the earliest position, from 1, at
    which any word is answered wrongly, None without one. `sequences` is the number of words that
    have a scored position; where it is 0, all shares are NaN.
    """

    sequences: int
    accuracy: float
    low: float
    high: float
    symbol_accuracy: float
    prefix_accuracy: float
    first_error: int | None = None


@dataclass(frozen=True)
class Score:
    """The score of one model on words of one length; accuracies are fractions between 0 and 1.

    `accuracy` is over the last scored position of each word, with its 95 % Wilson interval
    `low` to `high`; `symbol_accuracy` over all scored positions; `prefix_accuracy` is the
    share of words with every scored position right. `floor` is the accuracy of the best
    constant answer at that length (exact from an automaton, on the words themselves where they
    come from a sampler), `chance` is 1 / C; `scaled` and `scaled_to_floor` are the accuracy mapped
    linearly so that chance, or the floor, is 0 and an accuracy of 1 is 1.

    An answer is right only where all its logits are finite. `nonfinite_from` is the first position,
    counted from 1 and up to `length`, at which a logit of any word is NaN or infinite; None where
    all are finite. `first_error` is the earliest position at which any word is answered wrongly;
    None where every answer is right, and in rows of earlier versions.
    """

    length: int
    sequences: int
    accuracy: float
    low: float
    high: float
    symbol_accuracy: float
    prefix_accuracy: float
    floor: float
    chance: float
    scaled: float
    scaled_to_floor: float
    nonfinite_from: int | None = None
    first_error: int | None = None

    @property
    def all_right(self) -> bool:
        """Whether every answer at every scored position is right, and all logits are finite."""
        return self.prefix_accuracy == 1.0 and self.nonfinite_from is None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of `accuracy`: `low` and `high`."""
        return self.low, self.high


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many words have their last or every answer right, and how many answers are; they add up.

    `first_error` is the earliest position, from 1, at which any word is answered wrongly.
    """

    words: int
    last_right: int
    all_right: int
    right: int
    scored: int
    first_error: int | None

    def __add__(self, other: Counts) -> Counts:
        """Those of the words of both."""
        errors = [each for each in (self.first_error, other.first_error) if each is not None]
        return Counts(
            words=self.words + other.words,
            last_right=self.last_right + other.last_right,
            all_right=self.all_right + other.all_right,
            right=self.right + other.right,
            scored=self.scored + other.scored,
            first_error=min(errors, default=None),
        )

    def accuracies(self) -> Accuracies:
        """The same as shares."""
        low, high = wilson(self.last_right, self.words)
        return Accuracies(
            sequences=self.words,
            accuracy=ratio(self.last_right, self.words),
            low=low,
            high=high,
            symbol_accuracy=ratio(self.right, self.scored),
            prefix_accuracy=ratio(self.all_right, self.words),
            first_error=self.first_error,
        )


class Tally:
    """Counts right answers, word by word, as words are read from left to right."""

    def __init__(self, num_words: int) -> None:
        import numpy as np  # which scores alone, as a run's folder holds them, do not need

        self.num_right = np.zeros(num_words, np.int64)
        self.num_scored = np.zeros(num_words, np.int64)
        self.last_right = np.zeros(num_words, bool)
        self.first_wrong = np.zeros(num_words, np.int64)  # the position, from 1; 0: none
        self.reached = 0

    def add(self, right: NDArray[np.bool_], scored: NDArray[np.bool_]) -> None:
        """Add the next positions, [B, T]: whether each is right, and whether it is scored."""
        if not right.shape[1]:
            return
        import numpy as np

        wrong = scored & ~right
        new = np.flatnonzero(wrong.any(1) & (self.first_wrong == 0))
        self.first_wrong[new] = self.reached + wrong[new].argmax(1) + 1
        self.reached += right.shape[1]
        self.num_right += (right & scored).sum(1)
        self.num_scored += scored.sum(1)
        last = right.shape[1] - 1 - scored[:, ::-1].argmax(1)
        some = scored.any(1)
        self.last_right[some] = right[some, last[some]]

    def part(self, first: int, last: int) -> Tally:
        """A view of the words `first .. last - 1`: adding to it adds to this tally."""
        part = Tally(0)
        part.num_right = self.num_right[first:last]
        part.num_scored = self.num_scored[first:last]
        part.last_right = self.last_right[first:last]
        part.first_wrong = self.first_wrong[first:last]
        return part

    def counts(self) -> Counts:
        """What is right up to this position. Words with no scored position do not count."""
        counted = self.num_scored > 0
        wrong = self.first_wrong[self.first_wrong > 0]
        return Counts(
            words=int(counted.sum()),
            last_right=int(self.last_right[counted].sum()),
            all_right=int((self.num_right == self.num_scored)[counted].sum()),
            right=int(self.num_right.sum()),
            scored=int(self.num_scored.sum()),
            first_error=int(wrong.min()) if len(wrong) else None,
        )

    def accuracies(self) -> Accuracies:
        """The accuracies up to this position. Words with no scored position do not count."""
        return self.counts().accuracies()


@dataclass(frozen=True, kw_only=True)
class ReplicaSpread:
    """What several replicas reach together, each in one number; None where that is not known.

    `deviation` is the standard deviation of a sample, None for one replica; `least` and `best` are
    the range.
    """

    best: float | None = None
    median: float | None = None
    mean: float | None = None
    deviation: float | None = None
    least: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> ReplicaSpread:
        """The spread of the values of all replicas, of those that diverged 0."""
        if not values:
            return cls()
        import statistics  # which takes as long as all of this module, and few need

        return cls(
            best=max(values),
            median=statistics.median(values),
            mean=statistics.fmean(values),
            deviation=statistics.stdev(values) if len(values) > 1 else None,
            least=min(values),
        )


def ratio(part: int, total: int) -> float:
    """The part divided by the total; NaN where the total is 0."""
    return float(part / total) if total else float("nan")


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927, doi:10.1080/01621459.1927.10502953).

    It lies in [0, 1] and contains the share, which rounding could leave just outside.
    """
    if not total:
        return float("nan"), float("nan")
    p, z2 = float(hits / total), Z_95**2
    centre = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = Z_95 / (1 + z2 / total) * (p * (1 - p) / total + z2 / (4 * total**2)) ** 0.5
    return max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))


def tells_apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether 95 % intervals tell two shares apart, each given as hits and their total.

    The interval of the difference is made of the two score intervals (method 10 of Newcombe 1998,
    Statistics in Medicine 17, pages 873 to 890). Of shares of the same words, which models tend to
    answer wrongly together, it is wider than it need be.
    """
    low, high = sorted((one, other), key=lambda share: share[0] / share[1])
    p, q = low[0] / low[1], high[0] / high[1]
    reach = ((q - wilson(*high)[0]) ** 2 + (wilson(*low)[1] - p) ** 2) ** 0.5
    return bool(q - p > reach)


def rounded_down(value: float, digits: int = 2) -> str:
    """A finite number as text of so many decimals that is not above it, never `-0.00`.

    So `1.00` stands for 1 alone. A value up to `NOISE` below the next decimal is taken for it:
    0.29 as a difference of floating-point numbers may be 0.28999999999999998. No share of up to
    10^8 words lies that close to one of four decimals without being equal to it.
    """
    unit = 10**digits
    whole = math.floor((value + NOISE) * unit)
    if value < 1:
        whole = min(whole, unit - 1)
    return f"{whole / unit:.{digits}f}"


def rounded_up(value: float, digits: int = 2) -> str:
    """A finite number as text of so many decimals that is not below it, as `rounded_down` is."""
    unit = 10**digits
    whole = math.ceil((value - NOISE) * unit)
    if value > 0:
        whole = max(whole, 1)
    return f"{whole / unit:.{digits}f}"


def horizon_of(accuracies: Iterable[tuple[int, float]], at_least: float = HORIZON_ACCURACY) -> int:
    """The longest tested length up to which accuracy never falls below `at_least` (0: none).

    `accuracies` are pairs of a length and its accuracy, in rising order. A length without scored
    words (its accuracy is NaN) is skipped.
    """
    longest = 0
    for length, accuracy in accuracies:
        if accuracy >= at_least:
            longest = length
        elif accuracy < at_least:
            break
    return longest


def horizon(scores: Iterable[Score]) -> int:
    """The longest tested length up to which every answer at every scored position is right.

    Of several scores of one length, the worst counts; and no length counts that reaches a position
    at which any of the scores, of whatever length, has a wrong answer or logits that are not
    finite.
    """
    rising = sorted(scores, key=lambda score: (score.length, score.all_right))
    known = [place for one in rising for place in (one.first_error, one.nonfinite_from) if place]
    fails_at = min(known, default=math.inf)
    return horizon_of(
        (score.length, score.prefix_accuracy) for score in rising if score.length < fails_at
    )


def score_of(
    length: int,
    counted: Accuracies,
    floor: float,
    chance: float,
    nonfinite_from: int | None = None,
) -> Score:
    """The score of what was counted up to a length.

    `nonfinite_from` may lie beyond it: then no logits up to this length are affected.
    """
    return Score(
        length=length,
        **asdict(counted),
        floor=floor,
        chance=chance,
        scaled=rescale(counted.accuracy, chance),
        scaled_to_floor=rescale(counted.accuracy, floor),
        nonfinite_from=None
        if nonfinite_from is None or nonfinite_from > length
        else nonfinite_from,
    )


def rescale(accuracy: float, zero: float) -> float:
    """(accuracy - zero) / (1 - zero); NaN where `zero` is 1."""
    return (accuracy - zero) / (1 - zero) if zero < 1 else float("nan")


def plain(content: Any) -> Any:
    """Nested content as in strict JSON: None for NaN and infinity, lists for tuples."""
    if isinstance(content, Mapping):
        return {key: plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
