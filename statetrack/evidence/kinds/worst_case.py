"""The worst case: the earliest wrong answer to any word that was tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from statetrack.evidence.records import (
    EVIDENCE,
    SYMBOLS_SHOWN,
    Evidence,
    Facts,
    Failure,
    Named,
    failure_text,
    number_of,
    word_text,
)

NONE_FAILS, NONE_TRIED = "fails: none of the words that were tried", "fails: no word was tried"
"""What is said where no word is known that fails."""


@dataclass(frozen=True)
class Family:
    """Words of one kind that were tried: how many, and how far the longest was read.

    `settled` of them came back to a state that they had been in, so that they are right at every
    length. `first_error` is the earliest position of a wrong answer, None where there was none:
    then, or up to there, all of them are right. `failure` is that word, where the model also fails
    on it alone, and `predicted` where a linear model is predicted to.
    """

    name: str
    words: int
    longest: int
    settled: int
    first_error: int | None
    failure: Failure | None = None
    predicted: int | None = None


@dataclass(frozen=True)
class Expected:
    """A word that a linear model is predicted to answer wrongly at a position, and was not read.

    The prediction is that of eigenvalues in exact arithmetic, of `prefix`, then `period` again and
    again, with a `suffix` in the place of the last symbols; reading so far takes `work` seconds.
    """

    prefix: tuple[int, ...]
    period: tuple[int, ...]
    suffix: tuple[int, ...]
    position: int
    work: float

    @property
    def summary(self) -> str:
        """Where it should fail, and what reading it takes."""
        return (
            f"a power of a word is predicted to fail at {self.position:,} in exact arithmetic "
            f"(to read it takes --seconds {4 * self.work:,.0f})"
        )


@EVIDENCE.register("worst-case")
@dataclass(frozen=True, kw_only=True)
class WorstCase(Evidence):
    """The earliest wrong answer that was found to any word, and what was tried.

    `horizon` is the length up to which every word tried is right: `tested`, the length of the
    longest, where no wrong answer was found. Words not tried may be wrong earlier. `failure` fails
    earliest, and is of a `family`. `predicted` is the position at which it should fail by the
    eigenvalues of a linear model, in float64 arithmetic; None where nothing is predicted.
    `position_float64` is that at which the model fails on it in float64; None where it does not,
    up to the end of a word with a suffix, or up to `longest`, the greatest length asked for.
    `drawable_only` says that no word was tried that the task does not draw. `beyond` is the length
    up to which every word was known to be right, so that longer ones were sought. `expected` is the
    word that is predicted to fail first of those that were too long to be read.
    """

    kind = "worst-case"
    commands = ("certify",)
    place = 2.0
    found_by = "statetrack.evidence.worst_words:find_worst_case"

    horizon: int
    tested: int
    longest: int
    failure: Failure | None
    family: str | None
    predicted: int | None
    position_float64: int | None
    families: tuple[Family, ...]
    drawable_only: bool
    seed: int
    beyond: int = 0
    expected: Expected | None = None

    @property
    def tried(self) -> bool:
        """Whether any word was read."""
        return self.tested > 0

    def merged(self, later: Self) -> Self:
        """The one with the earlier failure; without any, the one that tried longer words."""
        if self.failure is None and later.failure is None and self.tested > later.tested:
            return self
        return super().merged(later)

    @property
    def words(self) -> int:
        """How many words were tried."""
        return sum(family.words for family in self.families)

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        if not self.tried:
            return f"no word was read{self.cut_by}"
        tried = f"{self.words:,} words of up to {number_of(self.tested, 'symbol')} were tried"
        tried += self.cut_by
        if self.failure is None:
            later = "" if self.expected is None else f"; {self.expected.summary}"
            return f"{tried}: none fails{later}"
        parts = [f"{tried}: the earliest failure is at symbol {self.failure.position:,}"]
        if self.predicted is not None:
            parts.append(f"predicted from eigenvalues at {self.predicted:,}")
        where = self.position_float64
        parts.append("right in float64" if where is None else f"in float64 at {where:,}")
        return "; ".join(parts)

    def beside(self, random_horizon: int, names: Named) -> list[str]:
        """Up to which length all words tried are right, and the one that fails first.

        Beside it stands up to which length random words are.
        """
        lines = [
            f"worst-case horizon: {self.horizon:,} (random words: {random_horizon:,}), "
            f"over {self.words:,} words tried{self.cut_by}"
        ]
        if self.failure is None:
            return [*lines, NONE_FAILS if self.words else NONE_TRIED]
        lines.append(f"fails: {failure_text(self.failure, names.symbols, names.labels)}")
        exact = self.position_float64
        where = [] if self.predicted is None else [f"predicted at {self.predicted:,}"]
        unknown = "right in float64" if self.complete else "in float64 no wrong answer in the time"
        where.append(unknown if exact is None else f"in float64 at {exact:,}")
        return [*lines, "; ".join(where)]

    def families_tried(self, names: Named) -> Facts:
        """Which words were tried, and how far they were read."""
        rows = []
        for family in self.families:
            said = f"{family.words:,}, read to {number_of(family.longest, 'symbol')}"
            if family.settled:
                said += f"; {family.settled:,} come back to a state, so are right at every length"
            if family.first_error is not None:
                said += f"; fails at {family.first_error:,}"
                if family.failure is not None and len(family.failure.prefix) <= SYMBOLS_SHOWN:
                    said += f" of {word_text(family.failure, names.symbols)}"
                if family.predicted is not None:
                    said += f", predicted at {family.predicted:,}"
            rows.append((family.name, said))
        return Facts(rows)
