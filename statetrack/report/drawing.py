"""Names of `statetrack.report` that commands use together."""

from __future__ import annotations

from collections.abc import Sequence

from statetrack.report.formats.rich import FittedTable, console, prose
from statetrack.report.table import facts, interval, plain_columns, share, small

__all__ = [
    "LOOKS",
    "SHOWN",
    "console",
    "facts",
    "interval",
    "plain_table",
    "prose",
    "share",
    "small",
]

SHOWN = {"yes": "can", "no": "cannot", "unknown": "?"}
LOOKS = {"yes": "green", "no": "red", "unknown": "dim"}
"""The text of a prediction's answer, and its style."""


def plain_table(
    *headings: str,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    left_out: Sequence[str] = (),
    more: str = "--json has them",
) -> FittedTable:
    """A table without a frame; the columns named in `right` hold numbers.

    The first column has names, and those in `whole` words that are never broken. Without room for
    all, columns are left out in the order of `left_out`, and `more` says how to see them.
    """
    table = FittedTable(left_out=left_out, more=more)
    for column in plain_columns(*headings, right=right, whole=whole):
        table.add_column(column.heading, kind=column.kind)
    return table
