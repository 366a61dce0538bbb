"""Suites: models x tasks under one protocol, every cell a run of its own.

`tasks/suites/NAME.yaml` names the rows (a model with settings), the columns (a task), and what
is measured. A cell's run folder is kept, so an interrupted suite goes on where it was.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from pydantic import Field, model_validator

from statetrack import experiment
from statetrack.errors import RunError, SettingsError
from statetrack.evaluation import horizon_of
from statetrack.experiment import Experiment, Setup
from statetrack.models import MODELS
from statetrack.protocols import settings_for
from statetrack.registry import Registry, files_in, load_plugin, plugin_file
from statetrack.runs import RunFolder
from statetrack.settings import Settings, build, option, read_yaml
from statetrack.spec import folder_name, tasks_folder

Plain = dict[str, Any]


class Suite(Settings):
    """What a suite file says.

    `models` and `tasks` are keyed by what the table calls them; a model is its name, or its
    name (`model`) with settings of its own.
    """

    title: str = option(..., "One line that says what the suite shows.")
    reference: str = option("", "The paper whose table it stands beside.")
    protocol: str = option("", "The protocol whose settings are the defaults of every cell.")
    settings: dict[str, Any] = Field(default_factory=dict)
    models: dict[str, str | dict[str, Any]] = option(..., "The rows.")
    tasks: dict[str, str] = option(..., "The columns.")
    length: int = option(500, "The length that the table reports.", min=1)
    samples: int = option(2000, "Test words.", min=1)
    curve_lengths: tuple[int, ...] = option(
        (), "Further lengths at which every replica is tested, for the Markdown report."
    )
    measure: Literal["accuracy", "scaled", "success"] = option(
        "accuracy",
        "What a cell shows: the selected replica's accuracy, the same with chance at 0, or the "
        "share of replicas that are right on every test word.",
    )
    horizon_lengths: tuple[int, ...] = option(
        (), "Longer lengths at which the selected replica's horizon is sought."
    )
    horizon_samples: int = option(200, "Test words at those lengths.", min=1)
    published: dict[str, dict[str, float]] = Field(default_factory=dict)
    published_as: str = option("published", "What the numbers under `published` are called.")

    @model_validator(mode="after")
    def _published_cells_exist(self) -> Self:
        for row, values in self.published.items():
            if row not in self.models:
                raise ValueError(f"'published' names the row '{row}', which is not in 'models'")
            for column in values:
                if column not in self.tasks:
                    raise ValueError(
                        f"'published' names the column '{column}', which is not in 'tasks'"
                    )
        return self


@dataclass(frozen=True)
class Cell:
    """One model on one task, the place of its run, and the user's file its model is in, if any.

    Plain values alone, so that a worker process can take it over.
    """

    row: str
    column: str
    values: Plain
    path: Path
    plugin: Path | None

    @property
    def experiment(self) -> Experiment:
        """The experiment that the values make."""
        if self.plugin is not None and self.values["model"] not in MODELS:
            load_plugin(self.plugin)
        return Experiment.from_values(self.values, f"suite row '{self.row}'")


def read_suite(path: Path) -> Suite:
    """The suite that a file holds; `SettingsError` where it holds none."""
    return build(Suite, read_yaml(path), str(path))


SUITES: Registry[Suite] = Registry(
    "suite",
    find=lambda: files_in(tasks_folder() / "suites", read_suite),
    listing="statetrack list suites",
)


def load_suite(text: str) -> Suite:
    """The suite of a registered name, or of a path ending in `.yaml`."""
    return read_suite(Path(text)) if text.endswith(".yaml") else SUITES[text]


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
            published = settings_for(suite.protocol, own["model"]) if suite.protocol else {}
            values = {**published, **suite.settings, **own, "task": task, **overrides}
            path = out / folder_name(column.lower()) / folder_name(row.lower())
            cell = Cell(row, column, values, path, plugin_file(MODELS[own["model"]]))
            Setup.of(cell.experiment).make_model()
            cells.append(cell)
    return cells


def run_suite(suite: Suite, cells: list[Cell], jobs: int) -> Iterator[Plain]:
    """Train and evaluate every cell, `jobs` at a time with one thread each; yield each result.

    Cells that have finished before are not run again. Raises `RunError` where a cell's folder
    holds another experiment, or where a worker process was killed.
    """
    waiting = []
    for cell in cells:
        found = _finished(cell)
        if found is None:
            waiting.append(cell)
        else:
            yield found
    if jobs == 1:
        for cell in waiting:
            yield run_cell(suite, cell)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, context, initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        futures = [pool.submit(run_cell, suite, cell) for cell in waiting]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise RunError(
                "a worker process was killed; finished cells are kept: run the command again"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def run_cell(suite: Suite, cell: Cell) -> Plain:
    """Train one cell (or go on with it), evaluate it, and keep the result in its folder."""
    if (cell.path / "config.yaml").is_file():
        setup, folder = experiment.reopen(cell.path)
    else:
        setup, folder = experiment.start(cell.experiment, cell.path)
    if not folder.finished:
        experiment.train(setup, folder, lambda *_: None, lambda: False)
    lengths = sorted({suite.length, *suite.curve_lengths})
    curves = list(
        experiment.evaluate_run(
            setup, folder, lengths, num_words=suite.samples, seed=0, everyone=True
        )
    )
    rows = [row for row in curves if row["length"] == suite.length]
    far = list(
        experiment.evaluate_run(
            setup,
            folder,
            sorted({*suite.horizon_lengths}),
            num_words=suite.horizon_samples,
            seed=1,
            everyone=False,
        )
        if suite.horizon_lengths
        else []
    )
    selected = next(row for row in rows if row["selected"])
    near = [(suite.length, selected["accuracy"])]
    outcome = folder.read_json("summary.json")
    result = {
        "row": cell.row,
        "column": cell.column,
        "run": str(cell.path),
        "rows": rows,
        "curves": curves if suite.curve_lengths else [],
        "selected": selected,
        "success": sum(row["accuracy"] == 1.0 for row in rows) / len(rows),
        "horizon": horizon_of(sorted(near + [(row["length"], row["accuracy"]) for row in far])),
        "steps": outcome["steps"],
        "seconds": outcome["seconds"],
    }
    folder.write_json("cell.json", result)
    return result


def _finished(cell: Cell) -> Plain | None:
    """The result of a cell that is done; None where there is still something to do."""
    if not (cell.path / "config.yaml").is_file():
        return None
    folder = RunFolder.open(cell.path)
    if folder.config() != cell.experiment.values():
        raise RunError(
            f"{cell.path}: holds a run with other settings: choose another --out, or delete it"
        )
    return folder.read_json("cell.json") if (cell.path / "cell.json").is_file() else None
