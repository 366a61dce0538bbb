"""Records of each task: what does it with the fewest dimensions, on the fewest words, the fastest.

Only entries count whose selected replica is right on every test word at the length of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from statetrack.report.html.places import Place

TIED = 3
"""The most entries of one record that are named."""


@dataclass(frozen=True)
class Record:
    """The best value of one kind in a column, and the places that have it."""

    value: str
    places: tuple[Place, ...]
    more: int


@dataclass(frozen=True)
class Records:
    """The records of a column; None where no entry that is right has such a number."""

    column: str
    right: int
    dimensions: Record | None
    words: Record | None
    seconds: Record | None


def records_of(column: str, places: Sequence[Place]) -> Records:
    """The records among the places of a column."""
    right = [place for place in places if place.reached == "right"]
    return Records(
        column,
        len(right),
        dimensions=_least(right, lambda place: place.entry.dimensions, "{:,}"),
        words=_least(right, lambda place: place.entry.words or None, "{:,}"),
        seconds=_least(right, lambda place: place.entry.seconds or None, "{:,.1f} s"),
    )


def _least(
    places: Sequence[Place], number: Callable[[Place], float | None], text: str
) -> Record | None:
    """The least number, and who has it."""
    known = [(value, place) for place in places if (value := number(place)) is not None]
    if not known:
        return None
    least = min(value for value, _ in known)
    have = [place for value, place in known if value == least]
    return Record(text.format(least), tuple(have[:TIED]), len(have) - len(have[:TIED]))
