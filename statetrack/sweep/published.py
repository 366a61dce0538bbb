"""Published numbers, and the verdict on each: whether what was measured agrees with it.

torch is not imported here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from statetrack.settings import Line, LineOrEmpty, Settings, option

Trust = Literal["primary", "second-hand", "figure"]
"""Where a number was read: in the paper or its authors' data; in a digest; off a figure."""

Measure = Literal["accuracy", "scaled", "prefixes", "horizon", "success"]

Of = Literal["selected", "best", "median", "mean"]
"""Of which replicas: the one that validation selects, or a statistic over all of them."""


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
    lengths: tuple[int, ...] = option(
        (), "The lengths whose mean it is; by default the suite's length."
    )
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
    values: dict[str, dict[str, float]] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One published number beside what was measured.

    `measured` is None where nothing was; `why` names the difference of protocol, or of numbers.
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
    verdict: Literal["agrees", "differs", "not comparable"]
    why: str

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return dict(vars(self))
