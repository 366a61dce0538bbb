"""One run: what was trained and how, what came out, what was measured and found, and its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from statetrack.errors import RunError, StatetrackError
from statetrack.report import own_settings, train_command
from statetrack.runs import EvaluationRow, RunFolder, latest_evidence, needs_plugin
from statetrack.scoring import plain
from statetrack.settings import read_yaml
from statetrack.text import visible


def describe_run(path: Path) -> dict[str, Any]:
    """All facts about a run, as plain values: the output of `show --json`. Nothing is executed.

    `differs` and `repeat` are None where the model comes from a plugin that is not loaded. Raises
    `RunError` for a folder that is none, or is damaged.
    """
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
