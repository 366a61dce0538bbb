"""Runs as rows; and one run: what was trained and how, what came out, and its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from statetrack.errors import StatetrackError
from statetrack.runs import EvaluationRow, RunFacts, RunFolder, files, find_runs_below
from statetrack.scoring import plain
from statetrack.text import visible

Row = dict[str, Any]


def rows_of_runs(folders: Sequence[Path]) -> Iterator[Row]:
    """A row for every run in some folders, with the error of one that cannot be read."""
    for folder in find_runs_below(folders):
        try:
            yield _row(RunFacts(folder))
        except (StatetrackError, OSError) as error:
            yield {"name": folder.path.as_posix(), "error": str(error)}


def _row(run: RunFacts) -> Row:
    if run.finished:
        chosen, measured = run.summary.chosen, _measured(run)
        best = None if chosen is None else chosen.validation_accuracy
    else:
        measured = None
        seen = (record.validation_accuracy for record in run.records)
        best = max((accuracy for accuracy in seen if accuracy is not None), default=None)
    return {
        "run": run.path.as_posix(),
        "model": run.config.get("model"),
        "task": run.config.get("task"),
        "accuracy": None if measured is None else plain(measured.accuracy),
        "length": None if measured is None else measured.length,
        "state": run.state,
        "needs_plugin": run.needs_plugin,
        "step": run.step,
        "steps": run.config.get("steps"),
        "validation": best,
        "started": _started(run),
    }


def _measured(run: RunFacts) -> EvaluationRow | None:
    """The last score of the selected replica at the longest length, on words as it trained on."""
    words = ("task", run.config.get("words", "task"))
    rows = [row for row in run.rows if row.selected and row.words in words]
    own = {None, asked := run.config.get("task")}
    if not own.issuperset(row.task for row in rows):  # rows have the task's one way of writing
        own.add(str(run.folder.read(files.TASK).get("name") or asked))
    rows = [row for row in rows if row.task in own]
    longest = max((row.length for row in rows), default=0)
    return next((row for row in reversed(rows) if row.length == longest), None)


def _started(run: RunFacts) -> str | None:
    """When training began, UTC, ISO 8601, where the run says so."""
    started = (_environment(run) or {}).get("started")
    return started if isinstance(started, str) else None


def _environment(run: RunFacts) -> Mapping[str, Any] | None:
    try:
        return run.environment
    except StatetrackError:
        return None


def describe_run(path: Path) -> dict[str, Any]:
    """All facts about a run, as plain values: the output of `show --json`. Nothing is executed.

    `differs` and `repeat` are None where the model comes from a plugin that is not loaded. Raises
    `RunError` for a folder that is none, or is damaged.
    """
    from statetrack.runs import (  # numpy, which a list does without
        known_evidence,
        own_settings,
        train_command,
    )

    run = RunFacts(RunFolder.open(path))
    config, unknown = run.config, run.needs_plugin
    summary = run.summary if run.finished else None
    evidence = known_evidence(run.folder.evidence()) if unknown else run.evidence()
    about: dict[str, Any] = {
        "name": path.as_posix(),
        "type": "run",
        "model": config.get("model"),
        "task": config.get("task"),
        "state": run.state,
        "train_length": _own(run, "train_length"),
        "supervision": _own(run, "supervision"),
        "needs_plugin": unknown,
        "step": max((record.step for record in run.records), default=0),
        "config": config,
        "differs": None if unknown else own_settings(config),
        "repeat": None if unknown else train_command(config, run.folder.plugins),
        "environment": _environment(run),
        "summary": None if summary is None else asdict(summary),
        "diverged": [] if summary is None else list(summary.diverged),
        "evaluations": [row.to_json() for row in last_evaluations(run.rows)],
        "evidence": [row.to_json() for row in evidence],
        "files": [
            {"name": visible(each.relative_to(path).as_posix()), "bytes": each.stat().st_size}
            for each in sorted(path.rglob("*"))
            if each.is_file() and not each.name.startswith(".")
        ],
    }
    found: dict[str, Any] = plain(about)
    return found


def _own(run: RunFacts, name: str) -> Any:
    """A setting of the words; of one that the run leaves to its task, what that says."""
    value = run.config.get(name)
    return run.folder.read(files.TASK).get(name) if value == "task" else value


def last_evaluations(rows: Sequence[EvaluationRow]) -> list[EvaluationRow]:
    """Of each replica, task, kind of words and length the last score, in rising order of length."""
    last = {(row.task, row.words, row.length, row.replica): row for row in rows}
    kinds = list(dict.fromkeys((row.task, row.words) for row in last.values()))
    return sorted(
        last.values(), key=lambda row: (kinds.index((row.task, row.words)), row.length, row.replica)
    )
