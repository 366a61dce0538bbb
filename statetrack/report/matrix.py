"""The table of a report: a cell for each row and column, what it says, and what must be said of it.

Terminal, Markdown and LaTeX draw the same cells. Numbers are rounded down, as everywhere.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from statetrack.errors import SettingsError
from statetrack.report.drawing import share
from statetrack.report.entries import Entry, Measure, Over, Report
from statetrack.report.naming import short_names
from statetrack.report.statistics import (
    Kind,
    Population,
    common_length,
    horizon_of_entry,
    statistics_at,
)
from statetrack.report.verdicts import summary
from statetrack.scoring import rounded_up
from statetrack.sweep import Of

KINDS: dict[Measure, Kind] = {"accuracy": "accuracy", "scaled": "scaled", "prefix": "prefix"}
"""The measures that are shares of words, and so have statistics over replicas."""

OF_SELECTED: tuple[Measure, ...] = ("horizon", "worst")
"""The measures that are known of the selected replica alone."""

MISSING = "-"
"""Stands where there is no number."""

NAMED = 4
"""The most runs that one note names."""

SINGLE = 20
"""The most notes about single runs."""


@dataclass(frozen=True)
class Cell:
    """A place of the table: its number as text, and how many replicas are right on every word.

    `value` is the number itself, None where there is none; then the text says why.
    """

    text: str
    value: float | None = None
    right: str = ""
    best: bool = False


@dataclass(frozen=True)
class Matrix:
    """The table of a report; `cells` are by row and column, and `floors` by column.

    `caption` says what the numbers are, and `notes` what is missing and why.
    """

    title: str
    caption: str
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    floors: tuple[str, ...]
    notes: tuple[str, ...]

    def transposed(self) -> Matrix:
        """The same with tasks as rows and models as columns; floors are the last column."""
        cells = [list(column) for column in zip(*self.cells, strict=True)]
        names = self.row_names
        if self.floors:
            names = (*names, "floor")
            for row, floor in zip(cells, self.floors, strict=True):
                row.append(Cell(floor))
        return replace(
            self,
            row_names=self.column_names,
            column_names=names,
            cells=tuple(map(tuple, cells)),
            floors=(),
        )


def matrix_of(
    report: Report,
    *,
    measure: Measure | None = None,
    of: Of | None = None,
    over: Over = "all",
    length: int | None = None,
) -> Matrix:
    """The table of a report, by default of its own measure and length and the selected replicas.

    Without a length, what is `of` several replicas is shown at the longest length that was measured
    on all of them, but for suites, which have a length of their own.

    Raises `SettingsError` where nothing was evaluated at the length, and for a statistic over
    replicas of a measure that has none.
    """
    measure, at = measure or report.measure, length or report.length
    several = measure == "success" or of not in (None, "selected")
    if several and length is None and report.suite is None:
        at = common_length(report.entries, of_all_replicas=True) or at
    if of not in (None, "selected") and measure not in KINDS:
        raise SettingsError(
            f"--of {of}: '{measure}' is "
            + ("of all replicas" if measure == "success" else "of the selected replica")
            + ": leave --of out"
        )
    if length is not None and not any(entry.at(length) for entry in report.entries):
        known = sorted({each for entry in report.entries for each in entry.lengths})
        raise SettingsError(
            f"--length {length}: no run was evaluated there"
            + (f"; lengths: {_few([f'{each:,}' for each in known])}" if known else "")
        )
    which = of or "selected"
    found = {(entry.row, entry.column): entry for entry in report.entries}
    table = [
        [
            _cell(found.get((row, column)), measure, which, over, at)
            for column in report.column_names
        ]
        for row in report.row_names
    ]
    return Matrix(
        title=report.title,
        caption=_caption(report, measure, which, over, at)
        + _legend(over, shown=any(cell.right for row in table for cell in row)),
        row_names=report.row_names,
        column_names=report.column_names,
        cells=tuple(tuple(row) for row in _with_best(table)),
        floors=_floors(report, at) if measure == "accuracy" else (),
        notes=(*_notes(report, measure, which, at), *_same_settings(report)),
    )


MOST_NAMED = 8
"""The most rows with the same settings whose runs are named below a table."""


def _same_settings(report: Report) -> list[str]:
    """Which run stands in which row, of rows that differ by their number alone: `lstm (2)`."""
    alike: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in report.entries:
        alike[re.sub(r" \([0-9]+\)$", "", entry.row), entry.column].append(entry)
    found = [
        entry
        for (row, _), entries in alike.items()
        if len(entries) > 1 and any(entry.row == row for entry in entries)
        for entry in sorted(entries, key=lambda entry: (len(entry.row), entry.row))
    ]
    if not found or report.suite is not None:
        return []
    names = short_names([entry.run for entry in report.entries])
    short = dict(zip((entry.run for entry in report.entries), names, strict=True))
    told = [f"{entry.row} on {entry.column} is {short[entry.run]}" for entry in found[:MOST_NAMED]]
    more = len(found) - len(told)
    left = f", {more} more (--long --columns row,column,run)" if more else ""
    return [f"same settings: {', '.join(told)}{left}"]


def worst_text(entry: Entry) -> str:
    """The length up to which every word tried is right: `1,701`, or `>= 30,000` without a failure.

    `all lengths` where that is proven, `-` where no word was sought or could be.
    """
    bracket = entry.bracket
    if bracket.worst_case is None and bracket.verdict == "not proven":
        return MISSING
    if bracket.fails_at is not None:
        return f"{bracket.right_to:,}"
    return "all lengths" if bracket.proven is None else f">= {bracket.right_to:,}"


def _cell(entry: Entry | None, measure: Measure, of: Of, over: Over, length: int) -> Cell:
    if entry is None:
        return Cell(MISSING)
    if entry.state != "finished" and not entry.rows:
        return Cell(entry.state)
    if measure in OF_SELECTED:
        return _cell_of_selected(entry, measure)
    if not entry.at(length):
        gone = entry.state == "finished" and entry.replicas == entry.diverged
        return Cell(
            "diverged" if gone else MISSING, right=_right_of_diverged(entry) if gone else ""
        )
    found = statistics_at(entry, length, KINDS.get(measure, "accuracy"))
    those = found.over(over)
    if measure == "success":
        return Cell(f"{those.right}/{those.replicas}" if those.complete else MISSING, those.success)
    value = found.of(of, KINDS[measure], over)
    right = those.complete and those.replicas > 1 and of == "selected"
    return Cell(
        _with_deviation(value, those) if of == "mean" else share(value),
        value,
        right=f"{those.right}/{those.replicas}" if right else "",
    )


def _cell_of_selected(entry: Entry, measure: Measure) -> Cell:
    if measure == "horizon":
        reached = horizon_of_entry(entry)
        return Cell(MISSING) if reached is None else Cell(f"{reached:,}", reached)
    text = worst_text(entry)
    if text == MISSING:
        return Cell(text)
    return Cell(text, math.inf if text == "all lengths" else entry.bracket.right_to)


def _right_of_diverged(entry: Entry) -> str:
    return f"0/{entry.replicas}" if entry.replicas > 1 else ""


def _with_deviation(value: float | None, those: Population) -> str:
    if value is None or those.deviation is None:
        return share(value)
    return f"{share(value)} ± {rounded_up(those.deviation)}"


def _with_best(table: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """The cells, of which the highest of each column are marked; none where all are equal."""
    columns = list(zip(*table, strict=True))
    marked = []
    for cells in columns:
        values = [cell.value for cell in cells if cell.value is not None]
        top = max(values, default=None) if len({*values}) > 1 else None
        marked.append(
            [
                Cell(cell.text, cell.value, cell.right, best=top is not None and cell.value == top)
                for cell in cells
            ]
        )
    return [list(row) for row in zip(*marked, strict=True)]


def _floors(report: Report, length: int) -> tuple[str, ...]:
    """The accuracy of the best constant answer, by column; empty where nothing was scored."""
    floors = []
    for column in report.column_names:
        inside = [entry for entry in report.entries if entry.column == column]
        shown = {share(row.floor) for entry in inside for row in entry.at(length)}
        floors.append(" to ".join(sorted({min(shown), max(shown)})) if shown else "")
    return tuple(floors) if any(floors) else ()


WHAT: dict[Measure, str] = {
    "accuracy": "accuracy at the last position",
    "scaled": "accuracy at the last position, with chance at 0",
    "prefix": "words right at every position",
    "success": "replicas with every answer right",
    "horizon": "longest length tested up to which every answer on random words is right",
    "worst": "length up to which every word is right that was tried or proven",
}

OF_WHICH: dict[Of, str] = {
    "selected": "of the replica that validation selected",
    "best": "best of {}",
    "median": "median over {}",
    "mean": "mean and standard deviation over {}",
}

OVER: dict[Over, str] = {"all": "all replicas", "seeds": "the seeds at the selected learning rate"}


def _caption(report: Report, measure: Measure, of: Of, over: Over, length: int) -> str:
    """What the numbers are: of which words, of how many, and of which replicas."""
    about = ""
    if measure in OF_SELECTED:
        said = [WHAT[measure], OF_WHICH["selected"]]
    else:
        scored = [row.sequences for entry in report.entries for row in entry.at(length)]
        words = f", {_range(scored)} words" if scored else ""
        about = f"length {length:,}{words}: " if length else ""
        which = OVER[over]
        those = f"of {which}, those that diverged included"
        said = [WHAT[measure], those if measure == "success" else OF_WHICH[of].format(which)]
    done = [entry.replicas for entry in report.entries if entry.state == "finished"]
    if done:
        number = _range(done)
        said.append(f"{number} replica{'' if number == '1' else 's'} each")
    return about + "; ".join(said)


def _legend(over: Over, *, shown: bool) -> str:
    """What stands beside the numbers, where something does."""
    if not shown:
        return ""
    at = " at the selected learning rate" if over == "seeds" else ""
    return f"; k/n: replicas{at} with every answer right"


def _range(numbers: Sequence[int]) -> str:
    known = sorted(set(numbers))
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"


def _notes(report: Report, measure: Measure, of: Of, length: int) -> list[str]:
    """What is missing and why, what to do, and what a reader must know of single cells."""
    places = len(report.row_names) * len(report.column_names)
    empty = places - len({(entry.row, entry.column) for entry in report.entries if entry.row})
    notes = [f"no run: {empty:,} of {places:,} places"] if empty else []
    for what, wanted in _groups(report.suite, measure, of, length):
        runs = [entry for entry in report.entries if wanted(entry)]
        if runs:
            notes.append(what.format(count=_counted(runs), runs=_few([_run(e) for e in runs])))
    short = [
        entry for entry in report.entries if entry.at(length) and (entry.trained_to or 0) >= length
    ]
    if short and measure not in OF_SELECTED:
        notes.append(
            f"length {length:,} is not longer than the words of training of {_counted(short)}: "
            f"{_few([_run(entry) for entry in short])}"
        )
    single = _of_single(report.entries)
    notes += single[:SINGLE]
    if len(single) > SINGLE:
        notes.append(f"and {len(single) - SINGLE:,} more such notes: --format json has all")
    if compared := [each for entry in report.entries for each in entry.compared]:
        notes.append(f"published numbers: {summary(compared)}")
    return notes


def _of_single(entries: Sequence[Entry]) -> list[str]:
    """What must be said of single runs; the same is said of several at once."""
    said: dict[str, list[str]] = {}
    for entry in entries:
        name = f"{entry.row} on {entry.column}" if entry.row else _run(entry)
        told = [entry.error] if entry.error else []
        told += entry.notes
        if (wrong := entry.bracket.contradiction) is not None:
            told.append(f"CONTRADICTION: {wrong}")
        for each in told:
            said.setdefault(each, []).append(name)
    return [f"{_few(names)}: {what}" for what, names in said.items()]


def _groups(
    suite: str | None, measure: Measure, of: Of, length: int
) -> list[tuple[str, Callable[[Entry], bool]]]:
    """The notes about several runs at once, and which runs each is about."""

    def trained(entry: Entry) -> bool:
        return entry.state == "finished" and entry.replicas > entry.diverged

    def incomplete(entry: Entry) -> bool:
        return (
            trained(entry)
            and bool(entry.at(length))
            and not (statistics_at(entry, length).everyone.complete)
        )

    again = "`statetrack train --resume RUN` continues"
    goes_on = again if suite is None else "the command that ran the suite continues"
    groups: list[tuple[str, Callable[[Entry], bool]]] = [
        ("not begun: {count}", lambda entry: entry.state == "waiting"),
        (
            f"not finished ({{count}}; {goes_on}): {{runs}}",
            lambda entry: entry.state == "unfinished",
        ),
    ]
    if measure == "worst":
        sought = "no word was sought that fails ({count}; `statetrack certify RUN` does): {runs}"
        return [*groups, (sought, lambda entry: trained(entry) and worst_text(entry) == MISSING)]
    if measure == "horizon":
        tested = "not evaluated ({count}; `statetrack eval RUN`): {runs}"
        return [*groups, (tested, lambda entry: trained(entry) and not entry.rows)]
    here = f" --length {length}" if length else ""
    groups.append(
        (
            "not evaluated"
            + (f" at length {length:,}" if length else "")
            + f" ({{count}}; `statetrack eval RUN --all{here}`): {{runs}}",
            lambda entry: trained(entry) and not entry.at(length),
        )
    )
    if measure == "success" or of != "selected":
        groups.append(
            (
                "only some replicas were evaluated ({count}; `statetrack eval RUN --all"
                f"{here}`): {{runs}}",
                incomplete,
            )
        )
    return groups


def _counted(runs: Sequence[Entry]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs):,} runs"


def _run(entry: Entry) -> str:
    return entry.run.as_posix()


def _few(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
