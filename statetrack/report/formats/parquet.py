"""Parquet: all values of one table, whose columns have the types of what they hold."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from statetrack.report.table import FORMATS, Document, ReportFormat, Table


def parquet_bytes(table: Table) -> bytes:
    """The values of a table as a Parquet file; a column of several types holds text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    values = list(zip(*table.values(), strict=True)) or [()] * len(table.columns)
    held = [
        column.holds or _type_of(own) for column, own in zip(table.columns, values, strict=True)
    ]
    arrays = [
        pa.array([None if each is None else kind(each) for each in own], types[kind])
        for kind, own in zip(held, values, strict=True)
    ]
    to = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=table.names), to)
    return to.getvalue()


def _type_of(values: Sequence[Any]) -> type:
    """The type of all values that are known: numbers of both kinds are floats."""
    found = {type(value) for value in values if value is not None}
    if found == {int, float}:
        return float
    return found.pop() if len(found) == 1 else str


def _draw(document: Document) -> bytes:
    return parquet_bytes(document.rows())


FORMATS.register("parquet")(ReportFormat(".parquet", _draw, holds="rows"))
