"""The cells of a suite, each of which is a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.errors import SettingsError
from statetrack.plugins import load_plugin, loaded_plugins
from statetrack.runs.config import Experiment
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
            load_plugin(plugin)
        where = f"suite row '{self.row}'"
        return Experiment.from_values(self.values, where, protocol=self.protocol)


def cells_of(suite: Suite, out: Path, overrides: Mapping[str, Any]) -> list[Cell]:
    """Every cell of a suite, its settings checked, column by column.

    Raises `StatetrackError` for a cell that could not be trained.
    """
    cells = []
    for column, task in suite.tasks.items():
        for row, named in suite.models.items():
            own = {"model": named} if isinstance(named, str) else dict(named)
            if "model" not in own:
                raise SettingsError(f"suite row '{row}': 'model' is missing")
            values = {**suite.settings, **own, "task": task, **overrides}
            path = out / folder_name(column.lower()) / folder_name(row.lower())
            cell = Cell(row, column, values, suite.protocol, path, loaded_plugins())
            make_replica(cell.experiment, load_task(task))
            cells.append(cell)
    return cells
