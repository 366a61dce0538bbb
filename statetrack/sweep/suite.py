"""Suites: models x tasks under one protocol, with the published numbers for comparison.

`tasks/suites/NAME.yaml` names the rows (a model with settings), the columns (a task), and the
measurements. torch is not imported here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from statetrack.registry import Registry, files_in, tasks_folder
from statetrack.settings import Line, LineOrEmpty, Name, Settings, build, option, read_yaml


class Suite(Settings):
    """The content of a suite file.

    The keys of `models` and `tasks` are the names of rows and columns; a model is given by its
    name, or by its name (`model`) and settings.
    """

    title: Line = option(..., "What the suite shows, in one line.")
    reference: LineOrEmpty = option("", "The paper whose table it is compared with.")
    departures: LineOrEmpty = option(
        "", "How training and testing differ from that paper's, in one line."
    )
    protocol: str = option("", "The protocol whose settings are the defaults of every cell.")
    settings: dict[str, Any] = Field(default_factory=dict)
    models: dict[Name, str | dict[str, Any]] = option(..., "The rows.")
    tasks: dict[Name, str] = option(..., "The columns.")
    length: int = option(500, "The length that the table reports.", min=1)
    samples: int = option(2000, "Test words.", min=1)
    curve_lengths: tuple[int, ...] = option(
        (), "Further lengths at which every replica is tested, for the Markdown report."
    )
    measure: Literal["accuracy", "scaled", "success"] = option(
        "accuracy",
        "What a cell shows: the selected replica's accuracy, the same with chance at 0, or the "
        "fraction of replicas that are right on every test word.",
    )
    horizon_lengths: tuple[int, ...] = option(
        (), "Longer lengths, up to which the selected replica's horizon is measured."
    )
    horizon_samples: int = option(200, "Test words at those lengths.", min=1)
    published: dict[str, dict[str, float]] = Field(default_factory=dict)
    published_as: LineOrEmpty = option(
        "published", "What the numbers under `published` are called."
    )

    @model_validator(mode="after")
    def _lengths_are_of_words(self) -> Self:
        for name in ("curve_lengths", "horizon_lengths"):
            if any(length < 1 for length in getattr(self, name)):
                raise ValueError(f"'{name}' must be lengths from 1 (given: {getattr(self, name)})")
        return self

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


def read_suite(path: Path) -> Suite:
    """The suite in a file; `SettingsError` for a file that is not a suite."""
    return build(Suite, read_yaml(path), str(path))


SUITES: Registry[Suite] = Registry(
    "suite",
    find=lambda: files_in(tasks_folder() / "suites", read_suite),
    listing="statetrack list suites",
)


def load_suite(text: str) -> Suite:
    """The suite of a registered name, or of a path ending in `.yaml`."""
    return read_suite(Path(text)) if text.endswith(".yaml") else SUITES[text]
