"""What `sweep` and `reproduce` share: options, choosing points, running them, and the table.

While points run, standard error has one display in a terminal, and lines of a log elsewhere. The
seconds that are left are computed from what the points that ended have taken: those of the same
model say most about the others. A point counts by its steps, words and lengths.
"""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from statetrack import report, runs, sweep
from statetrack.cli import _terminal as terminal
from statetrack.cli import options
from statetrack.cli._terminal import (
    INTERRUPTED,
    clock,
    interruptible,
    is_quiet,
    note,
    print_json,
    require_writable,
)
from statetrack.errors import SettingsError, StatetrackError
from statetrack.text import as_argument, visible

NO_WORST = "worst-case horizon: not measured (--stress-seconds)"
LEGEND_OF_WORST = (
    "worst-case horizon: one of the next words fails; >= where none that was tried fails, or none "
    "can by proof"
)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a command line asks for: a suite as it is run, where, and what is shown.

    The fields that have an option are options of both commands; `of_executor` has those of the
    executor.
    """

    suite: sweep.Suite
    name: str
    folder: Path
    command: str
    of_executor: Mapping[str, Any]
    files: Sequence[Path] = ()
    budget: str | None = None
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows", metavar="NAMES", help="Only these rows, with commas between; repeatable."
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="NAMES",
            help="Only these columns, with commas between; repeatable.",
        ),
    ] = None
    finished: Annotated[
        bool,
        typer.Option(
            "--finished",
            help="Train nothing: show the points whose training is finished, the others as not "
            "measured.",
        ),
    ] = False
    markdown: options.MarkdownFile = None
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write everything as one HTML page."),
    ] = None
    stress_seconds: Annotated[
        float,
        typer.Option(
            help="Work of the search for the worst word of each point's selected replica, in "
            "seconds of a nominal speed; 0: none is sought.",
            min=0.0,
            max=10**6,
        ),
    ] = 0.0
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Also all other evidence about each point's selected replica, in a second table.",
        ),
    ] = False
    evidence_seconds: Annotated[
        float,
        typer.Option(
            help="Work of the search for each other kind of evidence of a point.",
            min=0.1,
            max=10**6,
        ),
    ] = 12.0
    log: options.Logs = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the points with their parameters and an estimate of the time, and run "
            "none.",
        ),
    ] = False
    as_json: options.AsJson = False
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="NAME",
            help="Where points are run: local, ray or slurm; each has options of its own.",
        ),
    ] = "local"

    @property
    def searching(self) -> sweep.Searching:
        """What is looked for beyond accuracies."""
        others = self.evidence_seconds if self.evidence else 0.0
        return sweep.Searching(worst=self.stress_seconds, others=others)


OPTIONS = {
    name: one
    for name, one in inspect.signature(Sweep, eval_str=True).parameters.items()
    if get_origin(one.annotation) is Annotated
}
"""The options that both commands have, by their names."""


def with_options(
    command: Callable[..., None],
    argv: Sequence[str],
    *,
    stress_seconds: float,
    after_columns: Sequence[str] = (),
    more: Sequence[inspect.Parameter] = (),
) -> Callable[..., None]:
    """The command with the options of a sweep, `more`, and those of the executor that it names.

    `after_columns` names options of the command itself that help shows after `--columns`.
    """
    written = inspect.signature(command, eval_str=True).parameters
    late = [written[name] for name in after_columns]
    own = [
        one
        for name, one in written.items()
        if one.kind is not inspect.Parameter.VAR_KEYWORD and name not in after_columns
    ]
    first, second, *shared = (
        one.replace(default=stress_seconds) if one.name == "stress_seconds" else one
        for one in OPTIONS.values()
    )
    name = options.peek(argv, "--executor") or "local"
    executor = options.parameters(sweep.EXECUTORS[name], f"Executor {name}")
    every = [*own, first, second, *late, *shared, *more, *executor]
    return options.with_parameters(command, every)


def chosen_names(
    given: Sequence[str] | None,
    names: Mapping[str, str],
    option: str,
    left_out: Mapping[str, str] | None = None,
) -> list[str]:
    """The names that are asked for (`options.names_among`), in their own order; all where none is.

    Raises `SettingsError` as that does.
    """
    asked = options.names_among(given, names, option, left_out) if given else names
    return [name for name in names if name in asked]


def _left_out(own: Container[str], whole: Iterable[str], budget: str | None) -> dict[str, str]:
    """The names of a whole suite that a budget leaves out, with what is said of each."""
    return {
        name: f"the budget {budget} leaves '{name}' out: choose another --budget"
        for name in whole
        if name not in own
    }


def models_of_rows(suite: sweep.Suite) -> dict[str, str]:
    """The name of a suite's model for each of its rows, which add the values of axes to it."""
    return {
        row: max((name for name in suite.models if f"{row}, ".startswith(f"{name}, ")), key=len)
        for row in suite.rows
    }


def run(given: Mapping[str, Any], **asked_for: Any) -> None:
    """Run the sweep of a command line with the options `given`, and show its table.

    Raises `StatetrackError` where points failed, once everything is printed.
    """
    asked = Sweep(**{name: given[name] for name in OPTIONS}, of_executor=given, **asked_for)
    if asked.evidence_seconds != OPTIONS["evidence_seconds"].default and not asked.evidence:
        raise SettingsError("--evidence-seconds: is the work of --evidence: give that as well")
    for option, page in (("--markdown", asked.markdown), ("--html", asked.html)):
        if page is not None:
            require_writable(page, option)
    executor = options.collect(sweep.EXECUTORS[asked.executor], asked.of_executor)
    log = asked.log or ()
    runs.require_logs(log)
    if asked.dry_run:
        note(f"timing a few steps of every kind of point: about {sweep.BUDGET:g} s at most")
    suite = asked.suite
    left_out = _left_out(suite.models, suite.whole.models, asked.budget)
    rows = chosen_names(asked.rows, models_of_rows(suite), "--rows", left_out)
    left_out = _left_out(suite.tasks, suite.whole.tasks, asked.budget)
    by_name = {name: name for name in suite.columns}
    columns = chosen_names(asked.columns, by_name, "--columns", left_out)
    every_point = sweep.points_of(suite, asked.folder, {}, to_train=False)
    points = [point for point in every_point if point.row in rows and point.column in columns]
    trained = [point for point in points if runs.RunFolder(point.path).finished]
    if asked.dry_run or not (asked.finished or len(trained) == len(points)):
        if not asked.dry_run:
            executor.prepare()
        sweep.described(suite, asked.folder)  # which raises where no suite describes all runs
        for point in every_point:
            sweep.require_trainable(point)
    if asked.dry_run:
        _print_estimates(asked, points, executor.num_at_once)
        return
    if asked.budget is not None and not asked.as_json:
        report.console().print(f"budget {asked.budget}: {suite.departures}")
    started = time.perf_counter()
    chosen = trained if asked.finished else points
    every = run_points(suite, chosen, executor, asked.searching, log)
    _show(asked, points, rows, columns, every, time.perf_counter() - started)


def _print_estimates(asked: Sweep, points: Sequence[sweep.Point], at_once: int) -> None:
    """What the points would take, as a table or JSON; nothing is run or written."""
    said = time.monotonic()

    def tell(line: str) -> None:
        nonlocal said
        if time.monotonic() - said >= LEAST_SILENCE:
            note(line)
            said = time.monotonic()

    found = sweep.estimate(asked.suite, points, at_once, asked.searching, tell=tell)
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
    verdicts = sweep.compare_published(suite, points, every)
    compared = [each for each in verdicts if each.is_about(places)]
    found = _report(asked, rows, columns)
    if asked.as_json:
        print(report.json_text(found), end="")
    else:
        failed = {(e.row, e.column) for e in every if isinstance(e, sweep.Failed)}
        entries = (  # failures were said as they ended, and verdicts have a table of their own
            replace(e, compared=(), error="" if (e.row, e.column) in failed else e.error)
            for e in found.entries
        )
        _draw(asked, points, replace(found, entries=tuple(entries)), results, compared, wall)
    for result in results:
        if (wrong := result.bracket.contradiction) is not None:
            terminal.warn(f"CONTRADICTION: {wrong}", f"{result.row} on {result.column}")
    for option, file in (("--markdown", asked.markdown), ("--html", asked.html)):
        if file is None:
            continue
        if option == "--html":
            page = report.page(found)
        else:
            page = report.reproduction_page(
                suite,
                command=asked.command,
                points=points,
                results=every,
                compared=compared,
                evidence=asked.evidence,
            )
        kept = f"; the results are kept: the same command with another {option} writes them"
        terminal.write_file(file, page, option, f"{kept} without training")
    if asked.files:
        document = report.Wanted().document(found)
        for file in asked.files:
            terminal.write_document(document, file, quietly=asked.as_json)
    if len(results) < len(every):
        raise StatetrackError(
            f"{len(every) - len(results)} of {len(points)} points failed; the same command tries "
            "them again"
        )


def _draw(
    asked: Sweep,
    points: Sequence[sweep.Point],
    found: report.Report,
    results: Sequence[sweep.PointResult],
    compared: Sequence[sweep.Compared],
    wall: float,
) -> None:
    """The table, and all that stands below it."""
    suite, to = asked.suite, report.console()
    table = report.matrix_of(found, fitted=True)
    to.print(replace(table, more="`statetrack report FOLDER --also NAME,...` has them"))
    if asked.stress_seconds:
        worst = report.matrix_of(found, measure="worst")
        to.print(replace(worst, title="", notes=(LEGEND_OF_WORST,)))
    else:
        to.print(NO_WORST)
    if asked.evidence:
        to.print(report.evidence_table(found.row_names, found.column_names, results))
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
    beside = sweep.runs_beside(suite, asked.folder)
    every_run = f"statetrack report {as_argument(asked.folder)}"
    others = f", with {len(beside):,} more: `{every_run}` shows all"
    to.print(f"runs: {asked.folder}" + (others if beside else ""), soft_wrap=True)


def _report(asked: Sweep, rows: Sequence[str], columns: Sequence[str]) -> report.Report:
    """The report of what was run, which is read back from the folder."""
    found = report.gather_suite(asked.suite, asked.folder, name=asked.name)
    return replace(
        found,
        entries=tuple(e for e in found.entries if e.row in rows and e.column in columns),
        row_names=tuple(rows),
        column_names=tuple(columns),
        budget=asked.budget,
        command=asked.command,
    )


# --- what a sweep is doing, on standard error ---

LEAST_SILENCE = 2.0
"""Seconds after which a dry run says again what it looks at."""

LOOK = 0.5
"""Seconds between two looks at the folders of the points."""

HEARTBEAT = 60.0
"""Seconds between two lines that say what runs, where there is no terminal."""

MOST_SHOWN = 8
"""The most running points that are shown."""


@dataclass
class _Followed:
    """A point, what it costs by its settings, and when this sweep began it."""

    point: sweep.Point
    folder: runs.RunFolder
    steps: int
    weight: float
    begun: float | None = None
    step: int = 0

    @classmethod
    def of(cls, point: sweep.Point) -> _Followed:
        """A point that has not begun."""
        experiment = point.experiment
        training, length = experiment.training, experiment.words_of().lengths.longest
        weight = float(training.steps * training.batch_size * length * len(experiment.replicas))
        return cls(point, runs.RunFolder(point.path), training.steps, weight)

    @property
    def name(self) -> str:
        """The point in words."""
        return visible(f"{self.point.row} on {self.point.column}")

    @property
    def doing(self) -> str:
        """What it is doing, as far as its folder says."""
        if self.folder.finished:
            return "trained, being measured"
        return f"step {self.step:,} of {self.steps:,}" if self.step else "begun"

    @property
    def share(self) -> float:
        """The share of its training that is done."""
        return 1.0 if self.folder.finished else min(1.0, self.step / max(1, self.steps))


@dataclass
class SweepProgress:
    """Which points run, have ended and failed, and the time that the others may take."""

    points: Sequence[sweep.Point]
    log: Callable[[str], None]
    started: float = field(default_factory=time.monotonic)
    num_done: int = 0
    num_failed: int = 0
    first_begun: float | None = None
    stopping: bool = False
    rates: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.waiting = {(each.row, each.column): _Followed.of(each) for each in self.points}
        self.since = time.time()

    @property
    def running(self) -> list[_Followed]:
        """The points that run, by their beginnings."""
        begun = [each for each in self.waiting.values() if each.begun is not None]
        return sorted(begun, key=lambda each: each.begun or 0.0)

    def look(self) -> None:
        """Look which points have begun, and how far the running ones are."""
        with self.lock:
            for each in self.waiting.values():
                if each.begun is None:
                    begun = runs.locking.time_of_point(each.folder.path)
                    if begun < self.since - 1:
                        continue
                    each.begun = time.monotonic() - max(0.0, time.time() - begun)
                    self.first_begun = self.first_begun or each.begun
                    self.log(f"begins: {each.name}")
                each.step = runs.newest_step(each.folder.path)

    def end(self, done: sweep.Done) -> None:
        """Count what became of a point."""
        with self.lock:
            each = self.waiting.pop((done.row, done.column), None)
            self.num_done += 1
            told = visible(f"{done.row} on {done.column}")
            seconds = ""
            if each is not None and each.begun is not None:
                took = time.monotonic() - each.begun
                seconds = f", {took:,.1f} s"
                self.rates.setdefault(each.point.row, []).append((took, each.weight))
            if isinstance(done, sweep.Failed):
                self.num_failed += 1
                self.log(f"failed: {told}: {visible(done.error)}{seconds}")
            else:
                chosen = done.selected
                accuracy = (
                    "diverged" if chosen is None else f"accuracy {report.share(chosen.accuracy)}"
                )
                self.log(f"done: {told}: {accuracy}{seconds} ({self.counted})")

    @property
    def counted(self) -> str:
        """`12 of 30 done, 1 failed`."""
        failed = f", {self.num_failed} failed" if self.num_failed else ""
        return f"{self.num_done} of {len(self.points)} done{failed}"

    def seconds_left(self) -> float | None:
        """The seconds that the remaining points may take; None before any has ended.

        So many at once as until now, and no less than the longest of them, which is one process's.
        """
        every = [pair for pairs in self.rates.values() for pair in pairs]
        if not every:
            return None
        running, now = self.running, time.monotonic()
        elapsed = now - (self.first_begun or self.started)
        busy = sum(took for took, _ in every) + sum(now - (each.begun or now) for each in running)
        at_once = max(1.0, busy / max(elapsed, 1e-9))
        left = []
        for each in self.waiting.values():
            pairs = self.rates.get(each.point.row, every)
            whole = each.weight * sum(t for t, _ in pairs) / max(1.0, sum(w for _, w in pairs))
            left.append(whole * (1 - each.share if each.begun is not None else 1.0))
        return max(sum(left) / at_once, *left, 0.0)

    def line(self) -> str:
        """All of it in one line."""
        parts = [self.counted]
        if self.stopping:
            parts.append("stopping: points write their checkpoints")
        left = self.seconds_left()
        parts.append(f"{clock(time.monotonic() - self.started)} elapsed")
        if left is not None and self.waiting:
            parts.append(f"about {clock(left)} left")
        return ", ".join(parts)

    def __rich__(self) -> Group:
        """The display of a terminal: a line for each running point, and a bar.

        Its last line is not filled to the edge: the `^C` that a terminal writes there would begin
        another line, and the first one of the display would stay when it is drawn again.
        """
        with self.lock:
            running = self.running
            rows = Table.grid(padding=(0, 2, 0, 0), expand=True)
            rows.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
            rows.add_column(justify="right", no_wrap=True)
            for each in running[:MOST_SHOWN]:
                rows.add_row(Text(f"  {each.name}"), Text(each.doing, "dim"))
            if len(running) > MOST_SHOWN:
                rows.add_row(Text(f"  and {len(running) - MOST_SHOWN} more"), "")
            done = self.num_done + sum(each.share for each in running)
            head = Table.grid()
            head.add_row(ProgressBar(total=max(1, len(self.points)), completed=done, width=40))
            head.add_row(Text(self.line()))
            return Group(rows, head)


@contextmanager
def following(points: Sequence[sweep.Point], stop: Callable[[], bool]) -> Iterator[SweepProgress]:
    """The progress of a sweep, shown until the block ends."""
    console = report.error_console()
    in_terminal = sys.stderr.isatty()

    def log(line: str) -> None:
        if not in_terminal and not is_quiet():
            console.print(f"{time.strftime('%H:%M:%S')} {line}")

    progress = SweepProgress(points, log)
    ended = threading.Event()

    def watch() -> None:
        told = time.monotonic()
        while not ended.wait(max(LOOK, len(progress.waiting) / 1000)):
            progress.look()
            if stop() and not progress.stopping:
                progress.stopping = True
                log("stopping: points in training write a checkpoint")
            if time.monotonic() - told >= HEARTBEAT:
                told = time.monotonic()
                running = [f"{each.name}: {each.doing}" for each in progress.running[:MOST_SHOWN]]
                log(progress.line() + (f"; {'; '.join(running)}" if running else ""))

    with ExitStack() as stack:
        if in_terminal and not is_quiet():
            display = Live(progress, console=console, refresh_per_second=2, transient=True)
            stack.enter_context(display)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield progress
        finally:
            ended.set()
            thread.join()
