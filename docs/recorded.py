"""Recorded tables: which are stale and why, how they are renewed, and the pages made of them.

`python docs/recorded.py` says of every recorded table whether it still holds; with `record NAME...`
tables are made anew by their commands, and with `pages` their pages are written from the records,
without training: those of reproductions with the sums of their verdicts, and the ledger. With
`repeat NAME...` some cells of recorded suites are trained again from another seed, and `estimate
NAME...` measures what suites would take, for the ledger. The page of the map is made by
`docs/learned.py`.
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
from dataclasses import replace
from importlib.metadata import version
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
from statetrack.report.repeated import decided_cells, repeated_page
from statetrack.report.reproductions import machine_of, reproduction_page, with_totals
from statetrack.runs import RunFolder, files, processor_name
from statetrack.sweep import (
    SUITES,
    Compared,
    Failed,
    Local,
    Point,
    Suite,
    estimate,
    kept_result,
    points_of,
    run_suite,
)

DOCS = Path(__file__).parent
RECORDS, PAGES = DOCS / "recorded", DOCS / "reproductions"
REPEATED = RECORDS / "repeated"
"""Records of some cells of suites, from another seed than the suite's own."""

ESTIMATES = RECORDS / "estimates.json"
"""Seconds of points that were not recorded, as `reproduce --dry-run --json` gives them."""

OTHER_SEED, NUM_CELLS = 200, 3
"""The first seed of what is repeated, and how many cells of each suite are."""

OTHERS = {
    "claims": "python -m tests.claims --json tests/claims/recorded.json",
    "attacks": (
        "python -m tests.evidence --cases 120 --seconds 0.5 --json tests/evidence/recorded.json"
    ),
    "precision": "python -m tests.precision",
    "benchmarks": "python -m tests.benchmarks.ratios",
    "atlas": "statetrack atlas machines --train",
}
"""Recorded tables that are no suite's, and the commands that make them."""

MAP = "map"
"""The suite whose page is made by `docs/learned.py`."""


def records(folder: Path = RECORDS) -> dict[str, RecordedTable]:
    """Every recorded table of a folder, by its name."""
    found = sorted(each for each in folder.glob("*.json") if each != ESTIMATES)
    return {each.stem: RecordedTable.read(each) for each in found}


def commit() -> str:
    """The commit of the code, and whether it was changed since."""

    def git(*words: str) -> str:
        told = subprocess.run(["git", *words], cwd=DOCS, capture_output=True, text=True, check=True)
        return told.stdout.strip()

    changed = git("status", "--porcelain", "--", "../statetrack", "../tasks")
    return git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")


def record_suite(
    name: str,
    budget: str | None,
    runs: Path,
    *,
    finished: bool = False,
    stress: bool = False,
    evidence: bool = False,
) -> RecordedTable:
    """Run a suite, or go on with it, and record what was measured.

    With `finished` nothing is trained: only the points that are finished are recorded. With
    `stress` the worst words are sought as well, with the work that the command gives it, and with
    `evidence` also all other evidence.
    """
    suite = SUITES[name].for_budget(budget)
    folder = runs / (name if budget in (None, "minutes") else f"{name}-{budget}")
    said = ["reproduce", name, *(["--budget", budget] if budget else [])]
    said += ["--evidence"] if evidence else []
    more = ["--finished"] if finished else []
    more += [] if stress or evidence else ["--stress-seconds", "0"]
    if code := run([*said, *more, "--out", str(folder), "--jobs", "1"]):
        raise SystemExit(code)
    points = points_of(suite, folder, {}, to_train=False)
    command = f"statetrack {shlex.join(said)}"
    return _recorded(name, suite, points, command=command, budget=budget)


def repeat_suite(table: RecordedTable, runs: Path, *, seed: int, num_cells: int) -> RecordedTable:
    """Train some cells of a recorded suite again, from another seed, and record them."""
    suite = replace(table, seed=seed).suite_now
    cells = decided_cells(table)[:num_cells]
    points = points_of(suite, runs / f"{table.name}-seed-{seed}", {})
    points = [point for point in points if (point.row, point.column) in cells]
    for done in run_suite(suite, points, Local(jobs=1)):
        print(f"{table.name}, seed {seed}: {done.row} on {done.column}", file=sys.stderr)
        if isinstance(done, Failed):
            raise SystemExit(done.error)
    command = f"python docs/recorded.py repeat {table.name}"
    return _recorded(table.name, suite, points, command=command, budget=table.budget, seed=seed)


def _recorded(
    name: str, suite: Suite, points: Sequence[Point], *, command: str, **more: Any
) -> RecordedTable:
    """The record of those points of a suite that are finished."""
    finished, cells, machines = [], [], set()
    for point in points:
        result = kept_result(suite, point)
        if result is None:
            continue
        finished.append(point)
        cells.append(RecordedCell.of(result, RunFolder(point.path).read(files.SUMMARY)))
        machines.add(machine_of(point.path))
    return RecordedTable(
        **_about(name, command),
        machine="; ".join(sorted(machines)),
        seconds=round(sum(cell.seconds for cell in cells), 1),
        depends=dependencies(finished),
        suite=name,
        settings=settings_of(suite, finished),
        cells=cells,
        **more,
    )


def estimate_suite(name: str, budget: str | None) -> None:
    """Measure what every point of a suite would take from its beginning, and keep it."""
    suite = SUITES[name].for_budget(budget)
    points = points_of(suite, Path("nowhere"), {})
    seconds: dict[str, dict[str, float]] = {}
    for each in estimate(suite, points, jobs=1).points:
        seconds.setdefault(each.row, {})[each.column] = round(each.seconds, 1)
    found = {suite: dict(within) for suite, within in estimates().items()}
    found.setdefault(name, {})[budget or "minutes"] = seconds
    ESTIMATES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{name}: {sum(sum(of.values()) for of in seconds.values()):,.0f} s")


def with_kept(table: RecordedTable, before: RecordedTable) -> RecordedTable:
    """A table with the cells of its record before that it lacks, those of them that still hold."""
    if before.budget != table.budget:
        return table
    there = {(cell.row, cell.column) for cell in table.cells}
    kept = [cell for cell in before.cells_that_hold() if (cell.row, cell.column) not in there]
    if not kept:
        return table
    cells = [*kept, *table.cells]
    machines = dict.fromkeys(each for each in (before.machine, table.machine) if each)
    both = replace(
        table,
        cells=cells,
        machine="; ".join(machines),
        seconds=round(sum(cell.seconds for cell in cells), 1),
    )
    points = both.points
    return replace(both, depends=dependencies(points), settings=settings_of(both.suite_now, points))


def record_other(name: str) -> RecordedTable:
    """Run the command of a table that is no suite's, which writes it, and record that."""
    command, started = OTHERS[name], time.monotonic()
    words = shlex.split(command)
    program = [sys.executable, *(words[1:] if words[0] == "python" else ["-m", *words])]
    subprocess.run(program, cwd=DOCS.parent, check=True)
    return RecordedTable(
        **_about(name, command),
        machine=f"{processor_name()}, torch {version('torch')}",
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
    about = f"{table.machine}, commit {table.commit}, {table.date}"
    return reproduction_page(
        table.suite_now,
        command=table.command,
        points=table.all_points,
        results=table.results,
        compared=table.compared,
        evidence="--evidence" in table.command,
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
    yield PAGES / "other-seeds.md", repeated_page(found, records(REPEATED))
    index = PAGES / "index.md"
    yield index, with_totals(index.read_text("utf-8"), compared)
    ledger = DOCS / "ledger.md"
    yield ledger, ledger_markdown(found, estimates())


def status(found: dict[str, RecordedTable]) -> Iterator[str]:
    """One line for every table: whether it holds, and why not."""
    for name, table in found.items():
        why = table.why_stale()
        more = f"; {len(why) - 3:,} more" if len(why) > 3 else ""
        said = f"stale: {'; '.join(why[:3])}{more}" if why else "holds"
        yield f"{name}: {said} ({table.command})"
    for name in SUITES:
        if SUITES[name].published_tables and name not in found:
            yield f"{name}: not recorded"


def main(argv: Sequence[str]) -> int:
    """Say what holds, or record, or write pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("do", nargs="?", choices=("record", "repeat", "estimate", "pages"))
    parser.add_argument("names", nargs="*", help="suites, or " + ", ".join(OTHERS))
    parser.add_argument("--budget")
    parser.add_argument("--finished", action="store_true", help="record only what is trained")
    parser.add_argument("--stress", action="store_true", help="seek the worst words as well")
    parser.add_argument("--evidence", action="store_true", help="seek all other evidence as well")
    parser.add_argument("--runs", type=Path, default=Path("suites"), help="the folder of runs")
    parser.add_argument("--seed", type=int, default=OTHER_SEED, help="the first seed of a repeat")
    parser.add_argument("--cells", type=int, default=NUM_CELLS, help="how many are repeated")
    given = parser.parse_args(argv)
    for name in given.names if given.do != "pages" else ():
        if given.do == "estimate":
            estimate_suite(name, given.budget)
        elif given.do == "repeat":
            table = RecordedTable.read(RECORDS / f"{name}.json")
            again = repeat_suite(table, given.runs, seed=given.seed, num_cells=given.cells)
            REPEATED.mkdir(exist_ok=True)
            again.write(REPEATED / f"{name}.json")
        elif name in OTHERS:
            record_other(name).write(RECORDS / f"{name}.json")
        else:
            how = {each: getattr(given, each) for each in ("finished", "stress", "evidence")}
            table = record_suite(name, given.budget, given.runs, **how)
            record = RECORDS / f"{name}.json"
            if given.finished and record.is_file():
                table = with_kept(table, RecordedTable.read(record))
            table.write(record)
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
