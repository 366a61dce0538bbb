"""The page of the map and its figure, from what is recorded of the suite `map`; nothing is trained.

    python docs/learned.py

Both say of which record they were made: a test compares that.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from statetrack.pictures import Look, draw_learned
from statetrack.report import STANDINGS, LearnedMap, RecordedTable
from statetrack.text import markdown_table

DOCS = Path(__file__).parent
RECORD, PAGE, FIGURE = DOCS / "recorded/map.json", DOCS / "map.md", DOCS / "figures/map.svg"
BEGIN, END = "<!-- map -->\n", "<!-- /map -->\n"
"""Between these lines of the page stands what is made here."""


def mark() -> str:
    """What page and figure say of the record that they were made of."""
    return f"<!-- record {hashlib.sha256(RECORD.read_bytes()).hexdigest()[:16]} -->\n"


def region(table: RecordedTable, found: LearnedMap) -> str:
    """The counts, of all cells, of every model and of every task."""
    suite, rows = table.suite_now, len(found.rows)
    whole = len(suite.rows) * len(suite.columns)
    replicas = sum(cell.replicas for cell in found.cells)
    counts = found.counts()
    can = sum(counts.get(each, 0) for each in ("learned", "not held", "not learned"))
    words = f"{suite.samples:,} words of each of the lengths " + ", ".join(
        f"{length:,}" for length in (*suite.curve_lengths, suite.length)
    )
    parts = [
        mark(),
        f"Recorded are {len(found.cells):,} of {whole:,} cells: {rows} of {len(suite.rows)} models "
        f"on {len(found.columns)} of {len(suite.columns)} tasks, {replicas:,} replicas, {words}. "
        f"Training took {table.seconds / 3600:.1f} hours of one core, on {table.machine}, commit "
        f"{table.commit}, {table.date}.\n",
        f"Of {can:,} cells whose model can at its default size, **{counts.get('learned', 0):,} "
        f"({counts.get('learned', 0) / max(can, 1):.0%}) are learned**: some of three seeds is "
        f"right on every word of every length beyond training, up to {suite.length:,}.\n",
        markdown_table(
            ["standing", "cells", "what it says"],
            [[name, f"{counts[name]:,}", STANDINGS[name]] for name in counts],
        ),
        "## By model\n",
        found.to_markdown(by="row"),
        "## By task\n",
        found.to_markdown(by="column"),
    ]
    return "\n".join(parts)


def page(text: str, table: RecordedTable, found: LearnedMap) -> str:
    """The text of the page with its region made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{region(table, found)}{END}{after}"


def main() -> None:
    """Write both."""
    table = RecordedTable.read(RECORD)
    found = LearnedMap.of_records(table)
    PAGE.write_text(page(PAGE.read_text("utf-8"), table, found), encoding="utf-8")
    draw_learned(found, FIGURE, Look(style="paper", title=""))
    drawn = FIGURE.read_text("utf-8").rstrip()
    FIGURE.write_text(f"{drawn}\n{mark()}", encoding="utf-8")


if __name__ == "__main__":
    main()
