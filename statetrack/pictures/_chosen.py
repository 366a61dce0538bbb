"""What figures show of a report: which runs, at which length, which of their replicas."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from statetrack.errors import SettingsError
from statetrack.report import Entry, Report
from statetrack.runs import EvaluationRow
from statetrack.scoring import wilson

Of = Literal["selected", "median"]
"""What a figure shows of several replicas: the one that validation selected, or their median."""

Measure = Literal["accuracy", "scaled", "prefix", "success"]
"""What can be drawn; reports know horizons too, which are no shares."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is to be drawn of a report.

    `length` is by default that of the report. `axis` is the setting along which data efficiency is
    drawn. `published` writes published numbers into heat maps.
    """

    of: Of = "selected"
    length: int | None = None
    axis: str | None = None
    measure: Measure | None = None
    published: bool = False


class Point(NamedTuple):
    """A value with the interval about it."""

    value: float
    low: float
    high: float


def shown_entries(report: Report) -> list[Entry]:
    """The entries with scores.

    Raises `SettingsError` where there are none.
    """
    found = [entry for entry in report.entries if entry.rows]
    if not found:
        states = Counter(entry.state for entry in report.entries)
        said = ", ".join(f"{number} {state}" for state, number in states.items()) or "no run"
        raise SettingsError(
            f"nothing to draw: of {report.title} no run was evaluated ({said}): `statetrack "
            f"{f'reproduce {report.suite}' if report.suite else 'eval RUN'}` does that"
        )
    return found


def entries_at(report: Report, choice: Choice) -> tuple[int, list[Entry]]:
    """The length to show, and the entries that were evaluated there.

    Raises `SettingsError` where there are none.
    """
    found = shown_entries(report)
    length = choice.length or report.length
    there = [entry for entry in found if entry.at(length)]
    if not there:
        every = sorted({each for entry in found for each in entry.lengths})
        known = ", ".join(f"{each:,}" for each in every[:8]) + (", ..." if len(every) > 8 else "")
        raise SettingsError(
            f"nothing to draw: no run was evaluated at length {length:,}; there are {known}"
        )
    return length, there


def measure_of(report: Report, choice: Choice) -> Measure:
    """What is to be drawn: what was asked for, else the report's measure, else accuracy."""
    if choice.measure is not None:
        return choice.measure
    known = {"scaled": "scaled", "prefix": "prefix", "success": "success"}
    return cast(Measure, known.get(report.measure, "accuracy"))


def seeds_of(entry: Entry, rows: Sequence[EvaluationRow]) -> list[EvaluationRow]:
    """Of rows at one length, those with the learning rate of the selected replica.

    Validation selected it, on words of the training lengths.
    """
    rates = {row.lr for row in entry.rows if row.selected}
    return [row for row in rows if row.lr in rates] if rates else list(rows)


def point_at(entry: Entry, length: int, of: Of, measure: Measure = "accuracy") -> Point | None:
    """What an entry reached at a length; None where nothing is known of it.

    Of the selected replica, with its 95 % Wilson interval; of the seeds at its learning rate the
    median, with their range; the share of replicas right on every word, with its Wilson interval.
    """
    rows = entry.at(length)
    if measure == "success":
        return None if not rows else Point(*_success(entry, rows))
    if of == "selected":
        row = next((row for row in rows if row.selected), None)
        return None if row is None else _scored(row, measure)
    values = [_scored(row, measure).value for row in seeds_of(entry, rows)]
    return Point(statistics.median(values), min(values), max(values)) if values else None


def _scored(row: EvaluationRow, measure: Measure) -> Point:
    if measure == "scaled" and row.chance < 1:
        values = [(v - row.chance) / (1 - row.chance) for v in (row.accuracy, row.low, row.high)]
        return Point(*values)
    if measure == "prefix":
        right = round(row.prefix_accuracy * row.sequences)
        return Point(row.prefix_accuracy, *wilson(right, row.sequences))
    return Point(row.accuracy, row.low, row.high)


def num_right(entry: Entry, length: int) -> tuple[int, int]:
    """How many replicas are right on every word of a length, of how many."""
    rows = entry.at(length)
    return sum(row.all_right for row in rows), max(entry.replicas, len(rows))


def _success(entry: Entry, rows: Sequence[EvaluationRow]) -> tuple[float, float, float]:
    right, of = num_right(entry, rows[0].length)
    low, high = wilson(right, of)
    return right / of, low, high


def said_of(of: Of) -> str:
    """What lines and their bands are, for captions."""
    if of == "selected":
        return "the replica that validation selected, with its 95 % interval (Wilson)"
    return "the median over seeds at the selected learning rate, with their range"


BANDS: dict[Of, str] = {"selected": "95 % interval", "median": "range over seeds"}


def said_of_words(entries: Sequence[Entry], lengths: Sequence[int] = ()) -> str:
    """How many words the scores are over, in words."""
    wanted = set(lengths)
    rows = [row for entry in entries for row in entry.rows]
    words = {row.sequences for row in rows if not wanted or row.length in wanted}
    low, high = min(words), max(words)
    return f"{high:,} words" if low == high else f"{low:,} to {high:,} words"


def said_of_seeds(entries: Sequence[Entry]) -> str:
    """How many seeds and learning rates the runs have."""
    seeds, rates = set(), set()
    for entry in entries:
        replicas = entry.outcomes or entry.rows
        seeds.add(len({each.seed for each in replicas}))
        rates.add(len({each.lr for each in replicas}))
    return f"{_range(seeds, 'seed')} and {_range(rates, 'learning rate')} per run"


def _range(numbers: set[int], what: str) -> str:
    low, high = min(numbers), max(numbers)
    said = f"{high}" if low == high else f"{low} to {high}"
    return f"{said} {what}" + ("" if high == 1 else "s")


def said_of_missing(report: Report, shown: Sequence[Entry]) -> tuple[str, ...]:
    """What is not drawn, in words; empty where all is."""
    missing = [entry for entry in report.entries if not any(entry is other for other in shown)]
    if not missing:
        said: tuple[str, ...] = ()
    else:
        states = Counter(
            "finished, without such scores" if entry.state == "finished" else entry.state
            for entry in missing
        )
        named = "; ".join(f"{number} {state}" for state, number in states.items())
        said = (f"not drawn: {len(missing)} of {len(report.entries)} runs ({named})",)
    partly = [entry for entry in shown if entry.state == "unfinished"]
    if partly:
        said += (f"{len(partly)} of the runs drawn have not finished training",)
    return said


def names_of(report: Report, entries: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """The rows and the columns of entries, in the order of the report."""
    rows, columns = {entry.row for entry in entries}, {entry.column for entry in entries}
    ordered = [name for name in report.row_names if name in rows]
    beside = [name for name in report.column_names if name in columns]
    return (
        ordered + sorted(rows - set(ordered)),
        beside + sorted(columns - set(beside)),
    )
