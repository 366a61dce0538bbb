"""The cells of a suite, each of which is a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.errors import SettingsError
from statetrack.plugins import loaded_plugins
from statetrack.runs.config import Experiment
from statetrack.runs.plugins import load_given
from statetrack.runs.run import make_replica
from statetrack.spec import folder_name, load_task
from statetrack.sweep.suite import Suite


@dataclass(frozen=True)
class Cell:
    """One model on one task, the place of its run, and the user's files that are loaded for it.

    It has plain values only, so that it can be sent to a worker process.
    """

    row: str
    column: str
    values: dict[str, Any]
    protocol: str
    path: Path
    plugins: tuple[Path, ...]

    @property
    def experiment(self) -> Experiment:
        """The experiment that the values make."""
        for plugin in self.plugins:
            load_given(plugin)
        where = f"suite row '{self.row}'"
        return Experiment.from_values(self.values, where, protocol=self.protocol)


def cells_of(suite: Suite, out: Path, overrides: Mapping[str, Any]) -> list[Cell]:
    """Every cell of a suite, its settings checked, column by column.

    Raises `StatetrackError` for a cell that could not be trained, and for names that make no
    folders, or the same one.
    """
    columns, rows = _folders("column", suite.tasks), _folders("row", suite.models)
    longest = max([suite.length, *suite.curve_lengths, *suite.horizon_lengths])
    cells = []
    for column, task_name in suite.tasks.items():
        task = load_task(task_name)
        task.source.check_length(longest)
        for row, named in suite.models.items():
            own = {"model": named} if isinstance(named, str) else dict(named)
            if "model" not in own:
                raise SettingsError(f"suite row '{row}': 'model' is missing")
            values = {**suite.settings, **own, "task": task_name, **overrides}
            path = out / columns[column] / rows[row]
            cell = Cell(row, column, values, suite.protocol, path, loaded_plugins())
            make_replica(cell.experiment, task)
            cells.append(cell)
    return cells


def _folders(what: str, names: Iterable[str]) -> dict[str, str]:
    """The folder of each row or column, in lower case: not all file systems tell `A` from `a`."""
    taken: dict[str, str] = {}
    for name in names:
        folder = folder_name(name.lower())
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
