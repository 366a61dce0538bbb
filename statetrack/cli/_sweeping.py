"""What `sweep` and `reproduce` share: choosing points, running them, and showing the table."""

from __future__ import annotations

import inspect
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli import _tables as tables
from statetrack.cli import options
from statetrack.cli._estimates import print_estimates
from statetrack.cli._interrupt import INTERRUPTED, interruptible
from statetrack.errors import SettingsError, StatetrackError, nearest_or_known
from statetrack.report import console
from statetrack.sweep import EXECUTORS, Suite
from statetrack.text import visible

if TYPE_CHECKING:
    from statetrack.report import Report
    from statetrack.sweep import Compared, Done, Executor, Point, PointResult, Searching

_SELECTED = " of the replica that validation selected, and replicas with nothing wrong"
LEGENDS = {
    "accuracy": "accuracy" + _SELECTED,
    "scaled": "accuracy with chance at 0" + _SELECTED,
    "success": "share of replicas that are right on every test word",
}

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

    suite: Suite
    name: str
    folder: Path
    executor: Executor
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


def executor_parameters(argv: Sequence[str]) -> list[inspect.Parameter]:
    """The options of the executor that a command line names."""
    name = options.peek(argv, "--executor") or "local"
    return options.parameters(EXECUTORS[name], f"Executor {name}")


def executor_of(name: str, given: Mapping[str, Any]) -> Executor:
    """The executor of a name, with its options."""
    return options.collect(EXECUTORS[name], given)


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
    from statetrack.runs import RunFolder, require_logs
    from statetrack.sweep import points_of, require_trainable

    require_logs(asked.log)
    suite = asked.suite
    models = {name: next(m for m in suite.models if _is_of(name, m)) for name in suite.rows}
    rows = chosen_names(asked.rows, models, "--rows")
    columns = chosen_names(asked.columns, {name: name for name in suite.columns}, "--columns")
    every_point = points_of(suite, asked.folder, {}, to_train=False)
    points = [point for point in every_point if point.row in rows and point.column in columns]
    trained = [point for point in points if RunFolder(point.path).finished]
    if asked.dry_run or not (asked.finished or len(trained) == len(points)):
        for point in every_point:
            require_trainable(point)
    if asked.dry_run:
        print_estimates(suite, points, asked.executor, _searching(asked), as_json=asked.as_json)
        return
    if asked.budget is not None and not asked.as_json:
        console().print(f"budget {asked.budget}: {suite.departures}")
    started = time.perf_counter()
    every = run_points(asked, trained if asked.finished else points)
    wall = time.perf_counter() - started
    _show(asked, points, rows, columns, every, wall)


def _searching(asked: Sweep) -> Searching:
    """What is looked for beyond accuracies."""
    from statetrack.sweep import Searching

    return Searching(worst=asked.stress_seconds, others=asked.evidence_seconds)


def _is_of(row: str, model: str) -> bool:
    """Whether a row is that of a model, at some value of every axis."""
    return row == model or row.startswith(f"{model}, ")


def run_points(asked: Sweep, points: Sequence[Point]) -> list[Done]:
    """What became of every point; failures are named on standard error.

    Raises `typer.Exit` where the sweep was interrupted, and `StatetrackError` for a full disk.
    """
    from statetrack.cli._sweep_progress import following
    from statetrack.sweep import Failed, run_suite

    searching = _searching(asked)
    every = []
    with interruptible() as stop, following(points, stop) as progress:
        for done in run_suite(asked.suite, points, asked.executor, stop, searching, asked.log):
            every.append(done)
            progress.end(done)
    failed = [done for done in every if isinstance(done, Failed)]
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
    points: Sequence[Point],
    rows: Sequence[str],
    columns: Sequence[str],
    every: Sequence[Done],
    wall: float,
) -> None:
    """The table and all that stands below it, or JSON; the pages, where they are asked for."""
    from statetrack.report import Wanted, json_text, page, reproduction_page
    from statetrack.sweep import PointResult, compare_published

    suite = asked.suite
    places = {(row, column): n for n, (column, row) in enumerate(product(columns, rows))}
    results = sorted(
        (done for done in every if isinstance(done, PointResult)),
        key=lambda result: places[result.row, result.column],
    )
    compared = [
        each
        for each in compare_published(suite, points, every)
        if (each.row, each.column) in places
    ]
    if asked.as_json:
        print(json_text(_report(asked, rows, columns)), end="")
    else:
        _draw(asked, points, rows, columns, results, compared, wall)
    for result in results:
        if (wrong := result.bracket.contradiction) is not None:
            typer.echo(f"warning: {result.column}, {result.row}: CONTRADICTION: {wrong}", err=True)
    if asked.markdown is not None:
        written = reproduction_page(
            suite,
            command=_command(asked),
            points=points,
            results=every,
            compared=compared,
            evidence=bool(asked.evidence_seconds),
        )
        _write(asked.markdown, written, "--markdown")
    if asked.html is not None:
        _write(asked.html, page(_report(asked, rows, columns)), "--html")
    if asked.files:
        document = Wanted().document(_report(asked, rows, columns))
        for file in asked.files:
            tables.write_document(document, file, quietly=asked.as_json)
    if len(results) < len(every):
        raise StatetrackError(
            f"{len(every) - len(results)} of {len(points)} points failed; the same command tries "
            "them again"
        )


def _draw(
    asked: Sweep,
    points: Sequence[Point],
    rows: Sequence[str],
    columns: Sequence[str],
    results: Sequence[PointResult],
    compared: Sequence[Compared],
    wall: float,
) -> None:
    """The table, and all that stands below it."""
    from statetrack.report import (
        TrainedPoint,
        beside,
        evidence_table,
        legend,
        suite_table,
        summary,
        training_lines,
        training_of,
        verdict_table,
    )
    from statetrack.sweep import departures_from_paper

    suite = asked.suite
    title = f"{suite.title}\nlength {suite.length}, {suite.samples:,} words per replica"
    to = console()
    published = beside(compared, suite.measure)
    to.print(suite_table(title, rows, columns, results, published, suite.measure))
    to.print(_legend(suite, published))
    to.print(_legend_of_worst(asked.stress_seconds))
    if asked.evidence_seconds:
        to.print(evidence_table(rows, columns, results))
    if compared:
        to.print(verdict_table(compared))
        for line in (*legend(compared), f"verdicts: {summary(compared)}"):
            to.print(line)
    said = [TrainedPoint(each.row, each.column, each.experiment) for each in points]
    for line in training_lines(training_of(said)):
        to.print(line)
    if suite.departures:
        to.print(f"otherwise than in {suite.reference}: {suite.departures}")
    if derived := departures_from_paper(suite, points):
        to.print(f"from the settings, ours for the paper's: {derived}")
    trained = sum(result.seconds for result in results)
    to.print(f"training {trained:.1f} s in total, {wall:.1f} s elapsed")
    to.print(f"runs: {asked.folder}", soft_wrap=True)


def _command(asked: Sweep) -> str:
    """The command that makes a page."""
    said = not asked.evidence_seconds or "--evidence" in shlex.split(asked.command)
    return asked.command if said else f"{asked.command} --evidence"


def _report(asked: Sweep, rows: Sequence[str], columns: Sequence[str]) -> Report:
    """The report of what was run, which is read back from the folder."""
    from statetrack.report import gather_suite

    found = gather_suite(asked.suite, asked.folder, name=asked.name)
    return replace(
        found,
        entries=tuple(e for e in found.entries if e.row in rows and e.column in columns),
        row_names=tuple(rows),
        column_names=tuple(columns),
        budget=asked.budget,
        command=_command(asked),
    )


def _write(file: Path, text: str, option: str) -> None:
    then = (
        "; the results are kept: the same command with another "
        f"{option} writes them without training"
    )
    tables.write_file(file, text, option, then)


def _legend(suite: Suite, published: Mapping[str, object]) -> str:
    said = suite.published_as if suite.published else "published"
    return LEGENDS[suite.measure] + (f"; in brackets: {said}" if published else "")


def _legend_of_worst(seconds: float) -> str:
    if not seconds:
        return "worst-case horizon: not measured (--stress-seconds)"
    return (
        "below it the worst-case horizon: every word tried is right up to that length, and one of "
        "the next fails; >= where none that was tried fails"
    )
