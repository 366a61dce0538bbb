"""The work on the points of a sweep: each is trained, scored, searched and kept, in this order.

Each point has a run folder that is kept, so an interrupted sweep continues from there. torch is
imported where a point is begun, in whatever process that is.
"""

from __future__ import annotations

import errno
import math
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statetrack.errors import RunError, SettingsError, StatetrackError
from statetrack.evidence import (
    EVIDENCE,
    Certificate,
    Evidence,
    Exhaustive,
    Extraction,
    SearchBudget,
    WorstCase,
    proven_length,
)
from statetrack.plugins import explain_mistake
from statetrack.runs import (
    Conditions,
    EvaluationRow,
    RunFolder,
    drop_error,
    files,
    is_run,
    locking,
    to_json,
    write_error,
    write_file,
)
from statetrack.scoring import horizon
from statetrack.sweep.executors import Executor, Failed, Stop
from statetrack.sweep.extending import described
from statetrack.sweep.results import (
    HORIZON_SEED,
    NO_SEARCH,
    SEED,
    SOUGHT,
    AnotherRunError,
    Done,
    Measurement,
    Point,
    PointResult,
    Searching,
    kept_result,
    num_right,
    other_words,
    refuse_another,
)
from statetrack.sweep.suite import SWEEP_FILE, Suite

if TYPE_CHECKING:
    from statetrack.runs import Run

FULL = {errno.ENOSPC, errno.EDQUOT}
"""The errors of a disk without space, or beyond a quota."""

SEED_OF_SEARCHES = 0

SHARE_OF_PROOF = 0.2
"""Of the work for the worst word, how much may go into a proof before."""


def run_suite(
    suite: Suite,
    points: Sequence[Point],
    executor: Executor,
    stop: Stop = lambda: False,
    searching: Searching = NO_SEARCH,
    log: tuple[str, ...] = (),
) -> Iterator[Done]:
    """Train and measure every point; yield what became of each.

    The suite, as it is run, is kept in the folder of the points, which may be some of it, with the
    rows and columns of runs that are there already (`described`).

    Finished points come first and are not run again; those that were measured otherwise than the
    suite says are evaluated again, and those that lack only evidence are searched for it. A point
    that fails is yielded as `Failed`, and the others go on; but where the disk is full, no further
    point begins. Once `stop`, which is called all the time, returns True, the points in training
    write a checkpoint, and the iterator ends before all are yielded. `log` is that of `Run.train`.

    Raises `RunError`, before any point begins, where a point's folder holds another run, where
    another process runs a sweep in the same folder, where no suite describes these points and the
    runs that are there, and where that folder cannot be written.
    """
    finished: list[PointResult] = []
    waiting = []
    for point in points:
        try:
            result = kept_result(suite, point)
            if result is not None:  # a process may have been killed just before it did this
                files.remove(point.path, files.MEASURING)
        except AnotherRunError:
            raise
        except StatetrackError:  # a damaged point fails when it is run
            result = None
        if result is None or searching.missing(result):
            waiting.append(point)
        else:
            finished.append(result)
    if not waiting:
        yield from finished
        return
    full: list[Failed] = []
    folder = waiting[0].path.parents[1]
    with locking.output_folder(folder, ".suite.lock", "runs a suite"):
        write_file(folder / SWEEP_FILE, described(suite, folder).document().encode())
        yield from finished
        work = Work(suite, searching, log=log)
        if executor.num_at_once > 1:  # the longest first, so that no long one is left for the end
            waiting.sort(key=lambda point: -point.experiment.training.steps)
        every: Iterator[Done] = executor.map(work, waiting, lambda: bool(full) or stop())
        for done in every:
            if isinstance(done, Failed) and done.full:
                full.append(done)
            yield done


@dataclass(frozen=True)
class Work:
    """What an executor does with a point of a suite, in whatever process it has: `run_point`.

    A killed process loses what was trained in the last `checkpoint_seconds`. `log` is that of
    `Run.train`.
    """

    suite: Suite
    searching: Searching = NO_SEARCH
    checkpoint_seconds: float = 60.0
    log: tuple[str, ...] = ()

    def __call__(self, point: Point, stop: Stop) -> Done | None:
        """What became of the point; None where `stop` returned True first, after a checkpoint.

        Whatever goes wrong is not raised but a `Failed`, which is kept in the point's folder, or
        beside it where there is none, until the point succeeds.
        """
        try:
            result = run_point(
                self.suite, point, stop, self.searching, self.checkpoint_seconds, self.log
            )
        except (Exception, SystemExit) as error:
            return self.failed(point, error)
        if result is not None:
            drop_error(point.path)
        return result

    def failed(self, point: Point, error: BaseException) -> Failed:
        """The failure of a point by an error, kept in its folder."""
        told = str(error) if isinstance(error, StatetrackError) else explain_mistake(error)
        told = told or f"{type(error).__name__}: {error}"
        text = "".join(traceback.format_exception(error))
        full = False
        cause: BaseException | None = error
        while cause is not None:  # an error may have led to another
            full = full or (isinstance(cause, OSError) and cause.errno in FULL)
            cause = cause.__cause__ or cause.__context__
        return _kept(Failed(point.row, point.column, str(point.path), told, text, full=full))

    def lost(self, point: Point, why: str) -> Failed:
        """The failure of a point whose workers died; there is no traceback."""
        return _kept(Failed(point.row, point.column, str(point.path), why))


def _kept(failed: Failed) -> Failed:
    """The failure with its error on one line, and the file that keeps it, if it can be written."""
    failed = replace(failed, error=" ".join(failed.error.split()))
    with suppress(RunError):
        return replace(failed, file=str(write_error(Path(failed.run), failed.to_json())))
    return failed


def run_point(
    suite: Suite,
    point: Point,
    stop: Stop = lambda: False,
    searching: Searching = NO_SEARCH,
    checkpoint_seconds: float = math.inf,
    log: Sequence[str] = (),
) -> PointResult | None:
    """Train one point (or continue it), score it, search it for evidence, and keep the result.

    What is there already is not done again. Returns None where `stop` returned True first; what
    was done is then kept: a checkpoint of training, replicas that were scored, evidence found.
    Raises `StatetrackError`, also where another process runs the point, and what the user's own
    code raises.
    """
    from statetrack.runs import Run, logging  # torch

    if stop():
        return None
    result = kept_result(suite, point)
    if result is not None and not searching.missing(result):
        return result
    if is_run(point.path):
        refuse_another(RunFolder.open(point.path), point)
        run = Run.open(point.path)
    else:
        run = Run.start(point.trainable, out=point.path)
    with locking.point(run.path):
        result = kept_result(suite, point)  # another process may have finished it meanwhile
        if result is None:
            if not run.finished:
                for _ in run.train(stop, checkpoint_seconds=checkpoint_seconds, log=log):
                    pass
            if not run.finished:
                return None
            files.remove(run.path, files.LAST)  # a suite says how long a point is trained
            measured = Measurement.of(suite, run.words.drawn)
            rows = _known_rows(run, measured)
            for scored in _scored(run, suite, rows, stop):
                run.folder.append(files.MEASURING, scored)
                rows += scored
            if stop():
                return None
            result = _result(suite, point, run, measured, rows)
            _keep_new(run, rows)
            with logging(run, log) as logs:
                logs.test(rows)
            run.folder.write(files.CELL, result.to_json())
        if missing := searching.missing(result):
            for searched in _searched(result, run, missing, stop):
                run.folder.write(files.CELL, searched.to_json())
                result = searched
            if searching.missing(result):
                return None
        files.remove(run.path, files.MEASURING)
        locking.remove_point_lock(run.path)
    return result


def _known_rows(run: Run, measured: Measurement) -> list[EvaluationRow]:
    """The rows of an interrupted measurement that was made in the same way, in measuring.jsonl.

    One that was made otherwise is deleted, and another one begun.
    """
    first, file = {"measured": vars(measured)}, files.MEASURING
    how, *kept = file.plain_rows(run.path) or [{}]
    if to_json(how) != to_json(first):
        file.write(run.path, [first])
        return []
    where = run.path / file.name
    return [file.load(row, f"{where}, line {number}") for number, row in enumerate(kept, start=2)]


def _scored(
    run: Run, suite: Suite, known: Sequence[EvaluationRow], stop: Stop
) -> Iterator[list[EvaluationRow]]:
    """The rows of every replica at the suite's lengths, then of the selected one far beyond.

    At the suite's lengths also those on words that are drawn in its other ways. Those of a replica
    come together; replicas with known rows are left out. Ends where `stop` returns True.
    """
    summary, own = run.summary, run.experiment.data.words
    if summary.selected is None:
        return
    others = other_words(suite, run.task, own)
    near, far = (suite.length, *suite.curve_lengths), suite.horizon_lengths
    for words, lengths, samples, seed, replicas in (
        *((words, near, suite.samples, SEED, summary.trained) for words in (own, *others)),
        *([(own, far, suite.horizon_samples, HORIZON_SEED, (summary.selected,))] if far else ()),
    ):
        there = {row.replica for row in known if row.evaluation_seed == seed and row.words == words}
        missing = [replica for replica in replicas if replica not in there]
        rows: list[EvaluationRow] = []
        for row in run.score(
            lengths, num_words=samples, seed=seed, replicas=missing, words=words, keep=False
        ):
            rows.append(row)
            if len(rows) == len({*lengths}):
                yield rows
                rows = []
            if stop():
                return


def _result(
    suite: Suite, point: Point, run: Run, measured: Measurement, scored: Sequence[EvaluationRow]
) -> PointResult:
    """The result of a point that is trained and scored."""
    summary, own = run.summary, run.experiment.data.words
    near = [row for row in scored if row.evaluation_seed == SEED]
    curves = tuple(row for row in near if row.words == own)
    far = [row for row in scored if row.evaluation_seed == HORIZON_SEED]
    rows = tuple(row for row in curves if row.length == suite.length)
    selected = next((row for row in rows if row.selected), None)
    wrong = [row.first_error for row in scored if row.selected and row.first_error is not None]
    return PointResult(
        row=point.row,
        column=point.column,
        run=str(point.path),
        replicas=len(summary.replicas),
        rows=rows,
        curves=curves if suite.curve_lengths else (),
        selected=selected,
        success=num_right(rows) / len(summary.replicas),
        horizon=horizon(row for row in (*curves, *far) if row.selected),
        steps=summary.steps,
        seconds=summary.seconds,
        measured=measured,
        first_error=min(wrong, default=None),
        others=tuple(row for row in near if row.words != own),
    )


def _keep_new(run: Run, rows: Sequence[EvaluationRow]) -> None:
    """Append the rows that eval.jsonl lacks: it has them all after a kill just before cell.json."""

    def text(row: EvaluationRow) -> str:
        return to_json(row.to_json() | {"evaluation_seed": row.evaluation_seed})

    known = set(map(text, run.rows))
    run.folder.append(files.EVALUATIONS, [row for row in rows if text(row) not in known])


def _searched(
    result: PointResult, run: Run, missing: Mapping[str, float], stop: Stop
) -> Iterator[PointResult]:
    """A result with the evidence that it lacks, again after each kind.

    Ends where `stop` returns True, before the last. What is found is appended to the run's
    evidence. A replica that diverged, a task without an automaton and a model that a search cannot
    read have none.

    Where nothing but the worst word is asked for, none is known to be answered wrongly and a proof
    takes little, it comes first: what is proven as far as words are tried is not read.
    """
    from statetrack.evidence import LONGEST_TRIED, proves_quickly  # torch

    found = {each.kind: each for each in result.evidence}
    subjects = iter(()) if result.selected is None else run.subjects()
    try:
        outcome, subject = next(subjects)
    except (StopIteration, SettingsError):
        yield replace(result, searched={**result.searched, **missing})
        return
    only_worst, unproven = missing.keys() == {WorstCase.kind}, Certificate.kind not in found
    if only_worst and unproven and result.first_error is None and proves_quickly(subject):
        missing = {Certificate.kind: SHARE_OF_PROOF * missing[WorstCase.kind], **missing}
    for kind, seconds in missing.items():
        budget = SearchBudget(seconds, stop=stop)
        given: dict[str, Any] = {}
        if kind == Extraction.kind:
            known = [each for each in found.values() if isinstance(each, Exhaustive | WorstCase)]
            given = {"known": tuple(failure for each in known for failure in each.failures)}
        if kind == WorstCase.kind:
            given = {"beyond": proven_length(found.values())}
        proven = max((each.proves for each in found.values()), default=0)
        evidence: Evidence | None = None
        if not (only_worst and kind == WorstCase.kind and proven >= LONGEST_TRIED):
            with suppress(SettingsError):
                evidence = EVIDENCE[kind].search(
                    subject, budget=budget, seed=SEED_OF_SEARCHES, **given
                )
        if stop():
            return
        if evidence is not None:
            conditions = Conditions.of(subject, SEED_OF_SEARCHES, seconds)
            row = run.add_evidence(evidence, outcome, conditions=conditions)
            found[kind] = row.evidence
        result = replace(
            result,
            evidence=tuple(found[kind] for kind in SOUGHT if kind in found),
            searched={**result.searched, kind: seconds},
        )
        yield result
