"""The description of a folder in which more than one sweep was run: `sweep.yaml`.

A suite replaces the description where it has all the runs that are there. Where it lacks some, as
when the folder is named for another model, rows and columns of both stand in one suite: settings
that only one of the two has become those of its rows. What one suite cannot say of both is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from statetrack.errors import RunError, setting
from statetrack.runs import is_run
from statetrack.settings import build, shown
from statetrack.sweep.results import folders_of
from statetrack.sweep.suite import SWEEP_FILE, Suite, as_settings, read_description, title_of

K = TypeVar("K", str, tuple[str, str])

JOINED = ("title", "settings", "models", "tasks", "cells")
"""What of two suites is joined; all else must be the same in both."""

OF_PAPERS = (
    *("reference", "departures", "published", "published_as", "published_trust", "tables"),
    "budgets",
)
"""What only one of the two may have; both may, where one is a later state of the other."""


def described(suite: Suite, folder: Path) -> Suite:
    """The suite that describes a folder once this one is run in it: with the runs that are there.

    Raises `RunError` where no suite describes both, and `SettingsError` where what is there cannot
    be read.
    """
    beside = runs_beside(suite, folder)
    if not beside:
        return suite
    file = folder / SWEEP_FILE
    try:
        fields = _joined_suites(read_description(file), suite)
    except _DifferError as differing:
        row, column = beside[0]
        more = f" and {len(beside) - 1} more" if len(beside) > 1 else ""
        raise RunError(
            f"{folder}: holds the sweep of {row} on {column}{more}, with which these points cannot "
            f"be one table ({differing}): choose another {setting('out')}, or delete that folder"
        ) from None
    both = build(Suite, fields, str(file))
    folders_of("column", both.columns)
    folders_of("row", both.rows)
    return both


def runs_beside(suite: Suite, folder: Path) -> list[tuple[str, str]]:
    """The row and column of each run that a folder's description has and this suite has not."""
    file = folder / SWEEP_FILE
    known = _places(read_description(file)) if file.is_file() else {}
    own = {*_places(suite).values()}
    return [
        place for place, path in known.items() if path not in own and is_run(folder.joinpath(*path))
    ]


def _places(suite: Suite) -> dict[tuple[str, str], tuple[str, str]]:
    """The folders of each row and column."""
    columns, rows = folders_of("column", suite.columns), folders_of("row", suite.rows)
    return {(row, column): (columns[column], rows[row]) for column in columns for row in rows}


class _DifferError(Exception):
    """What one suite cannot say of both, in a few words."""


def _joined_suites(kept: Suite, suite: Suite) -> dict[str, Any]:
    """The fields of a suite with the rows and columns of both."""
    there, here = (each.model_dump(mode="json") for each in (kept, suite))
    fields = {name: here[name] for name in Suite.model_fields if name not in JOINED}
    for name, value in fields.items():
        usual = Suite.model_fields[name].get_default(call_default_factory=True)
        if value == there[name] or (name in OF_PAPERS and kept.title == suite.title):
            continue
        if name not in OF_PAPERS or (getattr(kept, name) != usual != getattr(suite, name)):
            raise _DifferError(_both(name, there[name], value))
        fields[name] = there[name] if getattr(suite, name) == usual else value
    common = dict(each for each in there["settings"].items() if each in here["settings"].items())
    models = _joined("row", *(_with_rest(each, common) for each in (there, here)))
    tasks = _joined("column", *(as_settings("task", each["tasks"]) for each in (there, here)))
    cells = dict[str, dict[str, Any]]()
    for (row, column), own in _joined("cell", *map(_every_cell, (there, here))).items():
        if own:
            cells.setdefault(column, {})[row] = own
    own_titles = [e.title for e in (kept, suite) if e.title != title_of(e.models, e.tasks)]
    title, *_ = [*own_titles, title_of(models, tasks)]
    new = {"title": title, "settings": common, "models": models, "tasks": tasks, "cells": cells}
    return {**fields, **new}


def _with_rest(given: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a suite's fields, with those of its settings that are not in `common`."""
    rest = {name: value for name, value in given["settings"].items() if name not in common}
    named = as_settings("model", given["models"])
    return {name: {**rest, **own} for name, own in named.items()}


def _every_cell(given: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The settings of every row and column of a suite's fields; mostly none."""
    return {
        (row, column): given["cells"].get(column, {}).get(row, {})
        for column in given["tasks"]
        for row in given["models"]
    }


def _joined(
    what: str, there: Mapping[K, dict[str, Any]], here: Mapping[K, dict[str, Any]]
) -> dict[K, dict[str, Any]]:
    """The entries of both; `_DifferError` for a name that stands for two things."""
    for name in there.keys() & here.keys():
        if there[name] != here[name]:
            raise _DifferError(f"{what} {shown(name)}: {_difference(there[name], here[name])}")
    return {**there, **here}


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The first setting in which two of a row, of a column or of a cell differ."""
    name = next(name for name in (*here, *there) if there.get(name) != here.get(name))
    return _both(name, there.get(name), here.get(name))


def _both(name: str, there: Any, here: Any) -> str:
    return f"{name} {there} there and {here} here"
