"""The table of a report: a cell for each row and column, and what must be said of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from statetrack.errors import SettingsError
from statetrack.report.best import sample_of, with_best
from statetrack.report.entries import (
    Also,
    Entry,
    Gathered,
    Kind,
    Measure,
    Over,
    ReplicaStatistics,
    common_length,
    horizon_of_entry,
    reach_of,
    short_names,
    statistics_at,
    worst_text,
)
from statetrack.report.table import MISSING, Column, Line, Styled, Table, interval, share
from statetrack.report.verdicts import summary
from statetrack.scoring import rounded_up
from statetrack.sweep import Of

KINDS: dict[Measure, Kind] = {"accuracy": "accuracy", "scaled": "scaled", "prefix": "prefix"}
"""The measures that are shares of words, and so have statistics over replicas."""

OF_SELECTED: tuple[Measure, ...] = ("horizon", "worst")
"""The measures that are known of the selected replica alone."""

NAMED = 4
"""The most runs that one note names."""

ALSO: tuple[Also, ...] = ("interval", "weights", "state", "seconds")
"""What can stand beside the numbers of a table, first what is shown where there is little room."""

SINGLE = 20
"""The most notes about single runs."""

MOST_NAMED = 8
"""The most rows with the same settings whose runs are named below a table."""


def matrix_of(
    report: Gathered,
    *,
    measure: Measure | None = None,
    of: Of | None = None,
    over: Over = "all",
    lengths: Sequence[int] = (),
    best: bool = False,
    transpose: bool = False,
    also: Sequence[Also] | None = None,
    fitted: bool = False,
) -> Table:
    """The table of a report, by default of its own measure and lengths and the selected replicas.

    A cell has its number, and beside it how many replicas are right on every word (of single
    replicas only where it is `fitted`); where there is no number, it says why. Of several lengths
    each task has a column for each. With `best` the best of each column stand out, which tests tell
    from others, with `transpose` tasks are rows. `also` names what has columns of its own beside
    the numbers; where it is None, a `fitted` table has all of it that there is room for. Without a
    length, what is `of` several replicas is shown at the
    longest length that was measured on all of them, but for suites, which have their own lengths.

    Raises `SettingsError` where nothing was evaluated at a length, and for a statistic over
    replicas of a measure that has none.
    """
    measure, at = measure or report.measure, tuple(lengths) or report.shown_lengths
    several = measure == "success" or of not in (None, "selected")
    if several and not lengths and report.suite is None:
        at = (common_length(report.entries, of_all_replicas=True) or at[-1],)
    if of not in (None, "selected") and measure not in KINDS:
        raise SettingsError(
            f"--of {of}: '{measure}' is "
            + ("of all replicas" if measure == "success" else "of the selected replica")
            + ": leave --of out"
        )
    for length in lengths:
        if not any(entry.at(length) for entry in report.entries):
            known = sorted({each for entry in report.entries for each in entry.lengths})
            raise SettingsError(
                f"--length {length}: no run was evaluated there"
                + (f"; lengths: {_few([f'{each:,}' for each in known])}" if known else "")
            )
    if measure in OF_SELECTED:
        at = at[-1:]  # these are over all lengths
    which = of or "selected"
    found = {(entry.row, entry.column): entry for entry in report.entries}
    places = [(column, length) for column in report.column_names for length in at]
    least = 1 if fitted else 2  # a paper's table of single replicas has no 1/1 in every cell
    table = [
        [
            _styled(_cell(found.get((row, column)), measure, which, over, length, least))
            for column, length in places
        ]
        for row in report.row_names
    ]
    shown = any(cell.beside for row in table for cell in row)
    if best:
        entries = [[found.get((row, column)) for column, _ in places] for row in report.row_names]
        samples = [
            [
                None if entry is None else sample_of(entry, measure, which, over, length)
                for entry, (_, length) in zip(row, places, strict=True)
            ]
            for row in entries
        ]
        table = with_best(
            [list(zip(*row, strict=True)) for row in zip(table, samples, strict=True)]
        )
    floors = _floors(report, places) if measure == "accuracy" else []
    heads = [
        Column(name, "number")
        if len(at) == 1
        else Column(f"{name} at {length:,}", "number", over=name, under=f"{length:,}")
        for name, length in places
    ]
    rows: Sequence[str] = report.row_names
    columns = [Column("", "name"), *heads]
    if not transpose:
        beside = _beside(report, places, measure, which, also, fitted=fitted)
        columns, table, floors = _with_columns(columns, table, floors, beside)
    else:
        table = [list(cells) for cells in zip(*table, strict=True)]
        names, rows = (*rows, *(["floor"] if floors else [])), [each.heading for each in heads]
        columns = [Column("", "name"), *(Column(name, "number") for name in names)]
        for row, floor in zip(table, floors, strict=bool(floors)):
            row.append(floor)
    last = len(rows) if floors and not transpose else 0
    lines = [
        Line([name, *cells], ends=number == last)
        for number, (name, cells) in enumerate(zip(rows, table, strict=True), start=1)
    ]
    if floors and not transpose:
        lines.append(Line(["floor", *floors], style="dim"))
    return Table(
        columns,
        lines,
        title=report.title,
        caption=_caption(report, measure, which, over, at)
        + _legend(over, shown=shown)
        + (f"; {_legend_of_best(measure, which)}" if best else ""),
        notes=(*_notes(report, measure, which, at), *_same_settings(report)),
        look="matrix",
        more="--also NAME,... has them",
    )


@dataclass(frozen=True)
class _ExtraColumn:
    """Columns beside the numbers: behind the one at a place, or at the end; a text for each row."""

    column: Column
    texts: Sequence[str]
    behind: int | None = None


def _beside(
    report: Gathered,
    places: Sequence[tuple[str, int]],
    measure: Measure,
    of: Of,
    also: Sequence[Also] | None,
    *,
    fitted: bool,
) -> list[_ExtraColumn]:
    """The columns beside the numbers that are asked for, or wanted where there is room."""
    asked = ALSO if also is None and fitted else also or ()
    found = []
    of_rows = [[e for e in report.entries if e.row == row] for row in report.row_names]
    for name in asked:
        extra = name if also is None else ""
        if name == "interval":
            if measure != "accuracy" or of != "selected":
                continue
            for place, (column, length) in enumerate(places):
                texts = [_interval(report.find(row, column), length) for row in report.row_names]
                head = Column("95 %", "number", extra=extra)
                if len(places) > len(report.column_names):
                    head = replace(
                        head, heading=f"{column} at {length:,}, 95 %", over=column, under="95 %"
                    )
                found.append(_ExtraColumn(head, texts, place))
            continue
        texts = [_range_of(entries, name) for entries in of_rows]
        if any(texts):
            found.append(_ExtraColumn(Column(name, "number", extra=extra), texts))
    return found


def _interval(entry: Entry | None, length: int) -> str:
    row = None if entry is None else statistics_at(entry, length).selected
    return "" if row is None else interval(row.low, row.high)


def _range_of(entries: Sequence[Entry], name: Also) -> str:
    """The values of a row's runs: one, or the least and the largest."""
    values = sorted({value for e in entries if (value := getattr(e, OF_ENTRY[name])) is not None})
    shown = [f"{value:,.0f}" if value >= 10 else f"{value:.2g}" for value in values if value]
    return "-".join(dict.fromkeys((shown[0], shown[-1]))) if shown else ""


OF_ENTRY: dict[Also, str] = {
    "weights": "parameters",
    "state": "dimensions",
    "seconds": "seconds",
}
"""The field of an entry that has each number."""


def _with_columns(
    columns: Sequence[Column],
    table: Sequence[Sequence[Styled]],
    floors: Sequence[Styled],
    beside: Sequence[_ExtraColumn],
) -> tuple[list[Column], list[list[Styled]], list[Styled]]:
    """Columns, rows and floors with other columns among them."""
    heads, rows, floor = [columns[0]], [list[Styled]() for _ in table], list[Styled]()

    def add(each: _ExtraColumn) -> None:
        heads.append(each.column)
        floor.append(Styled(None, ""))
        for row, text in zip(rows, each.texts, strict=True):
            row.append(Styled(None, text, style="dim"))

    for place, column in enumerate(columns[1:]):
        heads.append(column)
        floor += floors[place : place + 1]
        for row, cells in zip(rows, table, strict=True):
            row.append(cells[place])
        for each in beside:
            if each.behind == place:
                add(each)
    for each in beside:
        if each.behind is None:
            add(each)
    return heads, rows, floor if floors else []


def _cell(
    entry: Entry | None, measure: Measure, of: Of, over: Over, length: int, least: int
) -> Styled:
    """A cell; from so many replicas on, with how many are right on every word beside it."""
    if entry is None:
        return Styled(None, MISSING)
    if entry.state != "finished" and not entry.rows:
        return Styled(None, entry.state)
    if measure in OF_SELECTED:
        return _cell_of_selected(entry, measure)
    if not entry.at(length):
        gone = entry.state == "finished" and entry.replicas == entry.diverged
        return Styled(
            None,
            "diverged" if gone else MISSING,
            beside=f"0/{entry.replicas}" if gone and entry.replicas >= least else "",
        )
    found = statistics_at(entry, length, KINDS.get(measure, "accuracy"))
    those = found.over(over)
    if measure == "success":
        return Styled(
            those.success, f"{those.right}/{those.replicas}" if those.complete else MISSING
        )
    value = found.of(of, KINDS[measure], over)
    right = those.complete and those.replicas >= least and of == "selected"
    return Styled(
        value,
        _with_deviation(value, those) if of == "mean" else share(value),
        beside=f"{those.right}/{those.replicas}" if right else "",
    )


def _cell_of_selected(entry: Entry, measure: Measure) -> Styled:
    if measure == "horizon":
        reached = horizon_of_entry(entry)
        return Styled(reached)
    text = worst_text(entry.bracket)
    if text == MISSING:
        return Styled(None, text)
    return Styled(reach_of(entry.bracket), text)


def _with_deviation(value: float | None, those: ReplicaStatistics) -> str:
    if value is None or those.deviation is None:
        return share(value)
    return f"{share(value)} ± {rounded_up(those.deviation)}"


def _styled(cell: Styled) -> Styled:
    """A cell that stands back where it has no number, and stands out where a run failed."""
    if cell.text in ("failed", "diverged"):
        return replace(cell, style="red")
    return replace(cell, style="dim") if cell.value is None else cell


def _floors(report: Gathered, places: Sequence[tuple[str, int]]) -> list[Styled]:
    """The accuracy of the best constant answer, by column; empty where nothing was scored."""
    floors = []
    for column, length in places:
        inside = [entry for entry in report.entries if entry.column == column]
        shown = {share(row.floor) for entry in inside for row in entry.at(length)}
        text = " to ".join(sorted({min(shown), max(shown)})) if shown else ""
        floors.append(Styled(None, text, style="dim"))
    return floors if any(floor.text for floor in floors) else []


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


def _caption(report: Gathered, measure: Measure, of: Of, over: Over, lengths: Sequence[int]) -> str:
    """What the numbers are: of which words, of how many, and of which replicas."""
    about = ""
    if measure in OF_SELECTED:
        said = [WHAT[measure], OF_WHICH["selected"]]
    else:
        scored = [
            row.sequences for e in report.entries for length in lengths for row in e.at(length)
        ]
        words = f", {_range(scored)} words" if scored else ""
        about = f"{_named_lengths(lengths)}{words}: " if any(lengths) else ""
        which = OVER[over]
        those = f"of {which}, those that diverged included"
        said = [WHAT[measure], those if measure == "success" else OF_WHICH[of].format(which)]
    done = [entry.replicas for entry in report.entries if entry.state == "finished"]
    if done:
        number = _range(done)
        said.append(f"{number} replica{'' if number == '1' else 's'} each")
    return about + "; ".join(said)


def _named_lengths(lengths: Sequence[int]) -> str:
    """`length 50`, or `lengths 50, 100 and 200`."""
    *others, last = [f"{length:,}" for length in lengths]
    return f"lengths {', '.join(others)} and {last}" if others else f"length {last}"


def _legend(over: Over, *, shown: bool) -> str:
    """What stands beside the numbers, where something does."""
    if not shown:
        return ""
    at = " at the selected learning rate" if over == "seeds" else ""
    return f"; k/n: replicas{at} with every answer right"


def _legend_of_best(measure: Measure, of: Of) -> str:
    """What is bold, by which test."""
    if measure in OF_SELECTED:
        return "bold: the longest"
    by = "the 95 % interval of the difference (not paired by words)"
    if of in ("mean", "median"):
        by = "the permutation test of the replicas"
    return f"bold: the best, with all that {by} does not tell from it"


def _range(numbers: Sequence[int]) -> str:
    known = sorted(set(numbers))
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"


def _same_settings(report: Gathered) -> list[str]:
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


def _notes(report: Gathered, measure: Measure, of: Of, lengths: Sequence[int]) -> list[str]:
    """What is missing and why, what to do, and what a reader must know of single cells."""
    places = len(report.row_names) * len(report.column_names)
    empty = places - len({(entry.row, entry.column) for entry in report.entries if entry.row})
    notes = [f"no run: {empty:,} of {places:,} places"] if empty else []
    for what, wanted in _groups(report.suite, measure, of, lengths):
        runs = [entry for entry in report.entries if wanted(entry)]
        if runs:
            notes.append(what.format(count=_counted(runs), runs=_few([_run(e) for e in runs])))
    for length in lengths if measure not in OF_SELECTED else ():
        short = [e for e in report.entries if e.at(length) and (e.trained_to or 0) >= length]
        if short:
            notes.append(
                f"length {length:,} is not longer than the words of training of {_counted(short)}: "
                f"{_few([_run(entry) for entry in short])}"
            )
    single = _of_single(report.entries)
    notes += single[:SINGLE]
    if len(single) > SINGLE:
        notes.append(f"and {len(single) - SINGLE:,} more such notes: --format json has all")
    if report.compared:
        notes.append(f"published numbers: {summary(report.compared)}")
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
    suite: str | None, measure: Measure, of: Of, lengths: Sequence[int]
) -> list[tuple[str, Callable[[Entry], bool]]]:
    """The notes about several runs at once, and which runs each is about."""

    def trained(entry: Entry) -> bool:
        return entry.state == "finished" and entry.replicas > entry.diverged

    def incomplete(entry: Entry) -> bool:
        there = [length for length in lengths if entry.at(length)]
        return trained(entry) and not all(
            statistics_at(entry, length).everyone.complete for length in there
        )

    again = "`statetrack train --resume RUN` continues"
    whole = "the command that ran the suite, or `statetrack sweep FOLDER`, continues"
    goes_on = again if suite is None else whole
    groups: list[tuple[str, Callable[[Entry], bool]]] = [
        (f"not begun ({{count}}; {whole})", lambda entry: entry.state == "waiting"),
        (
            f"not finished ({{count}}; {goes_on}): {{runs}}",
            lambda entry: entry.state == "unfinished",
        ),
    ]
    if measure == "worst":
        sought = "no word was sought that fails ({count}; `statetrack certify RUN` does): {runs}"
        return [
            *groups,
            (sought, lambda entry: trained(entry) and worst_text(entry.bracket) == MISSING),
        ]
    if measure == "horizon":
        tested = "not evaluated ({count}; `statetrack eval RUN`): {runs}"
        return [*groups, (tested, lambda entry: trained(entry) and not entry.rows)]
    known = [length for length in lengths if length]
    here = f" --length {','.join(map(str, known))}" if known else ""
    groups.append(
        (
            "not evaluated"
            + (f" at {_named_lengths(known)}" if known else "")
            + f" ({{count}}; `statetrack eval RUN --all{here}`): {{runs}}",
            lambda entry: trained(entry) and not all(map(entry.at, lengths)),
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
