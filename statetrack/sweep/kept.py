"""The kept result of a point, and whether its folder holds the run that the suite asks for.

torch is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from statetrack.errors import RunError, setting
from statetrack.runs import Experiment, RunFolder, is_run
from statetrack.spec import Task, WordSpec, current_name, golden_hash, load_task
from statetrack.sweep.points import Point
from statetrack.sweep.results import Measurement, PointResult
from statetrack.sweep.suite import Suite
from statetrack.training import DataSettings, TaskWords


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
    task, wanted = refuse_another(folder, point), point.experiment
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


def refuse_another(folder: RunFolder, point: Point) -> Task:
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
