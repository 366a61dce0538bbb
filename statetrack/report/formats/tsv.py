"""TSV: all values of one table, tabs between them, the names of its columns first."""

from __future__ import annotations

import csv
import io

from statetrack.report.table import FORMATS, Document, ReportFormat


def _draw(document: Document) -> str:
    table = document.rows()
    if not table.columns:
        return ""
    to = io.StringIO()
    writer = csv.writer(to, "excel-tab", lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(table.values())
    return to.getvalue()


FORMATS.register("tsv")(ReportFormat(".tsv", _draw, holds="rows"))
