"""The points of a suite, each of which is a run: a model with settings on a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack.errors import SettingsError, StatetrackError
from statetrack.plugins import loaded_plugins
from statetrack.runs import Experiment, load_given
from statetrack.spec import Task, folder_name, load_task, own_kind
from statetrack.sweep.suite import Suite


@dataclass(frozen=True)
class Point:
    """One model with settings on one task, trained as one population; the place of its run.

    `axes` are the settings that the suite varies, `plugins` the user's files that are loaded for
    it. It has plain values only, so that it can be sent to a worker process.
    """

    row: str
    column: str
    values: dict[str, Any]
    protocol: str
    path: Path
    plugins: tuple[Path, ...]
    axes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its row and column, as messages name them."""
        return f"suite row '{self.row}', column '{self.column}'"

    @property
    def experiment(self) -> Experiment:
        """The experiment that the values make, to be read: torch is not imported for it."""
        return self._made(to_build=False)

    @property
    def trainable(self) -> Experiment:
        """The experiment that the values make, of which a model can be built."""
        return self._made(to_build=True)

    def _made(self, *, to_build: bool) -> Experiment:
        for plugin in self.plugins:
            load_given(plugin)
        where = f"suite row '{self.row}'"
        return Experiment.from_values(self.values, where, protocol=self.protocol, to_build=to_build)


def points_of(
    suite: Suite, out: Path, overrides: Mapping[str, Any], *, to_train: bool = True
) -> list[Point]:
    """Every point of a suite, its settings checked, column by column.

    Without `to_train`, it is not checked that their models can be built, and torch is not imported:
    for points that are only read.

    A setting has the first of these values that is given: `overrides`, the cell's, the column's,
    the axis's, the row's, the suite's. Raises `StatetrackError` for a point that could not be
    trained, and for names that make no folders, or the same one.
    """
    named, described = suite.rows, suite.columns
    columns, rows = _folders("column", described), _folders("row", named)
    longest = max([suite.length, *suite.curve_lengths, *suite.horizon_lengths])
    points = []
    for column, given in described.items():
        if "task" not in given:
            raise SettingsError(f"suite column '{column}': 'task' is missing")
        task = load_task(given["task"])
        task.source.check_length(longest)
        for row, own in named.items():
            if "model" not in own.settings:
                raise SettingsError(f"suite row '{row}': 'model' is missing")
            cell = suite.cells.get(column, {}).get(own.model, {})
            values = {**suite.settings, **own.settings, **given, **cell, **overrides}
            path = out / columns[column] / rows[row]
            point = Point(row, column, values, suite.protocol, path, loaded_plugins(), own.axes)
            if to_train:
                require_trainable(point, task)
            else:
                _ = point.experiment  # which raises where its settings are wrong
            points.append(point)
    return points


def require_trainable(point: Point, task: Task | None = None) -> None:
    """Raise `StatetrackError`, which names the point, where its model cannot be built.

    `task` is that of the point, where it has been read already.
    """
    from statetrack.runs import make_replica  # torch

    experiment = point.trainable
    try:
        make_replica(experiment, task or load_task(experiment.data.task))
    except StatetrackError as problem:
        raise type(problem)(f"{point.name}: {problem.args[0]}") from problem


def _folders(what: str, names: Iterable[str]) -> dict[str, str]:
    """The folder of each row or column, in lower case: not all file systems tell `A` from `a`."""
    taken: dict[str, str] = {}
    for name in names:
        folder = folder_name(name if own_kind(name) else name.lower()).lower()
        if not folder:
            raise SettingsError(
                f"suite {what} '{name}': a name needs a letter or a digit, since its folder is "
                "called after it"
            )
        if folder in taken:
            raise SettingsError(
                f"suite {what}s '{taken[folder]}' and '{name}' would share the folder '{folder}': "
                "names must differ in more than signs and capitals"
            )
        taken[folder] = name
    return {name: folder for folder, name in taken.items()}
