"""Recorded tables: which are stale and why, how they are renewed, and the pages made of them.

`python docs/recorded.py` says of every recorded table whether it still holds; with `record NAME...`
tables are made anew by their commands, and with `pages` their pages are written from the records,
without training: those of reproductions with the sums of their verdicts, and the ledger. The page
of the map is made by `docs/learned.py`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import statetrack
from statetrack.cli.app import run
from statetrack.errors import StatetrackError
from statetrack.report.ledger import Estimated, ledger_markdown
from statetrack.report.recorded import (
    RecordedCell,
    RecordedTable,
    dependencies,
    of_everything,
    settings_of,
)
from statetrack.report.reproductions import machine_of, reproduction_page, with_totals
from statetrack.runs import RunFolder, files
from statetrack.sweep import SUITES, Compared, kept_result, points_of

DOCS = Path(__file__).parent
RECORDS, PAGES = DOCS / "recorded", DOCS / "reproductions"
ESTIMATES = RECORDS / "estimates.json"
"""Seconds of points that were not recorded, as `reproduce --dry-run --json` gives them."""

OTHERS = {
    "results": "statetrack reproduce hierarchy",
    "claims": "python -m tests.claims --json tests/claims/recorded.json",
    "evidence": "python -m tests.evidence",
    "precision": "python -m tests.precision",
    "benchmarks": "python -m tests.benchmarks.ratios",
    "atlas": "statetrack atlas",
}
"""Recorded tables that are no suite's, and the commands that make them."""

MAP = "map"
"""The suite whose page is made by `docs/learned.py`."""


def records() -> dict[str, RecordedTable]:
    """Every recorded table, by its name."""
    found = sorted(each for each in RECORDS.glob("*.json") if each != ESTIMATES)
    return {each.stem: RecordedTable.read(each) for each in found}


def commit() -> str:
    """The commit of the code, and whether it was changed since."""

    def git(*words: str) -> str:
        told = subprocess.run(["git", *words], cwd=DOCS, capture_output=True, text=True, check=True)
        return told.stdout.strip()

    changed = git("status", "--porcelain", "--", "../statetrack", "../tasks")
    return git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")


def record_suite(
    name: str, budget: str | None, runs: Path, *, finished: bool = False
) -> RecordedTable:
    """Run a suite, or go on with it, and record what was measured.

    With `finished` nothing is trained: only the points that are finished are recorded.
    """
    suite = SUITES[name].for_budget(budget)
    folder = runs / (name if budget in (None, "minutes") else f"{name}-{budget}")
    said = ["reproduce", name, *(["--budget", budget] if budget else [])]
    more = ["--finished"] if finished else []
    if code := run([*said, *more, "--out", str(folder), "--stress-seconds", "0", "--jobs", "1"]):
        raise SystemExit(code)
    points, cells, machines = [], [], set()
    for point in points_of(suite, folder, {}, to_train=False):
        result = kept_result(suite, point)
        if result is None:
            continue
        points.append(point)
        cells.append(RecordedCell.of(result, RunFolder(point.path).read(files.SUMMARY)))
        machines.add(machine_of(point.path))
    return RecordedTable(
        **_about(name, f"statetrack {shlex.join(said)}"),
        machine="; ".join(sorted(machines)),
        seconds=round(sum(cell.seconds for cell in cells), 1),
        depends=dependencies(points),
        suite=name,
        budget=budget,
        settings=settings_of(suite, points),
        cells=cells,
    )


def record_other(name: str, machine: str) -> RecordedTable:
    """Run the command of a table that is no suite's, which writes it, and record that."""
    command, started = OTHERS[name], time.monotonic()
    words = shlex.split(command)
    program = [sys.executable, *(words[1:] if words[0] == "python" else ["-m", *words])]
    subprocess.run(program, cwd=DOCS.parent, check=True)
    return RecordedTable(
        **_about(name, command),
        machine=machine,
        seconds=round(time.monotonic() - started, 1),
        depends=of_everything(),
    )


def _about(name: str, command: str) -> dict[str, Any]:
    return {
        "name": name,
        "command": command,
        "date": datetime.date.today().isoformat(),
        "version": statetrack.__version__,
        "commit": commit(),
    }


def page_of(table: RecordedTable) -> str:
    """The page of a recorded suite, with the verdicts of the present rules."""
    suite = table.suite_now
    about = f"{table.machine}, commit {table.commit}, {table.date}"
    return reproduction_page(
        suite,
        command=table.command,
        points=points_of(suite, Path(), {}, to_train=False),
        results=table.results(),
        compared=table.compared,
        machine=lambda _: about,
    )


def estimates() -> Estimated:
    """The seconds of points that were estimated: by suite, budget, row and column."""
    found: Estimated = json.loads(ESTIMATES.read_text("utf-8")) if ESTIMATES.is_file() else {}
    return found


def pages(found: dict[str, RecordedTable]) -> Iterator[tuple[Path, str]]:
    """Every page that is made of records, with its text."""
    compared: dict[str, tuple[str, Sequence[Compared]]] = {}
    for name, table in found.items():
        if table.suite and name != MAP:
            compared[f"{name}.md"] = (SUITES[name].title, ())
            if table.cells:
                yield PAGES / f"{name}.md", page_of(table)
                compared[f"{name}.md"] = (SUITES[name].title, table.compared)
    index = PAGES / "index.md"
    yield index, with_totals(index.read_text("utf-8"), compared)
    ledger = DOCS / "ledger.md"
    yield ledger, ledger_markdown(found, estimates())


def status(found: dict[str, RecordedTable]) -> Iterator[str]:
    """One line for every table: whether it holds, and why not."""
    for name, table in found.items():
        why = table.why_stale()
        yield f"{name}: {'stale: ' + '; '.join(why) if why else 'holds'} ({table.command})"
    for name in SUITES:
        if SUITES[name].published_tables and name not in found:
            yield f"{name}: not recorded"


def main(argv: Sequence[str]) -> int:
    """Say what holds, or record, or write pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("do", nargs="?", choices=("record", "pages"))
    parser.add_argument("names", nargs="*", help="suites, or " + ", ".join(OTHERS))
    parser.add_argument("--budget")
    parser.add_argument("--finished", action="store_true", help="record only what is trained")
    parser.add_argument("--runs", type=Path, default=Path("suites"), help="the folder of runs")
    given = parser.parse_args(argv)
    if given.do == "record":
        for name in given.names:
            if name in OTHERS:
                table = record_other(name, machine="")
            else:
                table = record_suite(name, given.budget, given.runs, finished=given.finished)
            table.write(RECORDS / f"{name}.json")
    found = records()
    if given.do is None:
        print("\n".join(status(found)))
        return 0
    for page, text in pages(found):
        page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except StatetrackError as problem:
        sys.exit(f"error: {problem}")
