"""Runs as rows; and one run: what was trained and how, what came out, and its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from statetrack.errors import RunError, StatetrackError
from statetrack.runs import EvaluationRow, RunFolder, find_runs_below
from statetrack.scoring import plain
from statetrack.settings import read_yaml
from statetrack.text import visible

Row = dict[str, Any]


def rows_of_runs(folders: Sequence[Path]) -> Iterator[Row]:
    """A row for every run in some folders, with the error of one that cannot be read."""
    for run in find_runs_below(folders):
        try:
            yield _run(run)
        except (StatetrackError, OSError) as error:
            yield {"name": run.path.as_posix(), "error": str(error)}


def _run(run: RunFolder) -> Row:
    config = run.config()
    finished = run.finished
    summary = run.summary() if finished else None
    records = [] if finished else run.records()
    if summary is not None:
        step, chosen = summary.steps, summary.chosen
        best = None if chosen is None else chosen.validation_accuracy
        state = "diverged" if chosen is None else "finished"
    else:
        state = "unfinished"
        step = max((record.step for record in records), default=0)
        seen = [r.validation_accuracy for r in records if r.validation_accuracy is not None]
        best = max(seen, default=None)
    measured = _measured(run) if finished else None
    return {
        "run": run.path.as_posix(),
        "model": config.get("model"),
        "task": config.get("task"),
        "accuracy": None if measured is None else plain(measured.accuracy),
        "length": None if measured is None else measured.length,
        "state": state,
        "needs_plugin": _needs_plugin(run),
        "step": step,
        "steps": config.get("steps"),
        "validation": best,
        "started": started_of(run),
    }


def _measured(run: RunFolder) -> EvaluationRow | None:
    """The last score of the selected replica at the longest length, on words as it trained on."""
    config = run.config()
    words = ("task", config.get("words", "task"))
    rows = [row for row in run.evaluations() if row.selected and row.words in words]
    own = {None, config.get("task")}
    if not own.issuperset(row.task for row in rows):  # rows have the task's one way of writing
        own.add(run.task_name())
    rows = [row for row in rows if row.task in own]
    longest = max((row.length for row in rows), default=0)
    return next((row for row in reversed(rows) if row.length == longest), None)


def started_of(run: RunFolder) -> str | None:
    """When training began, UTC, ISO 8601, where the run says so."""
    try:
        started = run.environment().get("started")
    except StatetrackError:
        return None
    return started if isinstance(started, str) else None


def _needs_plugin(run: RunFolder) -> bool:
    """Whether the run can be opened only with its plugin; most runs have none."""
    if not run.plugins:
        return False
    from statetrack.runs import needs_plugin  # numpy, which a list does without

    return needs_plugin(run)


def describe_run(path: Path) -> dict[str, Any]:
    """All facts about a run, as plain values: the output of `show --json`. Nothing is executed.

    `differs` and `repeat` are None where the model comes from a plugin that is not loaded. Raises
    `RunError` for a folder that is none, or is damaged.
    """
    from statetrack.report import own_settings, train_command
    from statetrack.runs import latest_evidence, needs_plugin  # numpy, which a list does without

    run = RunFolder.open(path)
    config, unknown = run.config(), needs_plugin(run)
    summary = run.summary() if run.finished else None
    state = "unfinished" if summary is None else "diverged"
    if summary is not None and summary.chosen is not None:
        state = "finished"
    records = run.records()
    about: dict[str, Any] = {
        "name": path.as_posix(),
        "type": "run",
        "model": config.get("model"),
        "task": config.get("task"),
        "state": state,
        "train_length": _own(run, "train_length"),
        "supervision": _own(run, "supervision"),
        "needs_plugin": unknown,
        "step": max((record.step for record in records), default=0),
        "config": config,
        "differs": None if unknown else own_settings(config),
        "repeat": None if unknown else train_command(config, run.plugins),
        "environment": _environment(run),
        "summary": None if summary is None else asdict(summary),
        "diverged": [] if summary is None else list(summary.diverged),
        "evaluations": [row.to_json() for row in last_evaluations(run.evaluations())],
        "evidence": [row.to_json() for row in latest_evidence(run.evidence())],
        "files": [
            {"name": visible(each.relative_to(path).as_posix()), "bytes": each.stat().st_size}
            for each in sorted(path.rglob("*"))
            if each.is_file() and not each.name.startswith(".")
        ],
    }
    found: dict[str, Any] = plain(about)
    return found


def _own(run: RunFolder, name: str) -> Any:
    """A setting of the words; of one that the run leaves to its task, what that says."""
    value = run.config().get(name)
    return read_yaml(run.task_file, RunError).get(name) if value == "task" else value


def _environment(run: RunFolder) -> dict[str, Any] | None:
    try:
        return run.environment()
    except StatetrackError:
        return None


def last_evaluations(rows: Sequence[EvaluationRow]) -> list[EvaluationRow]:
    """Of each replica, task, kind of words and length the last score, in rising order of length."""
    last = {(row.task, row.words, row.length, row.replica): row for row in rows}
    kinds = list(dict.fromkeys((row.task, row.words) for row in last.values()))
    return sorted(
        last.values(), key=lambda row: (kinds.index((row.task, row.words)), row.length, row.replica)
    )
