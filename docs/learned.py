"""The pages of what is learned and of what is held, from their records; nothing is trained.

    python docs/learned.py

`map.md` and its figure show the suite `map`, `held.md` what `python -m tests.held` measured, and
`learning.md` what `python -m tests.learning` said and found. Each of the first two
says of which record it was made: a test compares that.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from statetrack.pictures import Look, draw_learned
from statetrack.pictures.learned_map import SHADES, map_caption
from statetrack.report import STANDINGS, LearnedMap, RecordedTable, map_page
from statetrack.report.formats.parquet import parquet_bytes
from statetrack.text import markdown, markdown_table
from tests.held.points import CONDITIONS, LENGTHS, TASKS
from tests.learning import judging

DOCS = Path(__file__).parent
RECORD, PAGE, FIGURE = DOCS / "recorded/map.json", DOCS / "map.md", DOCS / "figures/map.svg"
CELLS, FILTERED = DOCS / "recorded/map.parquet", DOCS / "recorded/map.html"
CLAIMS = DOCS.parent / "tests/claims/recorded.json"
HELD, HELD_PAGE = DOCS.parent / "tests/held/recorded.json", DOCS / "held.md"
LEARNING_PAGE = DOCS / "learning.md"
BEGIN, END = "<!-- recorded -->\n", "<!-- /recorded -->\n"
"""Between these lines of a page stands what is made here."""


def mark(record: Path) -> str:
    """What page and figure say of the record that they were made of."""
    return f"<!-- record {hashlib.sha256(record.read_bytes()).hexdigest()[:16]} -->\n"


def built_exactly() -> frozenset[tuple[str, str]]:
    """The models, with their options, and tasks whose exact weights were built and run."""
    built = json.loads(CLAIMS.read_text("utf-8"))["built"]
    return frozenset((model, task) for model, row in built.items() for task in row["exact"])


def recorded_map(table: RecordedTable) -> LearnedMap:
    """The map of the record; of models at default settings, whose names are its rows."""
    return LearnedMap.of_records(table, built_exactly())


def region(table: RecordedTable, found: LearnedMap) -> str:
    """The counts, of all cells, of every model and of every task."""
    suite, rows = table.suite_now, len(found.rows)
    whole = len(suite.rows) * len(suite.columns)
    replicas = sum(cell.replicas for cell in found.cells)
    counts = found.counts()
    can = sum(counts.get(each, 0) for each in ("learned", "not held", "not learned"))
    wrong = [cell for cell in found.cells if cell.why]
    built = sum(bool(cell.built) for cell in wrong)
    words = f"{suite.samples:,} words of each of the lengths " + ", ".join(
        f"{length:,}" for length in (*suite.curve_lengths, suite.length)
    )
    parts = [
        mark(RECORD),
        f"Recorded are {len(found.cells):,} of {whole:,} cells: {rows} of {len(suite.rows)} models "
        f"on {len(found.columns)} of {len(suite.columns)} tasks, {replicas:,} replicas, {words}. "
        f"Training took {table.seconds / 3600:.1f} hours of one core, on {table.machine}, commit "
        f"{table.commit}, {table.date}.\n",
        f"Of {can:,} cells whose model can at its default size, **{counts.get('learned', 0):,} "
        f"({counts.get('learned', 0) / max(can, 1):.0%}) are learned**: some of three seeds is "
        f"right on every word of every length beyond training, up to {suite.length:,}. Of the "
        f"{len(wrong):,} others, {built:,} ({built / max(len(wrong), 1):.0%}) have exact weights "
        "that were [built and run](exact-weights.md) on words of 10,000 symbols: there it is "
        "training that fails.\n",
        markdown_table(
            ["standing", "cells", "what it says"],
            [[name, f"{counts[name]:,}", STANDINGS[name]] for name in counts],
        ),
        "## By model\n",
        found.to_markdown(by="row"),
        "## By task\n",
        found.to_markdown(by="column"),
        *worst_words(found, suite.length),
        "## Why not\n",
        "Of each cell that can and is not right beyond training, what its best replica reached: "
        "*not learned* is a failure of training within its steps, *not held* one at lengths beyond "
        "training. *Built* are the cells with exact weights.\n",
        markdown_table(
            ["model", "task", "standing", "of the best replica", "exact weights"],
            [
                [
                    *(markdown(row), markdown(cell.column), cell.standing, cell.why),
                    "built" if cell.built else "",
                ]
                for row in found.rows
                for cell in wrong
                if cell.row == row
            ],
        ),
    ]
    return "\n".join(parts)


def worst_words(found: LearnedMap, longest: int) -> list[str]:
    """Up to where words that were sought are right, in cells that are right on random words."""
    right = [cell for cell in found.cells if cell.right]
    sought = [cell for cell in right if cell.right_to is not None]
    if not sought:
        return []
    proven = [cell for cell in sought if cell.right_to == math.inf]
    failing = [cell for cell in sought if cell.fails_at is not None]
    early = [cell for cell in failing if cell.right_to < longest]
    lines = []
    for row in found.rows:
        own = [cell for cell in sought if cell.row == row]
        counts = [sum(cell in some for cell in own) for some in (early, failing, proven)]
        farthest = max(own, key=lambda cell: cell.right_to, default=None)
        if farthest:
            lines.append([markdown(row), len(own), *counts, farthest.column, farthest.worst])
    return [
        "## Worst words\n",
        f"Of {len(right):,} cells that are right on random words, words that fail were sought in "
        f"{len(sought):,}, for the replica that validation selected: in {len(failing):,} one is "
        f"known, in {len(early):,} of them of at most {longest:,} symbols. {len(proven):,} are "
        "proven to be right on words of every length.\n",
        markdown_table(
            [
                *("model", "sought", f"fails by {longest:,}", "fails", "proven for all lengths"),
                *("holds longest on", "worst-case horizon"),
            ],
            [[str(each) for each in line] for line in lines],
        ),
    ]


def filtered_page(found: LearnedMap) -> str:
    """The map as a page that can be filtered."""
    said = (
        *map_caption(found),
        "a click on a cell tells what it holds",
    )
    return map_page(found, "What is learned of what can be", said, SHADES) + mark(RECORD)


def held_region(rows: Iterable[Mapping[str, Any]]) -> str:
    """How many points are kept under each condition, and a table for each task."""
    measured = [row for row in rows if "refused" not in row]
    found = {(row["model"], row["task"], row["condition"]): row for row in measured}
    names = list(dict.fromkeys(row["model"] for row in measured))
    parts = [mark(HELD)]
    sums = []
    for task in TASKS:
        line = [task]
        for condition in CONDITIONS:
            own = [row for row in measured if (row["task"], row["condition"]) == (task, condition)]
            line.append(f"{sum(row['kept'] > 0 for row in own)} of {len(own)}")
        sums.append(line)
    parts.append(markdown_table(["kept by some seed", *CONDITIONS], sums))
    for task in TASKS:
        lines = [
            [markdown(name), *(_held_text(found.get((name, task, each))) for each in CONDITIONS)]
            for name in names
            if (name, task, next(iter(CONDITIONS))) in found
        ]
        parts += [f"## {task}\n", markdown_table(["model", *CONDITIONS], lines)]
    return "\n".join(parts)


def _held_text(row: Mapping[str, Any] | None) -> str:
    """`kept 2/2`, or to which length the best seed holds, or the share of short words it has."""
    if row is None:
        return ""
    begun = "" if row["before"] == LENGTHS[-1] else f"from {row['before']}: "
    if row["kept"]:
        return f"{begun}**kept {row['kept']}/{row['replicas']}**"
    if row["after"]:
        return f"{begun}holds to {row['after']}"
    return f"{begun}lost ({row['learned']:.2f})"


def with_region(page: Path, region: str) -> None:
    """Write a page with its region made anew."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{region}{END}{after}", encoding="utf-8")


def main() -> None:
    """Write the pages and the figure."""
    table = RecordedTable.read(RECORD)
    found = recorded_map(table)
    with_region(PAGE, region(table, found))
    draw_learned(found, FIGURE, Look(style="paper", title=""))
    CELLS.write_bytes(parquet_bytes(found.table()))
    FILTERED.write_text(filtered_page(found), encoding="utf-8")
    drawn = FIGURE.read_text("utf-8").rstrip()
    FIGURE.write_text(f"{drawn}\n{mark(RECORD)}", encoding="utf-8")
    with_region(HELD_PAGE, held_region(json.loads(HELD.read_text("utf-8"))["points"]))
    with_region(LEARNING_PAGE, judging.region())


if __name__ == "__main__":
    main()
