"""The rows of a report as compact data, which the page makes its downloads from.

Names of fields stand once, and so does what is said of an entry, and a score that several replicas
have: a row names both by their numbers. Most replicas that are right have the same score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from statetrack.report.entries import Entry, Gathered
from statetrack.report.plain_values import COLUMNS, long_form
from statetrack.runs import EvaluationRow
from statetrack.scoring import plain

OF_ENTRIES = (
    *("row", "column", "run", "state", "model", "task", "task_version", "task_hash"),
    *("settings_hash", "command", "version", "machine", "replicas", "diverged", "steps", "words"),
    *("seconds", "parameters", "dimensions", "trained_to", "error"),
)
"""What is said of every entry."""

OF_REPLICAS = ("replica", "seed", "lr", "selected")
"""What a row says of its replica."""

OF_SCORES = tuple(
    each.name
    for each in fields(EvaluationRow)
    if each.name not in (*OF_REPLICAS, "task", "words")  # those of the entry
)
"""What a row says of its score."""


def row_data(report: Gathered) -> Mapping[str, Any]:
    """`entries`, `scores` and `rows` as lists of values, in the order of the names of fields.

    A row is the number of its entry, the number of its score, and what is said of its replica.
    `long` is the report in its long form.
    """
    scores: dict[tuple[Any, ...], int] = {}
    rows = []
    for number, entry in enumerate(report.entries):
        for row in entry.rows:
            score = tuple(plain(getattr(row, name)) for name in OF_SCORES)
            of = scores.setdefault(score, len(scores))
            rows.append([number, of, *(getattr(row, name) for name in OF_REPLICAS)])
    return {
        "title": report.title,
        "entry_fields": OF_ENTRIES,
        "replica_fields": OF_REPLICAS,
        "score_fields": OF_SCORES,
        "entries": [_entry(entry) for entry in report.entries],
        "scores": list(scores),
        "rows": rows,
        "long": _long_form(report),
    }


def _long_form(report: Gathered) -> Mapping[str, Any]:
    """The report in its long form; what is the same at all lengths of a run stands once.

    `once` are the numbers of such columns. A run is their values, and a line of the values of the
    other columns for each length.
    """
    lines = long_form(report.entries).values()
    runs = []
    for entry in report.entries:
        number = max(1, len(entry.lengths))
        runs.append(lines[:number])
        lines = lines[number:]
    places = range(len(COLUMNS))
    once = [n for n in places if all(run[0][n] == line[n] for run in runs for line in run)]
    return {
        "columns": COLUMNS,
        "once": once,
        "runs": [
            [
                [run[0][n] for n in once],
                [[line[n] for n in places if n not in once] for line in run],
            ]
            for run in runs
        ],
    }


def _entry(entry: Entry) -> list[Any]:
    values = {name: getattr(entry, name) for name in OF_ENTRIES} | {"run": str(entry.run)}
    return [plain(values[name]) for name in OF_ENTRIES]
