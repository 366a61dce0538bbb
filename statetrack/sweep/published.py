"""Published numbers: a table of them in a suite's file, and one of them beside what was measured.

torch and NumPy are not imported here: suites are listed and described without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from statetrack.settings import Line, LineOrEmpty, Settings, option
from statetrack.sweep.lengths import Lengths

Trust = Literal["primary", "second-hand", "figure"]
"""Where a number was read: in the paper or its authors' data; in a digest; off a figure."""

Measure = Literal["accuracy", "scaled", "prefixes", "horizon", "success"]

Of = Literal["selected", "best", "median", "mean"]
"""Of which replicas: the one that validation selects, or a statistic over all of them."""

Verdict = Literal["agrees", "differs", "not comparable"]

VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "not comparable")


class PublishedTable(Settings):
    """A table of published numbers: what they are, where they stand, and what differs here."""

    source: Line = option(..., "The table, figure or section, such as `Table 3`.")
    reference: LineOrEmpty = option("", "The paper; by default the suite's.")
    trust: Trust = option(
        "primary",
        "`primary`: read in the paper or in its authors' own data; `second-hand`: in a digest of "
        "it; `figure`: read off a figure.",
    )
    measure: Measure = option(
        "scaled",
        "Accuracy at the last position, raw or with chance at 0; the fraction of words right at "
        "every position (`prefixes`); the longest length with an accuracy of `threshold` "
        "(`horizon`); the fraction of replicas right on every word (`success`).",
    )
    of: Of = option("selected", "Of which of our replicas the number is compared.")
    lengths: Lengths = option((), "The lengths whose mean it is; by default the suite's length.")
    threshold: float = option(0.9, "The accuracy that `horizon` asks for.", above=0, max=1)
    within: float = option(
        0.05,
        "Up to which difference two accuracies agree; of a horizon the same share of it.",
        above=0,
        max=1,
    )
    unlike: LineOrEmpty = option(
        "", "What makes these numbers not comparable whatever is measured, in one line."
    )
    note: LineOrEmpty = option(
        "", "What else is to be known about these numbers; it stands beside every verdict."
    )
    values: dict[str, dict[str, float]] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One published number beside what was measured.

    `measured` is None where nothing was; `why` names the difference of protocol, or of numbers.
    `right` of `replicas` answered every test word rightly at every position.
    """

    row: str
    column: str
    source: str
    reference: str
    trust: Trust
    measure: Measure
    of: Of
    lengths: tuple[int, ...]
    published: float
    measured: float | None
    verdict: Verdict
    why: str
    right: int = 0
    replicas: int = 0

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return dict(vars(self))


def counts(compared: Iterable[Compared]) -> dict[Verdict, int]:
    """How many published numbers have each verdict."""
    given = [each.verdict for each in compared]
    return {verdict: given.count(verdict) for verdict in VERDICTS}
