"""One point of a suite: its run trained, evaluated, and the result kept in the run's folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from statetrack.errors import RunError, TaskError, setting
from statetrack.runs.config import Experiment
from statetrack.runs.folder import RunFolder, is_run, to_json
from statetrack.runs.loggers._opening import logging
from statetrack.runs.rows import EvaluationRow
from statetrack.runs.run import Run
from statetrack.scoring import horizon
from statetrack.spec import Task, WordSpec, current_name, golden_hash, load_task
from statetrack.sweep.executors._base import Stop
from statetrack.sweep.points import Point
from statetrack.sweep.results import HORIZON_SEED, SEED, Measurement, PointResult, num_right
from statetrack.sweep.searching import NO_SEARCH, Searching, with_evidence
from statetrack.sweep.suite import Suite
from statetrack.training.settings import DataSettings
from statetrack.training.words import TaskWords


class AnotherRunError(RunError):
    """The folder of a point holds a run of other settings, or on another task."""


def kept_result(suite: Suite, point: Point) -> PointResult | None:
    """The result in a point's folder; None for a point that is to be trained or evaluated.

    A result that was measured otherwise than the suite says now is not used. Raises
    `AnotherRunError` where the folder holds a run of other settings, or on another task.
    """
    if not is_run(point.path):
        return None
    folder = RunFolder.open(point.path)
    task, wanted = _refuse_another(folder, point), point.experiment
    content = folder.cell()
    if content is None or "measured" not in content:  # an earlier version did not write it
        return None
    kept = PointResult.from_json(content, f"{point.path}: cell.json")
    drawn = TaskWords(task, wanted.data, wanted.training, folder.frequencies_file).drawn
    measured = Measurement.of(suite, drawn)
    if not measured.is_of_the_same_words(kept.measured):
        raise _another(
            folder,
            f"a run on other words: this version of statetrack draws those of {task.name} "
            "differently",
        )
    if kept.measured != measured:
        return None
    return replace(kept, row=point.row, column=point.column, run=str(point.path))


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
        return Run.start(point.experiment, out=point.path)
    _refuse_another(RunFolder.open(point.path), point)
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


def _refuse_another(folder: RunFolder, point: Point) -> Task:
    """The task of a point's run; `AnotherRunError` unless it is the one that the suite asks for."""
    wanted = point.experiment
    found = _unnamed_settings(wanted) | folder.config()
    if "task" in found:
        found["task"] = current_name(str(found["task"]))
    asked = wanted.values() | {"task": current_name(wanted.data.task)}
    if found != asked:
        raise _another(folder, f"a run with other settings ({_differences(found, asked)})")
    task, now = load_task(str(folder.task_file)), load_task(wanted.data.task)
    difference = _difference(task, now, wanted.data)
    if difference:
        raise _another(folder, f"a run on another task ({difference})")
    return task


def _unnamed_settings(wanted: Experiment) -> dict[str, Any]:
    """What settings were that the run of an earlier version does not name: their fields' defaults.

    A model's own default may be newer than the run.
    """
    parts = (wanted.data, wanted.model_settings, wanted.training)
    return {
        name: value
        for part in parts
        for name, value in type(part)().model_dump(mode="json").items()
        if name != "extended_at"  # left out unless there is one
    }


def _another(folder: RunFolder, what: str) -> AnotherRunError:
    return AnotherRunError(
        f"{folder.path}: holds {what}: choose another {setting('out')}, or delete that folder"
    )


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The settings that differ, in words: the first few."""
    names = [
        name for name in dict.fromkeys([*wanted, *found]) if found.get(name) != wanted.get(name)
    ]
    shown = [f"{name} {found.get(name)} there and {wanted.get(name)} here" for name in names[:3]]
    return "; ".join(shown) + ("; ..." if len(names) > 3 else "")


def _difference(kept: Task, now: Task, data: DataSettings) -> str:
    """What training or testing on two tasks would differ in; nothing for titles and the like."""
    if kept.spec.version != now.spec.version:
        return f"version {kept.spec.version} of {now.name} there and {now.spec.version} here"
    if golden_hash(kept) != golden_hash(now):
        return f"{now.name} has other words or labels there"
    before, after = (
        WordSpec.of(task, train_length=data.train_length, supervision=data.supervision)
        for task in (kept, now)
    )
    if before != after:
        return f"{now.name} is trained on {_words(before)} there, and on {_words(after)} here"
    return ""


def _words(words: WordSpec) -> str:
    return f"lengths {words.lengths} with supervision '{words.supervision}'"
