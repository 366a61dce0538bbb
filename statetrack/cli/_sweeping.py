"""What `sweep` and `reproduce` share: choosing points, running them, and showing the table."""

from __future__ import annotations

import inspect
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack import report, runs, sweep
from statetrack.cli import _tables as tables
from statetrack.cli import options
from statetrack.cli._terminal import INTERRUPTED, interruptible, note, print_json
from statetrack.errors import SettingsError, StatetrackError, nearest_or_known
from statetrack.text import visible

_SELECTED = " of the replica that validation selected, and replicas with nothing wrong"
LEGENDS = {
    "accuracy": "accuracy" + _SELECTED,
    "scaled": "accuracy with chance at 0" + _SELECTED,
    "success": "share of replicas that are right on every test word",
}

NO_WORST = "worst-case horizon: not measured (--stress-seconds)"
LEGEND_OF_WORST = (
    "below it the worst-case horizon: every word tried is right up to that length, and one of "
    "the next fails; >= where none that was tried fails"
)

RowNames = Annotated[
    list[str] | None,
    typer.Option(
        "--rows", metavar="NAMES", help="Only these rows, with commas between; repeatable."
    ),
]
ColumnNames = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", metavar="NAMES", help="Only these columns, with commas between; repeatable."
    ),
]
ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Where points are run: local, ray or slurm; each has options of its own.",
    ),
]
OnlyFinished = Annotated[
    bool,
    typer.Option(
        "--finished",
        help="Train nothing: show the points whose training is finished, the others as not "
        "measured.",
    ),
]
HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write everything as one HTML page."),
]
WithEvidence = Annotated[
    bool,
    typer.Option(
        "--evidence",
        help="Also all other evidence about each point's selected replica, in a second table.",
    ),
]
StressSeconds = Annotated[
    float,
    typer.Option(
        help="Time for the worst word of each point's selected replica; 0: none is sought.",
        min=0.0,
        max=10**6,
    ),
]
EvidenceSeconds = Annotated[
    float,
    typer.Option(help="Time for each other kind of evidence of a point.", min=0.1, max=10**6),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print the points with their parameters and an estimate of the time, and run none.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="One JSON object on stdout, and nothing else."),
]


@dataclass(frozen=True)
class Sweep:
    """What a command line asks for: a suite as it is run, where, and what is shown."""

    suite: sweep.Suite
    name: str
    folder: Path
    executor: sweep.Executor
    command: str
    stress_seconds: float = 0.0
    evidence_seconds: float = 0.0
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    markdown: Path | None = None
    html: Path | None = None
    files: Sequence[Path] = ()
    finished: bool = False
    budget: str | None = None
    log: tuple[str, ...] = ()
    dry_run: bool = False
    as_json: bool = False

    @property
    def searching(self) -> sweep.Searching:
        """What is looked for beyond accuracies."""
        return sweep.Searching(worst=self.stress_seconds, others=self.evidence_seconds)


def executor_parameters(argv: Sequence[str]) -> list[inspect.Parameter]:
    """The options of the executor that a command line names."""
    name = options.peek(argv, "--executor") or "local"
    return options.parameters(sweep.EXECUTORS[name], f"Executor {name}")


def executor_of(name: str, given: Mapping[str, Any]) -> sweep.Executor:
    """The executor of a name, with its options."""
    return options.collect(sweep.EXECUTORS[name], given)


def chosen_names(given: Sequence[str] | None, names: Mapping[str, str], option: str) -> list[str]:
    """The names that are asked for, in their order; all where none is.

    `names` has for every name another one that stands for it too, such as that of its model.
    Raises `SettingsError` for one that there is not, with the nearest.
    """
    if not given:
        return list(names)
    known = {*names, *names.values()}
    asked = [
        part.strip()
        for text in given
        for part in ([text] if text in known else text.split(","))
        if part.strip()
    ]
    if not asked:
        raise SettingsError(f"{option}: names none.{nearest_or_known('', names)}")
    for part in asked:
        if part not in known:
            raise SettingsError(f"{option}: there is no '{part}'.{nearest_or_known(part, known)}")
    return [name for name, other in names.items() if name in asked or other in asked]


def run(asked: Sweep) -> None:
    """Run a sweep, and show its table.

    Raises `StatetrackError` where points failed, once everything is printed.
    """
    runs.require_logs(asked.log)
    suite = asked.suite
    models = {
        name: next(each for each in suite.models if name == each or name.startswith(f"{each}, "))
        for name in suite.rows
    }
    rows = chosen_names(asked.rows, models, "--rows")
    columns = chosen_names(asked.columns, {name: name for name in suite.columns}, "--columns")
    every_point = sweep.points_of(suite, asked.folder, {}, to_train=False)
    points = [point for point in every_point if point.row in rows and point.column in columns]
    trained = [point for point in points if runs.RunFolder(point.path).finished]
    if asked.dry_run or not (asked.finished or len(trained) == len(points)):
        for point in every_point:
            sweep.require_trainable(point)
    if asked.dry_run:
        _print_estimates(asked, points)
        return
    if asked.budget is not None and not asked.as_json:
        report.console().print(f"budget {asked.budget}: {suite.departures}")
    started = time.perf_counter()
    chosen = trained if asked.finished else points
    every = run_points(suite, chosen, asked.executor, asked.searching, asked.log)
    _show(asked, points, rows, columns, every, time.perf_counter() - started)


def _print_estimates(asked: Sweep, points: Sequence[sweep.Point]) -> None:
    """What the points would take, as a table or JSON; nothing is run or written."""
    note(f"timing a few steps of every kind of point: about {sweep.BUDGET:g} s at most")
    found = sweep.estimate(asked.suite, points, asked.executor.num_at_once, asked.searching)
    if asked.as_json:
        print_json(found.to_json())
        return
    to = report.console()
    to.print(report.estimates_table(found))
    for line in report.estimates_lines(found):
        to.print(line)


def run_points(
    suite: sweep.Suite,
    points: Sequence[sweep.Point],
    executor: sweep.Executor,
    searching: sweep.Searching | None = None,
    log: tuple[str, ...] = (),
) -> list[sweep.Done]:
    """What became of every point; failures are named on standard error.

    Raises `typer.Exit` where the sweep was interrupted, and `StatetrackError` for a full disk.
    """
    from statetrack.cli._sweep_progress import following

    searching = searching or sweep.Searching()
    every = []
    with interruptible() as stop, following(points, stop) as progress:
        for done in sweep.run_suite(suite, points, executor, stop, searching, log):
            every.append(done)
            progress.end(done)
    failed = [done for done in every if isinstance(done, sweep.Failed)]
    for one in failed:
        where = f"; its traceback is in {one.file}" if one.traceback and one.file else ""
        line = f"failed: {one.row} on {one.column}: {one.error}{where}"
        typer.echo(visible(line), err=True)
    finished = len(every) - len(failed)
    counted = f"{finished} of {len(points)} points finished"
    full = next((one for one in failed if one.full), None)
    if full is not None:
        raise StatetrackError(
            f"{full.error}: the disk is full, with {counted} and kept: make room, and the same "
            "command continues"
        )
    if len(every) < len(points):
        typer.echo(f"interrupted with {counted}; the same command continues", err=True)
        raise typer.Exit(INTERRUPTED)
    return every


def _show(
    asked: Sweep,
    points: Sequence[sweep.Point],
    rows: Sequence[str],
    columns: Sequence[str],
    every: Sequence[sweep.Done],
    wall: float,
) -> None:
    """The table and all that stands below it, or JSON; the pages, where they are asked for."""
    suite = asked.suite
    places = {(row, column): n for n, (column, row) in enumerate(product(columns, rows))}
    results = sorted(
        (done for done in every if isinstance(done, sweep.PointResult)),
        key=lambda result: places[result.row, result.column],
    )
    compared = [
        each
        for each in sweep.compare_published(suite, points, every)
        if (each.row, each.column) in places
    ]
    if asked.as_json:
        print(report.json_text(_report(asked, rows, columns)), end="")
    else:
        _draw(asked, points, rows, columns, results, compared, wall)
    for result in results:
        if (wrong := result.bracket.contradiction) is not None:
            typer.echo(f"warning: {result.column}, {result.row}: CONTRADICTION: {wrong}", err=True)
    for option, file in (("--markdown", asked.markdown), ("--html", asked.html)):
        if file is None:
            continue
        if option == "--html":
            page = report.page(_report(asked, rows, columns))
        else:
            page = report.reproduction_page(
                suite,
                command=_command(asked),
                points=points,
                results=every,
                compared=compared,
                evidence=bool(asked.evidence_seconds),
            )
        kept = f"; the results are kept: the same command with another {option} writes them"
        tables.write_file(file, page, option, f"{kept} without training")
    if asked.files:
        document = report.Wanted().document(_report(asked, rows, columns))
        for file in asked.files:
            tables.write_document(document, file, quietly=asked.as_json)
    if len(results) < len(every):
        raise StatetrackError(
            f"{len(every) - len(results)} of {len(points)} points failed; the same command tries "
            "them again"
        )


def _draw(
    asked: Sweep,
    points: Sequence[sweep.Point],
    rows: Sequence[str],
    columns: Sequence[str],
    results: Sequence[sweep.PointResult],
    compared: Sequence[sweep.Compared],
    wall: float,
) -> None:
    """The table, and all that stands below it."""
    suite, to = asked.suite, report.console()
    title = f"{suite.title}\nlength {suite.length}, {suite.samples:,} words per replica"
    published = report.beside(compared, suite.measure)
    to.print(report.suite_table(title, rows, columns, results, published, suite.measure))
    called = suite.published_as if suite.published else "published"
    to.print(LEGENDS[suite.measure] + (f"; in brackets: {called}" if published else ""))
    to.print(LEGEND_OF_WORST if asked.stress_seconds else NO_WORST)
    if asked.evidence_seconds:
        to.print(report.evidence_table(rows, columns, results))
    if compared:
        to.print(report.verdict_table(compared))
        for line in (*report.legend(compared), f"verdicts: {report.summary(compared)}"):
            to.print(line)
    said = [report.TrainedPoint(each.row, each.column, each.experiment) for each in points]
    for line in report.training_lines(report.training_of(said)):
        to.print(line)
    if suite.departures:
        to.print(f"otherwise than in {suite.reference}: {suite.departures}")
    if derived := sweep.departures_from_paper(suite, points):
        to.print(f"from the settings, ours for the paper's: {derived}")
    trained = sum(result.seconds for result in results)
    to.print(f"training {trained:.1f} s in total, {wall:.1f} s elapsed")
    to.print(f"runs: {asked.folder}", soft_wrap=True)


def _command(asked: Sweep) -> str:
    """The command that makes a page."""
    said = not asked.evidence_seconds or "--evidence" in shlex.split(asked.command)
    return asked.command if said else f"{asked.command} --evidence"


def _report(asked: Sweep, rows: Sequence[str], columns: Sequence[str]) -> report.Report:
    """The report of what was run, which is read back from the folder."""
    found = report.gather_suite(asked.suite, asked.folder, name=asked.name)
    return replace(
        found,
        entries=tuple(e for e in found.entries if e.row in rows and e.column in columns),
        row_names=tuple(rows),
        column_names=tuple(columns),
        budget=asked.budget,
        command=_command(asked),
    )
