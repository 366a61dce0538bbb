"""A report as CSV, Parquet and JSON: everything about every run, for other programs.

CSV and Parquet have the long form. JSON has one object: the report, its runs, and the scores of
every replica.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from statetrack.report.entries import Entry, Report
from statetrack.report.long_form import COLUMNS, TYPES, LongRow, as_values
from statetrack.report.statistics import horizon_of_entry, statistics_at
from statetrack.runs import evidence_to_json
from statetrack.scoring import plain

FORMAT = 1
"""The version of the names in JSON, CSV and Parquet; raised when one changes meaning."""


def csv_text(rows: Sequence[LongRow], columns: Sequence[str] = COLUMNS) -> str:
    """Rows as CSV, the names of the columns first; None is empty, numbers are written in full."""
    to = io.StringIO()
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(as_values(rows, columns))
    return to.getvalue()


def parquet_bytes(rows: Sequence[LongRow], columns: Sequence[str] = COLUMNS) -> bytes:
    """Rows as a Parquet file, whose columns have the types of the fields."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, kinds[TYPES[name]]) for name in columns])
    records = [dict(zip(columns, values, strict=True)) for values in as_values(rows, columns)]
    to = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records, schema=schema), to)
    return to.getvalue()


def json_text(report: Report) -> str:
    """The report as one JSON object, letters of any script as they are."""
    return json.dumps(plain(to_json(report)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain values, which docs/file-formats.md names."""
    about = {
        field.name: getattr(report, field.name)
        for field in fields(report)
        if field.name != "entries"
    }
    return {"format": FORMAT, **about, "entries": [entry_to_json(e) for e in report.entries]}


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """An entry as plain values: its fields, and what follows from them at each length."""
    bracket = entry.bracket
    content: dict[str, Any] = {field.name: getattr(entry, field.name) for field in fields(entry)}
    return content | {
        "run": entry.run.as_posix(),
        "settings": dict(entry.settings),
        "axes": dict(entry.axes),
        "outcomes": [asdict(one) for one in entry.outcomes],
        "rows": [row.to_json() | {"evaluation_seed": row.evaluation_seed} for row in entry.rows],
        "evidence": [evidence_to_json(each) for each in entry.evidence],
        "searched": dict(entry.searched),
        "prediction": None if entry.prediction is None else entry.prediction.to_json(),
        "compared": [one.to_json() for one in entry.compared],
        "horizon": horizon_of_entry(entry),
        "bracket": {
            "proven": bracket.verdict,
            "proven_length": bracket.proven,
            "fails_at": bracket.fails_at,
            "right_to": bracket.right_to,
            "contradiction": bracket.contradiction,
        },
        "statistics": [_statistics_to_json(entry, length) for length in entry.lengths],
    }


def _statistics_to_json(entry: Entry, length: int) -> Mapping[str, Any]:
    found = statistics_at(entry, length)
    return {
        "length": length,
        "lr": found.lr,
        **{
            name: asdict(population)
            | {"success": population.success, "success_interval": population.success_interval}
            for name, population in (("everyone", found.everyone), ("seeds", found.seeds))
        },
    }
