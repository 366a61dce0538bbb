"""Suites: models x tasks, and any further axes, with the published numbers for comparison.

`tasks/suites/NAME.yaml` names the rows (a model with settings), the columns (a task, with or
without settings), the axes, and the measurements. It is made to be trained in minutes; `budgets`
lay over it what takes hours, and what the paper did, which may take days. Neither torch nor NumPy
is imported here: suites are listed and described without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from statetrack import yaml_text
from statetrack.errors import SettingsError, TaskError
from statetrack.registry import Registry, files_in, tasks_folder
from statetrack.settings import Line, LineOrEmpty, Name, Settings, build, option, read_yaml
from statetrack.spec import Lengths
from statetrack.training import DataSettings, TrainSettings

Shown = Literal["accuracy", "scaled", "success"]
"""What a cell of a suite's table shows."""

Measure = Literal["accuracy", "scaled", "prefixes", "horizon", "success"]
"""What a published number is."""

Trust = Literal["primary", "second-hand", "figure", "sentence"]
"""Where a number was read: in the paper's table or its authors' data; in a digest of the paper; off
a figure; in a sentence about many numbers together."""

Of = Literal["selected", "best", "median", "mean"]
"""Of which replicas: the one that validation selects; the best of all; or a statistic over those
with the learning rate of the selected one."""

BUDGETS = ("minutes", "hours", "paper")
"""The names of budgets, from the least to the most."""

MOST_TABLE_LENGTHS = 6
"""The most lengths that a table has a column for; more of them are shown in figures."""

SWEEP_FILE = "sweep.yaml"
"""The file in a sweep's folder that has the suite as it was run."""

TRAINED_BY = frozenset({*DataSettings.model_fields, *TrainSettings.model_fields} - {"task"})
"""The settings of training and its words, which a protocol is about."""


class PublishedTable(Settings):
    """A table of published numbers: what they are, where they stand, and what differs here."""

    source: Line = option(..., "The table, figure or section, such as `Table 3`.")
    reference: LineOrEmpty = option("", "The paper; by default the suite's.")
    trust: Trust = option(
        ...,
        "`primary`: read in the table of the paper, or in its authors' own data; `second-hand`: in "
        "a digest of it; `figure`: off a figure; `sentence`: in a sentence that speaks of many "
        "numbers together.",
    )
    measure: Measure = option(
        "scaled",
        "Accuracy at the last position, raw or with chance at 0; the fraction of words right at "
        "every position (`prefixes`); the longest length with an accuracy of `threshold` "
        "(`horizon`); the fraction of replicas right on every word (`success`).",
    )
    of: Of = option(
        "selected",
        "Of which of our replicas the number is compared: the `selected` one, the `best` of all, "
        "or the `median` or `mean` of those with the learning rate of the selected one.",
    )
    lengths: Lengths = option((), "The lengths whose mean it is; by default the suite's length.")
    lengths_from: int | None = option(
        None,
        "For `prefixes`: the number is the mean over all lengths from this one to the last of "
        "`lengths`. Shares of right words fall with length, so that between two tested lengths "
        "they are those at its ends at most and at least.",
        min=1,
    )
    threshold: float = option(0.9, "The accuracy that `horizon` asks for.", above=0, max=1)
    tested: Lengths = option(
        (),
        "The lengths that the source tested for `horizon`: a number is known up to the next of "
        "them, 0 (a cross) up to the first, and the longest stands for all longer ones.",
    )
    within: float = option(
        0.05,
        "Up to which difference two accuracies agree; of a horizon the same share of it.",
        above=0,
        max=1,
    )
    unlike: LineOrEmpty = option(
        "", "What makes these numbers not comparable whatever is measured, in one line."
    )
    note: LineOrEmpty = option(
        "", "What else is to be known about these numbers; it stands beside every verdict."
    )
    covers: dict[Name, tuple[Name, ...]] = option(
        {},
        "Rows of `values` that the source prints once for several of ours, and which: each of "
        "their numbers counts once.",
    )
    values: dict[str, dict[str, float]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _horizons_are_known_to_some_length(self) -> Self:
        if self.measure == "horizon" and not self.tested:
            raise ValueError("'tested' is missing: the lengths that the source tested")
        return self


class Budget(Settings):
    """What a budget lays over a suite: settings of points, rows, columns and cells, and the test.

    A setting of `null` takes away what the suite gives, so that its protocol or its default counts.
    A budget that names a protocol is trained as that says: how suite and rows train is left out,
    and what it sets itself counts over the protocol. Settings of models and columns stay.
    """

    says: Line = option(..., "What differs from the paper's training and testing, in one line.")
    protocol: str | None = option(
        None, "The protocol, in place of the suite's; an empty one is none."
    )
    settings: dict[str, Any] = Field(default_factory=dict)
    models: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    tasks: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    cells: dict[Name, dict[Name, dict[str, Any]]] = option(
        {}, "Settings of single cells, over those that the suite gives for them."
    )
    without: tuple[Name, ...] = option((), "Names under `models` and `tasks` that are left out.")
    length: int | None = option(None, "The length of the table, in place of the suite's.", min=1)
    samples: int | None = option(None, "Test words, in place of the suite's.", min=1)
    curve_lengths: Lengths | None = option(None, "In place of the suite's.")
    horizon_lengths: Lengths | None = option(None, "In place of the suite's.")
    horizon_samples: int | None = option(None, "In place of the suite's.", min=1)

    def over(self, suite: Suite) -> dict[str, Any]:
        """The fields of a suite that are otherwise within the budget."""
        left_out = TRAINED_BY if self.protocol else frozenset[str]()

        def laid(given: Mapping[str, Any], own: Mapping[str, Any], without: Collection[str]) -> Any:
            both = {**{key: given[key] for key in given if key not in without}, **own}
            return {key: value for key, value in both.items() if value is not None}

        in_place = {name: getattr(self, name) for name in _IN_PLACE}
        return {
            "departures": self.says,
            "settings": laid(suite.settings, self.settings, left_out),
            "models": {
                row: laid(own, self.models.get(row, {}), left_out)
                for row, own in as_settings("model", suite.models).items()
                if row not in self.without
            },
            "tasks": {
                column: laid(own, self.tasks.get(column, {}), ())
                for column, own in suite.columns.items()
                if column not in self.without
            },
            "cells": {
                column: {
                    row: laid(given.get(row, {}), own.get(row, {}), ())
                    for row in {**given, **own}
                    if row not in self.without
                }
                for column, given, own in (
                    (column, suite.cells.get(column, {}), self.cells.get(column, {}))
                    for column in {**suite.cells, **self.cells}
                )
                if column not in self.without
            },
            **{name: value for name, value in in_place.items() if value is not None},
        }


_IN_PLACE = (
    *("protocol", "length", "samples"),
    *("curve_lengths", "horizon_lengths", "horizon_samples"),
)
"""What a budget gives in place of the suite's."""


class Row(Settings):
    """A row of the table, at one value of every axis: its settings, and the axes' values."""

    settings: dict[str, Any]
    axes: dict[str, Any] = Field(default_factory=dict)
    model: Name = option("", "The key of the suite's `models` that the row is made of.")


class Suite(Settings):
    """The content of a suite file.

    The keys of `models` and `tasks` are the names of rows and columns; a model is given by its
    name, or by its name (`model`) and settings, and so is a task (`task`).
    """

    title: Line = option(..., "What the suite shows, in one line.")
    reference: LineOrEmpty = option("", "The paper whose table it is compared with.")
    departures: LineOrEmpty = option(
        "", "How training and testing differ from that paper's, in one line."
    )
    protocol: str = option("", "The protocol whose settings are the defaults of every point.")
    settings: dict[str, Any] = Field(default_factory=dict)
    models: dict[Name, str | dict[str, Any]] = option(..., "The rows.")
    tasks: dict[Name, str | dict[str, Any]] = option(..., "The columns.")
    cells: dict[Name, dict[Name, dict[str, Any]]] = option(
        {},
        "Settings of single cells, by the keys of `tasks` and `models`: as a size that depends on "
        "the task.",
    )
    axes: dict[Name, list[Any]] = option(
        {}, "Settings with several values each: every row is a point at each combination of them."
    )
    length: int = option(500, "The length that the table reports.", min=1)
    samples: int = option(2000, "Test words.", min=1)
    curve_lengths: Lengths = option((), "Further lengths at which every replica is tested.")
    table_lengths: Lengths = option(
        (), "The lengths that the table has a column for; by default `length` alone."
    )
    measure: Shown = option(
        "accuracy",
        "What a cell shows: the selected replica's accuracy, the same with chance at 0, or the "
        "fraction of replicas that are right on every test word.",
    )
    horizon_lengths: Lengths = option(
        (), "Longer lengths, up to which the selected replica's horizon is measured."
    )
    horizon_samples: int = option(200, "Test words at those lengths.", min=1)
    test_words: tuple[Line, ...] = option(
        (),
        "Further ways to draw words, as `words` of training takes them: every replica is also "
        "tested on such words where the task has them, at all lengths but those of the horizon.",
    )
    budgets: dict[Literal["minutes", "hours", "paper"], Budget] = Field(default_factory=dict)
    published: dict[str, dict[str, float]] = Field(default_factory=dict)
    published_as: LineOrEmpty = option(
        "published", "What the numbers under `published` are called."
    )
    published_trust: Trust | None = option(None, "Where they were read: see `tables`.")
    tables: tuple[PublishedTable, ...] = option(
        (), "Tables of published numbers, each with its source, its measure and its length."
    )

    _file: Suite | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _lengths_are_of_words(self) -> Self:
        for name in ("curve_lengths", "table_lengths", "horizon_lengths"):
            if any(length < 1 for length in getattr(self, name)):
                raise ValueError(f"'{name}' must be lengths from 1 (given: {getattr(self, name)})")
        return self

    @field_validator("test_words")
    @classmethod
    def _words_are_drawn_in_known_ways(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if not given:
            return given
        from statetrack.spec import check_words  # NumPy, which lists of suites do not need

        try:
            return tuple(check_words(words) for words in given)
        except TaskError as problem:
            raise ValueError(str(problem)) from None

    @model_validator(mode="after")
    def _table_lengths_are_tested(self) -> Self:
        if other := {*self.table_lengths} - {self.length, *self.curve_lengths}:
            raise ValueError(
                f"'table_lengths': {min(other)} is neither 'length' nor in 'curve_lengths'"
            )
        return self

    @model_validator(mode="after")
    def _rows_have_models_and_columns_tasks(self) -> Self:
        for what in ("models", "tasks"):
            if not getattr(self, what):
                raise ValueError(f"'{what}' is empty: name one, or several")
        elsewhere = {"settings": self.settings, "axes": self.axes}
        for row, own in as_settings("model", self.models).items():
            elsewhere[f"models', '{row}"] = own
        for column, cells in self.cells.items():
            elsewhere |= {f"cells', '{column}', '{row}": own for row, own in cells.items()}
        for where, own in elsewhere.items():
            if "task" in own:
                raise ValueError(f"'{where}' gives 'task', which a column has: put it in 'tasks'")
        if "model" in self.settings:
            raise ValueError("'settings' gives 'model', which a row has: put it in 'models'")
        return self

    @model_validator(mode="after")
    def _axes_have_values(self) -> Self:
        for name, values in self.axes.items():
            if not values:
                raise ValueError(f"'axes': '{name}' has no values")
            if repeated(values):
                raise ValueError(f"'axes': '{name}' has a value twice (given: {values})")
        return self

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        """Whatever names rows and columns names those of `models` (with the axes) and `tasks`."""

        def require(where: str, what: str, names: Iterable[str], known: Collection[str]) -> None:
            for name in names:
                if name not in known:
                    of = "models" if what == "row" else "tasks"
                    raise ValueError(f"'{where}' names the {what} '{name}', which is not in '{of}'")

        budgets = {f"budgets', '{name}": budget for name, budget in self.budgets.items()}
        of_cells = {"cells": self.cells}
        of_cells |= {f"{where}', 'cells": budget.cells for where, budget in budgets.items()}
        for where, given in of_cells.items():
            require(where, "column", given, self.tasks)
            for column, cells in given.items():
                require(f"{where}', '{column}", "row", cells, self.models)
        rows, tables = self.rows, [("published", self.published)]
        tables += [(f"tables, '{table.source}'", table.values) for table in self.tables]
        covers = {row: ours for table in self.tables for row, ours in table.covers.items()}
        for where, published in tables:
            for row, values in published.items():
                require(where, "row", covers.get(row, (row,)), rows)
                require(where, "column", values, self.tasks)
        if self.published and self.published_trust is None:
            raise ValueError("'published_trust' is missing: where the numbers were read")
        for where, budget in budgets.items():
            require(where, "row", budget.models, self.models)
            require(where, "column", budget.tasks, self.tasks)
            out = set(budget.without)
            if unknown := sorted(out - {*self.models, *self.tasks}):
                raise ValueError(
                    f"'{where}' leaves out '{unknown[0]}', which is in neither 'models' nor 'tasks'"
                )
            if not (self.models.keys() - out and self.tasks.keys() - out):
                raise ValueError(f"'{where}' leaves out all 'models', or all 'tasks'")
        return self

    @property
    def rows(self) -> dict[str, Row]:
        """Every row by its name; with axes one for each model and combination of their values."""
        rows = {}
        for name, own in as_settings("model", self.models).items():
            for values in product(*self.axes.values()):
                axes = dict(zip(self.axes, values, strict=True))
                said = [f"{axis}={value}" for axis, value in axes.items()]
                rows[", ".join([name, *said])] = Row(
                    settings={**own, **axes}, axes=axes, model=name
                )
        return rows

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """The settings of every column by its name: the task, and what else is given."""
        return as_settings("task", self.tasks)

    def within(self, name: str) -> Suite:
        """The suite as a budget changes it; `departures` then says how.

        A suite that has other budgets is as its file has it within `minutes`. Raises
        `SettingsError` for a budget that the suite does not have.
        """
        if name not in self.budgets and not (name == BUDGETS[0] and self.budgets):
            names = [each for each in BUDGETS if each in self.budgets or each == BUDGETS[0]]
            has = f"has {', '.join(names)}" if self.budgets else "has none"
            raise SettingsError(f"suite '{self.title}': there is no budget '{name}': it {has}")
        laid = self.budgets[name].over(self) if name in self.budgets else {}
        return self._changed({**laid, "budgets": {}}, self)

    def for_budget(self, name: str | None) -> Suite:
        """The suite within a budget; of None within `minutes`, and as it is without any budgets.

        Raises `SettingsError` as `within` does.
        """
        if name is None:
            return self.within(BUDGETS[0]) if self.budgets else self
        return self.within(name)

    def with_settings(
        self, settings: Mapping[str, Any], axes: Mapping[str, list[Any]] | None = None
    ) -> Suite:
        """The suite with these settings of all points, in place of all that it gives for them.

        So it is with `axes`, each of which has several values.
        """
        new = {**settings, **(axes or {})}
        if not new:
            return self

        def without(given: Any) -> Any:
            """Settings without the new ones; a name is one of a model or a task alone."""
            if isinstance(given, str):
                return given
            return {key: value for key, value in given.items() if key not in new}

        changed = self.model_copy(
            update={
                "settings": {**without(self.settings), **settings},
                "models": {name: without(own) for name, own in self.models.items()},
                "tasks": {name: without(own) for name, own in self.tasks.items()},
                "cells": {
                    column: {row: without(of) for row, of in cells.items()}
                    for column, cells in self.cells.items()
                },
                "axes": {**without(self.axes), **(axes or {})},
            }
        )
        # Other axes give other rows, of which nothing is published.
        return changed._with_own_numbers()._changed({}, self.whole)

    def tested(self, *, lengths: Sequence[int] = (), samples: int | None = None) -> Suite:
        """The suite tested at other lengths, all of which its table shows, or on more words."""
        changes: dict[str, Any] = {} if samples is None else {"samples": samples}
        if len(lengths) == 1:
            changes |= {"length": lengths[0], "table_lengths": ()}
        elif lengths:
            rising = tuple(sorted({*lengths}))
            shown = rising if len(rising) <= MOST_TABLE_LENGTHS else ()
            changes |= {"length": rising[-1], "curve_lengths": rising[:-1], "table_lengths": shown}
        return self._changed(changes, self._file)

    def document(self) -> str:
        """The text of a file of this suite, which `read_suite` reads.

        Published numbers of rows and columns that a budget left out are not in it.
        """
        own = self._with_own_numbers()
        return yaml_text.dump(own.model_dump(mode="json", exclude_defaults=True))

    def _with_own_numbers(self) -> Suite:
        """The suite without published numbers of rows and columns that it does not have."""
        rows, columns = self.rows, self.columns

        def own(
            published: Mapping[str, dict[str, float]], covers: Mapping[str, tuple[str, ...]]
        ) -> dict[str, dict[str, float]]:
            there = {
                row: {column: value for column, value in values.items() if column in columns}
                for row, values in published.items()
                if all(ours in rows for ours in covers.get(row, (row,)))
            }
            return {row: values for row, values in there.items() if values}

        tables = [
            table.model_copy(update={"values": own(table.values, table.covers)})
            for table in self.tables
        ]
        changes = {"published": own(self.published, {}), "tables": tuple(tables)}
        return self._changed(changes, self._file)

    def _changed(self, changes: Mapping[str, Any], file: Suite | None) -> Suite:
        changed = self.model_copy(update=dict(changes))
        changed._file = file
        return changed

    @property
    def whole(self) -> Suite:
        """The suite as its file has it, before a budget changed it."""
        return self._file or self

    @cached_property
    def paper(self) -> Suite | None:
        """The suite in its budget `paper`; None where it has none."""
        return self.whole.within("paper") if "paper" in self.whole.budgets else None

    @property
    def published_tables(self) -> tuple[PublishedTable, ...]:
        """All tables of published numbers, first that of `published`."""
        if not self.published:
            return self.tables
        assert self.published_trust is not None
        simple = PublishedTable(
            source=self.published_as or "published",
            trust=self.published_trust,
            measure=self.measure,
            values=self.published,
        )
        return (simple, *self.tables)


def as_settings(key: str, given: Mapping[str, str | dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Models or tasks by their names, each as settings: a name alone is that of `key`."""
    return {name: {key: own} if isinstance(own, str) else dict(own) for name, own in given.items()}


def title_of(models: Collection[str], tasks: Collection[str]) -> str:
    """The title of a suite that no file has: `2 models on 1 task`."""
    counted = ((len(models), "model"), (len(tasks), "task"))
    return " on ".join(f"{number} {what}{'' if number == 1 else 's'}" for number, what in counted)


def read_suite(path: Path) -> Suite:
    """The suite in a file; `SettingsError` for a file that is not a suite."""
    return build(Suite, read_yaml(path), str(path))


def read_description(path: Path) -> Suite:
    """The suite in a file that a sweep wrote; `SettingsError` for one that cannot be read.

    Version 0.3.0 wrote published numbers of rows and columns that a budget had left out.
    """
    content = read_yaml(path)
    own = {name: content.pop(name) for name in _Numbers.model_fields if name in content}
    numbers, suite = build(_Numbers, own, str(path)), build(Suite, content, str(path))
    return suite._changed(dict(numbers), None)._with_own_numbers()


class _Numbers(Settings):
    """The published numbers of a suite file."""

    published: dict[str, dict[str, float]] = Field(default_factory=dict)
    tables: tuple[PublishedTable, ...] = ()


SUITES: Registry[Suite] = Registry(
    "suite",
    find=lambda: files_in(tasks_folder() / "suites", read_suite),
    listing="statetrack list suites",
)


def repeated(values: Sequence[Any]) -> list[Any]:
    """The values that equal one before them, as 1 does 1.0."""
    return [value for number, value in enumerate(values) if value in values[:number]]


def folder_of(suite: str, budget: str | None) -> Path:
    """The folder of a suite's runs where none is named: `suites/NAME`, or `suites/NAME-BUDGET`.

    A sweep's folder holds its own.
    """
    if (Path(suite) / SWEEP_FILE).is_file():
        return Path(suite)
    name = Path(suite).stem
    return Path("suites") / (name if budget in (None, BUDGETS[0]) else f"{name}-{budget}")


def load_suite(text: str) -> Suite:
    """The suite of a registered name, of a file's path, or of a sweep's folder.

    A path ends in `.yaml` or `.yml`, or has a folder in it. Raises `StatetrackError` where there is
    no such suite.
    """
    if (Path(text) / SWEEP_FILE).is_file():
        from statetrack.runs import load_own_code  # of no use to a list of suites

        load_own_code(Path(text))
        return read_description(Path(text) / SWEEP_FILE)
    if text not in SUITES and Path(text).is_dir():
        raise SettingsError(
            f"{text}: is a folder, and holds no {SWEEP_FILE} of a sweep: give the name or the file "
            "of a suite (`statetrack list suites`)"
        )
    is_file = text.endswith((".yaml", ".yml")) or Path(text).name != text
    return read_suite(Path(text)) if is_file else SUITES[text]
