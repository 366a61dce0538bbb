"""Train and evaluate a whole suite, and compare it with published numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli._files import require_writable
from statetrack.cli._interrupt import INTERRUPTED, interruptible
from statetrack.errors import StatetrackError
from statetrack.report.drawing import console
from statetrack.sweep.suite import Suite, folder_of, load_suite
from statetrack.text import visible

_SELECTED = " of the replica that validation selected, and replicas with nothing wrong"
LEGENDS = {
    "accuracy": "accuracy" + _SELECTED,
    "scaled": "accuracy with chance at 0" + _SELECTED,
    "success": "share of replicas that are right on every test word",
}

PLACE = 10
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return reproduce


def reproduce(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="A suite's name, or a .yaml file.")],
    *,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET",
            help="minutes, hours or paper, where the suite has them; by default minutes.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The suite's runs; by default suites/SUITE, and suites/SUITE-BUDGET within "
            "another budget than minutes.",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            help="Points trained at once, one thread each; 0: one for each core that the process "
            "may use.",
            min=0,
        ),
    ] = 0,
    seeds: Annotated[int, typer.Option(help="Seeds of each point; 0: the suite's own.", min=0)] = 0,
    steps: Annotated[int, typer.Option(help="Steps of each point; 0: the suite's own.", min=0)] = 0,
    finished: Annotated[
        bool,
        typer.Option(
            "--finished",
            help="Train nothing: show the points whose training is finished, the others as not "
            "measured.",
        ),
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write a page in Markdown: table, verdicts, every point."
        ),
    ] = None,
    stress_seconds: Annotated[
        float,
        typer.Option(
            help="Time for the worst word of each cell's selected replica; 0: none is sought.",
            min=0.0,
            max=10**6,
        ),
    ] = 5.0,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Also all other evidence about each cell's selected replica, in a second table.",
        ),
    ] = False,
    evidence_seconds: Annotated[
        float,
        typer.Option(help="Time for each other kind of evidence of a cell.", min=0.1, max=10**6),
    ] = 12.0,
) -> None:
    """Train and evaluate a whole suite: models x tasks, one table.

    Below each accuracy stands the worst-case horizon: the length up to which every word is right
    that was tried against the selected replica. A second table compares every published number with
    what was measured: it agrees, differs, or is not comparable, and why.

    An interrupted suite continues where it was: finished cells are not run again, and others
    continue from their last checkpoint.
    """
    from tqdm import tqdm  # this and torch are not needed for `--help`

    from statetrack.report.reproductions import reproduction_page
    from statetrack.report.suites import evidence_table, suite_table
    from statetrack.report.training import TrainedPoint, training_lines, training_of
    from statetrack.report.verdicts import beside, legend, summary, verdict_table
    from statetrack.runs.folder import RunFolder
    from statetrack.sweep.executors._base import Failed
    from statetrack.sweep.executors.local import Local
    from statetrack.sweep.points import points_of
    from statetrack.sweep.published import compare_published, departures_from_paper
    from statetrack.sweep.results import PointResult
    from statetrack.sweep.running import run_suite
    from statetrack.sweep.searching import Searching

    chosen = load_suite(suite).for_budget(budget)
    if markdown is not None:
        require_writable(markdown, "--markdown")
    given = {"seeds": seeds, "steps": steps}
    folder = out or folder_of(suite, budget)
    overrides = {key: number for key, number in given.items() if number}
    points = points_of(chosen, folder, overrides)
    searching = Searching(worst=stress_seconds, others=evidence_seconds if evidence else 0.0)
    to_run = [point for point in points if not finished or RunFolder(point.path).finished]
    started = time.perf_counter()
    with interruptible() as stop:
        every = list(
            tqdm(
                run_suite(chosen, to_run, Local(jobs=jobs), stop, searching),
                total=len(to_run),
                unit="point",
                desc=visible(Path(suite).stem),
                file=sys.stderr,
                disable=None,
            )
        )
    results = [done for done in every if isinstance(done, PointResult)]
    failed = [done for done in every if isinstance(done, Failed)]
    full = next((one for one in failed if one.full), None)
    if full is not None:
        raise StatetrackError(
            f"{full.error}: {len(results)} of {len(points)} points are finished and kept; make "
            "room, and the same command continues"
        )
    for one in failed:
        where = f"; its traceback is in {one.file}" if one.traceback and one.file else ""
        typer.echo(f"failed: {one.row} on {one.column}: {visible(one.error)}{where}", err=True)
    if len(every) < len(to_run):
        typer.echo(
            f"interrupted with {len(results)} of {len(points)} points finished; "
            "the same command continues",
            err=True,
        )
        raise typer.Exit(INTERRUPTED)
    rows, columns = list(chosen.rows), list(chosen.columns)
    compared = compare_published(chosen, points, every)
    published = beside(compared, chosen.measure)
    title = f"{chosen.title}\nlength {chosen.length}, {chosen.samples:,} words per replica"
    to = console()
    to.print(suite_table(title, rows, columns, results, published, chosen.measure))
    to.print(_legend(chosen, published))
    to.print(_legend_of_worst(stress_seconds))
    if evidence:
        to.print(evidence_table(rows, columns, results))
    for result in results:
        if (wrong := result.bracket.contradiction) is not None:
            typer.echo(f"warning: {result.column}, {result.row}: CONTRADICTION: {wrong}", err=True)
    if compared:
        to.print(verdict_table(compared))
        for line in (*legend(compared), f"verdicts: {summary(compared)}"):
            to.print(line)
    training = training_of(
        [TrainedPoint(each.row, each.column, each.experiment) for each in points]
    )
    for line in training_lines(training):
        to.print(line)
    if chosen.departures:
        to.print(f"otherwise than in {chosen.reference}: {chosen.departures}")
    if derived := departures_from_paper(chosen, points):
        to.print(f"from the settings, ours for the paper's: {derived}")
    trained = sum(result.seconds for result in results)
    wall = time.perf_counter() - started
    to.print(f"training {trained:.1f} s in total, {wall:.1f} s elapsed")
    to.print(f"runs: {folder}", soft_wrap=True)
    if markdown is not None:
        options = {"budget": budget, "seeds": seeds, "steps": steps}
        command = ["statetrack", "reproduce", suite]
        command += [f"--{name} {value}" for name, value in options.items() if value]
        page = reproduction_page(
            chosen,
            command=" ".join([*command, "--evidence"] if evidence else command),
            points=points,
            results=every,
            compared=compared,
            evidence=evidence,
        )
        _write(markdown, page)
    if failed:
        raise StatetrackError(
            f"{len(failed)} of {len(points)} points failed; the same command tries them again"
        )


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise StatetrackError(
            f"--markdown {file}: cannot be written: {problem.strerror}; the results are kept: the "
            "same command with another --markdown writes them without training"
        ) from None


def _legend(chosen: Suite, published: Mapping[str, object]) -> str:
    said = chosen.published_as if chosen.published else "published"
    return LEGENDS[chosen.measure] + (f"; in brackets: {said}" if published else "")


def _legend_of_worst(seconds: float) -> str:
    if not seconds:
        return "worst-case horizon: not measured (--stress-seconds)"
    return (
        "below it the worst-case horizon: every word tried is right up to that length, and one of "
        "the next fails; >= where none that was tried fails"
    )
