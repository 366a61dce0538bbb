"""CSV: all values of one table, the names of its columns first; what is not known is empty."""

from __future__ import annotations

import csv
import io

from statetrack.report.table import FORMATS, Document, ReportFormat, Table


def csv_text(table: Table) -> str:
    """The values of a table; numbers are written in full."""
    if not table.columns:
        return ""
    to = io.StringIO()
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(table.values())
    return to.getvalue()


def _draw(document: Document) -> str:
    return csv_text(document.rows())


FORMATS.register("csv")(ReportFormat(".csv", _draw, holds="rows"))
