"""One point of a suite: its run trained, evaluated, and the result kept in the run's folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from statetrack.errors import TaskError
from statetrack.runs import EvaluationRow, Run, RunFolder, is_run, logging, to_json
from statetrack.scoring import horizon
from statetrack.sweep.executors._base import Stop
from statetrack.sweep.finding import with_evidence
from statetrack.sweep.kept import kept_result, refuse_another
from statetrack.sweep.points import Point
from statetrack.sweep.results import HORIZON_SEED, SEED, Measurement, PointResult, num_right
from statetrack.sweep.searching import NO_SEARCH, Searching
from statetrack.sweep.suite import Suite


def run_point(
    suite: Suite,
    point: Point,
    stop: Stop = lambda: False,
    searching: Searching = NO_SEARCH,
    checkpoint_seconds: float = math.inf,
    log: Sequence[str] = (),
) -> PointResult | None:
    """Train one point (or continue it), evaluate it, and keep the result in its folder.

    What is there already is not done again. Returns None where `stop` returned True first; what
    was done is then kept: a checkpoint of training, replicas that were scored, evidence found.
    Raises `StatetrackError`, also where another process runs the point, and what the user's own
    code raises.
    """
    if stop():
        return None
    result = kept_result(suite, point)
    if result is not None and not searching.missing(result):
        return result
    run = _begun(point)
    with run.folder.alone():
        result = kept_result(suite, point)  # another process may have finished it meanwhile
        if result is None:
            result = _measured(suite, point, run, stop, checkpoint_seconds, log)
        if result is not None and searching.missing(result):
            for more in with_evidence(result, run, searching, stop):
                run.folder.write_cell(more.to_json())
                result = more
            result = None if searching.missing(result) else result
        if result is not None:
            run.folder.end_measurement()
    return result


def _begun(point: Point) -> Run:
    """The run of a point, which is begun where there is none."""
    if not is_run(point.path):
        return Run.start(point.trainable, out=point.path)
    refuse_another(RunFolder.open(point.path), point)
    return Run.open(point.path)


def _measured(
    suite: Suite,
    point: Point,
    run: Run,
    stop: Stop,
    checkpoint_seconds: float,
    log: Sequence[str],
) -> PointResult | None:
    """Train and evaluate a point; None where `stop` returned True first."""
    if not run.finished:
        for _ in run.train(stop, checkpoint_seconds=checkpoint_seconds, log=log):
            pass
    if not run.finished:
        return None
    run.folder.drop_last()  # a suite says how long a point is trained
    rows = run.folder.begin_measurement(vars(Measurement.of(suite, run.words.drawn)))
    for more in _scored(run, suite, rows, stop):
        run.folder.append_to_measurement(more)
        rows += more
    if stop():
        return None
    result = _result(suite, point, run, rows)
    _keep_new(run, rows)
    with logging(run, log) as logs:
        logs.test(rows)
    run.folder.write_cell(result.to_json())
    return result


def _scored(
    run: Run, suite: Suite, known: Sequence[EvaluationRow], stop: Stop
) -> Iterator[list[EvaluationRow]]:
    """The rows of every replica at the suite's lengths, then of the selected one far beyond.

    At the suite's lengths also those on words that are drawn in its other ways. Those of a replica
    come together; replicas with known rows are left out. Ends where `stop` returns True.
    """
    summary = run.summary
    if summary.selected is None:
        return
    own = run.experiment.data.words
    every = (suite.length, *suite.curve_lengths)
    far = suite.horizon_lengths
    chosen = (summary.selected,) if far else ()
    for words, lengths, samples, seed, replicas in (
        (own, every, suite.samples, SEED, summary.trained),
        *((other, every, suite.samples, SEED, summary.trained) for other in _others(suite, run)),
        (own, far, suite.horizon_samples, HORIZON_SEED, chosen),
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


def _others(suite: Suite, run: Run) -> Iterator[str]:
    """The ways to draw test words that the task has, but for that of training."""
    for words in dict.fromkeys(suite.test_words):
        if words == run.experiment.data.words:
            continue
        try:
            run.tested(words=words)
        except TaskError:  # such as words inside a group, of a machine without one
            continue
        yield words


def _result(suite: Suite, point: Point, run: Run, scored: Sequence[EvaluationRow]) -> PointResult:
    near = [row for row in scored if row.evaluation_seed == SEED]
    curves = tuple(row for row in near if row.words == run.experiment.data.words)
    far = [row for row in scored if row.evaluation_seed == HORIZON_SEED]
    rows = tuple(row for row in curves if row.length == suite.length)
    selected = next((row for row in rows if row.selected), None)
    summary = run.summary
    return PointResult(
        row=point.row,
        column=point.column,
        run=str(point.path),
        replicas=len(summary.replicas),
        rows=rows,
        curves=curves if suite.curve_lengths else (),
        selected=selected,
        success=num_right(rows) / len(summary.replicas),
        horizon=horizon(row for row in (selected, *far) if row is not None),
        steps=summary.steps,
        seconds=summary.seconds,
        measured=Measurement.of(suite, run.words.drawn),
        first_error=min(
            (row.first_error for row in scored if row.selected and row.first_error is not None),
            default=None,
        ),
        others=tuple(row for row in near if row.words != run.experiment.data.words),
    )


def _keep_new(run: Run, rows: Sequence[EvaluationRow]) -> None:
    """Append the rows that eval.jsonl lacks: it has them all after a kill just before cell.json."""

    def text(row: EvaluationRow) -> str:
        return to_json(row.to_json() | {"evaluation_seed": row.evaluation_seed})

    known = set(map(text, run.rows))
    run.folder.append_evaluation([row for row in rows if text(row) not in known])
