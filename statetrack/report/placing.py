"""The places of plain runs in a table: which share a row, and what rows and columns are called.

A row is a model with those settings in which runs of the same model differ, a column is a task.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statetrack.runs import WITHOUT_EFFECT

_NOT_IN_ROWS = WITHOUT_EFFECT | {"model", "task"}


@dataclass(frozen=True)
class Placed:
    """The names of a run's row and column, and the settings that the row's name holds."""

    row: str
    column: str
    axes: Mapping[str, Any]


@dataclass(frozen=True)
class Placeable:
    """What the place of a run depends on: `words` identifies the words and labels of its task."""

    model: str
    task: str
    config: Mapping[str, Any]
    version: int = 0
    words: str = ""


def places_of(runs: Sequence[Placeable]) -> list[Placed]:
    """The place of each run; no two are the same.

    A second run with the settings of an earlier one on the same task has a number after its row's
    name. Tasks of the same name with other words are told apart by their version and hash.
    """
    differing = _differing(runs)
    columns = _columns(runs)
    taken: Counter[tuple[str, str]] = Counter()
    found = []
    for run, column in zip(runs, columns, strict=True):
        axes = {name: run.config.get(name) for name in differing[run.model]}
        row = ", ".join([run.model, *(f"{name}={_text(value)}" for name, value in axes.items())])
        taken[row, column] += 1
        number = taken[row, column]
        found.append(Placed(row if number == 1 else f"{row} ({number})", column, axes))
    return found


def in_order(runs: Sequence[Placeable], places: Sequence[Placed]) -> tuple[list[str], list[str]]:
    """The names of rows and columns: rows by model and the values of its settings, both natural.

    So `m=2` comes before `m=10`.
    """
    rows = {place.row: (run, place) for run, place in zip(runs, places, strict=True)}
    keys = {
        row: (run.model, [_natural(_text(value)) for value in place.axes.values()], _natural(row))
        for row, (run, place) in rows.items()
    }
    columns = {place.column for place in places}
    return sorted(rows, key=lambda row: keys[row]), sorted(columns, key=_natural)


def _differing(runs: Sequence[Placeable]) -> Mapping[str, list[str]]:
    """The settings in which the runs of each model differ, in the order of config.yaml."""
    seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        names[run.model] |= dict.fromkeys(run.config)
    for run in runs:
        for name, value in run.config.items():  # one that is missing is of an earlier version
            seen[run.model][name].add(json.dumps(value, sort_keys=True, default=str))
    return defaultdict(
        list,
        {
            model: [n for n in named if len(seen[model][n]) > 1 and n not in _NOT_IN_ROWS]
            for model, named in names.items()
        },
    )


def _columns(runs: Sequence[Placeable]) -> list[str]:
    """The name of each run's column."""
    words: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for run in runs:
        if run.words:
            words[run.task].add((run.version, run.words))
    return [
        f"{run.task} (version {run.version}, {run.words[:8]})"
        if run.words and len(words[run.task]) > 1
        else run.task
        for run in runs
    ]


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "+".join(map(_text, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _natural(text: str) -> list[tuple[bool, float, str]]:
    """A key by which numbers inside a text count as numbers."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e-?\d+)?)", text)
    return [
        (False, float(part), "") if number % 2 else (True, 0.0, part)
        for number, part in enumerate(parts)
    ]
