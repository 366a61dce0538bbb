"""The rows of a report as compact data, which the page makes its downloads from.

What is said of an entry stands once, and a row names it by its number; names of fields stand once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from statetrack.report.entries import Entry, Report
from statetrack.runs.rows import EvaluationRow
from statetrack.scoring import plain

OF_ENTRIES = (
    *("row", "column", "run", "state", "model", "task", "task_version", "task_hash"),
    *("settings_hash", "command", "version", "machine", "replicas", "diverged", "steps", "words"),
    *("seconds", "parameters", "dimensions", "trained_to", "error"),
)
"""What is said of every entry."""

OF_ROWS = tuple(each.name for each in fields(EvaluationRow) if each.name != "task")
"""What is said of every row."""


def row_data(report: Report) -> Mapping[str, Any]:
    """`entries` and `rows` as lists of values, in the order of their names."""
    return {
        "title": report.title,
        "entry_fields": OF_ENTRIES,
        "row_fields": OF_ROWS,
        "entries": [_entry(entry) for entry in report.entries],
        "rows": [
            [number, *(plain(getattr(row, name)) for name in OF_ROWS)]
            for number, entry in enumerate(report.entries)
            for row in entry.rows
        ],
    }


def _entry(entry: Entry) -> list[Any]:
    values = {name: getattr(entry, name) for name in OF_ENTRIES} | {"run": str(entry.run)}
    return [plain(values[name]) for name in OF_ENTRIES]
