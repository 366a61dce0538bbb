"""The ledger of the field: every published number of the suites, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from statetrack.report.recorded import RecordedTable
from statetrack.report.verdicts import WORDS, legend, measured_text, published_text, summary_of
from statetrack.sweep import BUDGETS, SUITES, Compared, Suite, compare_published, counts
from statetrack.text import markdown, markdown_table

Estimated: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""Seconds by suite, budget, row and column."""

HEAD = ("row", "column", "source", "published", "measured", "verdict", "why", "s", "next")

ABOUT = """\
Under *s* stand the seconds of training of the points that were measured, and under *next*, for what
is open, the cheapest experiment that may settle it: the least budget in which the point was not run
yet, with its seconds where they were estimated. It is run by

```text
$ statetrack reproduce SUITE --budget BUDGET --rows ROW --columns COLUMN
```

and `statetrack reproduce --next SECONDS` runs, of all suites, the points with the most open numbers
a second.
"""


def ledger_markdown(records: Mapping[str, RecordedTable], estimated: Estimated) -> str:
    """The page: a table for every suite with published numbers."""
    names = [name for name in SUITES if SUITES[name].published_tables]
    found = {name: _numbers(SUITES[name], records.get(name)) for name in names}
    every = [each for compared in found.values() for each in compared]
    measured = [each for each in every if each.measured is not None]
    papers = len({each.reference.partition(", Figure")[0] for each in every})
    parts = [
        "# A ledger of published numbers\n",
        "Every number of the published tables that [suites](commands.md#reproduce) hold: "
        f"{len(every):,} numbers of {papers} papers, of which {len(every) - len(measured):,} were "
        f"not measured here. Of the others: {summary_of(counts(measured))}. What a verdict means "
        "stands under [reproductions](reproductions/index.md).\n",
        ABOUT,
        *(f"{markdown(line)}.\n" for line in legend(every)),
    ]
    for name, compared in found.items():
        parts += _of_suite(name, compared, records.get(name), estimated.get(name, {}))
    return "\n".join(parts)


def _numbers(suite: Suite, record: RecordedTable | None) -> list[Compared]:
    """Every published number of a suite: judged where it was recorded, else not measured."""
    known = {} if record is None else {_place(each): each for each in record.compared}
    return [known.get(_place(each), each) for each in compare_published(suite, [], [])]


def _place(each: Compared) -> tuple[object, ...]:
    return each.row, each.column, each.source, each.reference, each.measure, each.lengths


def _of_suite(
    name: str,
    compared: Sequence[Compared],
    record: RecordedTable | None,
    estimated: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> Iterator[str]:
    """The part of the page about one suite."""
    suite = SUITES[name]
    yield f"## {markdown(suite.title)}\n"
    yield f"`{name}`: {markdown(suite.reference)}. {_recorded(name, record)}\n"
    within = suite.for_budget(None if record is None else record.budget)
    yield f"Otherwise than there: {markdown(within.departures.rstrip('.'))}.\n"
    places = {
        budget: (set(one.rows), set(one.columns))
        for budget in BUDGETS
        if budget in suite.budgets or budget == BUDGETS[0]
        for one in [suite.for_budget(budget if suite.budgets else None)]
    }
    cells = {} if record is None else {(c.row, c.column): c for c in record.cells}
    rows = []
    for each in compared:
        took = [cells[row, each.column].seconds for row in each.rows if (row, each.column) in cells]
        other = f" ({each.reference})" if each.reference != suite.reference else ""
        rows.append(
            [
                *map(markdown, (each.row, each.column, each.source + other)),
                *map(markdown, (published_text(each), measured_text(each))),
                "-" if each.measured is None else markdown(WORDS[each.verdict][0]),
                markdown(each.why),
                f"{sum(took):,.0f}" if took else "-",
                _next(places, each, bool(took), estimated),
            ]
        )
    yield markdown_table(HEAD, rows)


def _recorded(name: str, record: RecordedTable | None) -> str:
    if record is None:
        return "Not recorded."
    stale = "; ".join(record.why_stale())
    said = f"[Recorded](reproductions/{name}.md) by `{record.command}`, {record.date}, commit "
    return f"{said}{record.commit}{f'; stale: {markdown(stale)}' if stale else ''}."


def _next(
    places: Mapping[str, tuple[set[str], set[str]]],
    each: Compared,
    was_run: bool,
    estimated: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> str:
    """The budget that may settle an open number, and its seconds; empty where none is open.

    `places` are the names of rows and columns of each budget, from the least.
    """
    if each.verdict != "not comparable" or each.unlike:
        return ""
    for budget, (rows, columns) in list(places.items())[1 if was_run else 0 :]:
        if each.column in columns and rows.issuperset(each.rows):
            seconds = [estimated.get(budget, {}).get(row, {}).get(each.column) for row in each.rows]
            known = [one for one in seconds if one is not None]
            return f"{budget}, {sum(known):,.0f} s" if len(known) == len(seconds) else budget
    return "more steps, words or seeds"
