"""The long form of a report: one row for each run and length, with everything about both.

A run without scores has one row, whose length is None.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from statetrack.errors import SettingsError, nearest_or_known
from statetrack.report.entries import Entry, Report
from statetrack.report.statistics import Population, horizon_of_entry, statistics_at
from statetrack.scoring import plain, rounded_down, rounded_up


@dataclass(frozen=True, kw_only=True)
class LongRow:
    """One run at one length; the names of the fields are those of the columns in files.

    docs/file-formats.md says what each is.
    """

    row: str
    column: str
    model: str
    task: str
    state: str
    length: int | None
    trained_to: int | None
    words: int | None
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    symbol_accuracy: float | None
    prefix_accuracy: float | None
    floor: float | None
    chance: float | None
    scaled: float | None
    scaled_to_floor: float | None
    first_error: int | None
    nonfinite_from: int | None
    merging_horizon: int | None
    selected_replica: int | None
    selected_seed: int | None
    selected_lr: float | None
    replicas: int
    diverged: int
    evaluated: int | None
    right: int | None
    success: float | None
    success_low: float | None
    success_high: float | None
    best: float | None
    median: float | None
    mean: float | None
    deviation: float | None
    least: float | None
    seeds: int | None
    seeds_diverged: int | None
    seeds_evaluated: int | None
    seeds_right: int | None
    seeds_success: float | None
    seeds_success_low: float | None
    seeds_success_high: float | None
    seeds_best: float | None
    seeds_median: float | None
    seeds_mean: float | None
    seeds_deviation: float | None
    seeds_least: float | None
    horizon: int | None
    worst_case: int | None
    fails_at: int | None
    proven: str | None
    proven_length: int | None
    predicted: str | None
    theorem: str | None
    steps: int
    seconds: float
    words_trained: int
    parameters: int | None
    dimensions: int | None
    task_version: int
    task_hash: str
    settings_hash: str
    version: str
    machine: str
    device: str
    started: str
    run: str
    command: str
    settings: str
    axes: str
    compared: str
    notes: str
    error: str


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(LongRow))
"""The names of the columns, in their order."""

MAIN: tuple[str, ...] = (
    *("row", "column", "length", "words", "accuracy", "accuracy_low", "accuracy_high", "floor"),
    *("right", "replicas", "best", "median", "mean", "deviation", "horizon", "steps", "seconds"),
)
"""The columns that a reader is shown unless others are asked for; files have all."""

TYPES: dict[str, type] = {
    name: next(kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None))
    for name, hint in get_type_hints(LongRow).items()
}
"""The type of each column: `str`, `int` or `float`."""


def long_rows(report: Report, length: int | None = None) -> list[LongRow]:
    """Every run at every length it was evaluated at; with `length`, at that one alone."""
    rows = []
    for entry in report.entries:
        lengths = [each for each in entry.lengths if length is None or each == length]
        rows += [_row(entry, each) for each in lengths] or [_row(entry, None)]
    return rows


def chosen_columns(text: str) -> tuple[str, ...]:
    """The columns that a text names, separated by commas.

    Raises `SettingsError` for a name that no column has, or that is given twice.
    """
    chosen = tuple(name.strip() for name in text.split(","))
    for name in chosen:
        if name not in COLUMNS:
            raise SettingsError(
                f"--columns: there is no column '{name}'.{nearest_or_known(name, COLUMNS)}"
            )
        if chosen.count(name) > 1:
            raise SettingsError(f"--columns: '{name}' is named twice")
    return chosen


def _row(entry: Entry, length: int | None) -> LongRow:
    chosen = next((one for one in entry.outcomes if one.replica == entry.selected), None)
    bracket, prediction = entry.bracket, entry.prediction
    sought = bracket.worst_case
    return LongRow(
        row=entry.row,
        column=entry.column,
        model=entry.model,
        task=entry.task,
        state=entry.state,
        length=length,
        trained_to=entry.trained_to,
        **_scores(entry, length),
        selected_replica=entry.selected,
        selected_seed=None if chosen is None else chosen.seed,
        selected_lr=None if chosen is None else chosen.lr,
        replicas=entry.replicas,
        diverged=entry.diverged,
        **_statistics(entry, length),
        horizon=horizon_of_entry(entry),
        worst_case=None if sought is None or sought.tested == 0 else bracket.right_to,
        fails_at=bracket.fails_at,
        proven=bracket.verdict if bracket.exhaustive or bracket.certificate else None,
        proven_length=bracket.proven,
        predicted=None if prediction is None else prediction.answer,
        theorem=None if prediction is None else prediction.theorem,
        steps=entry.steps,
        seconds=entry.seconds,
        words_trained=entry.words,
        parameters=entry.parameters,
        dimensions=entry.dimensions,
        task_version=entry.task_version,
        task_hash=entry.task_hash,
        settings_hash=entry.settings_hash,
        version=entry.version,
        machine=entry.machine,
        device=entry.device,
        started=entry.started,
        run=entry.run.as_posix(),
        command=entry.command,
        settings=_json(entry.settings),
        axes=_json(entry.axes),
        compared=_json([one.to_json() for one in entry.compared]),
        notes="; ".join(entry.notes),
        error=entry.error,
    )


SCORES = {
    "words": "sequences",
    "accuracy": "accuracy",
    "accuracy_low": "low",
    "accuracy_high": "high",
    "symbol_accuracy": "symbol_accuracy",
    "prefix_accuracy": "prefix_accuracy",
    "floor": "floor",
    "chance": "chance",
    "scaled": "scaled",
    "scaled_to_floor": "scaled_to_floor",
    "first_error": "first_error",
    "nonfinite_from": "nonfinite_from",
    "merging_horizon": "merging_horizon",
}
"""The columns about the selected replica at the length, and the fields of its row."""


def _scores(entry: Entry, length: int | None) -> dict[str, Any]:
    """The scores of the selected replica at a length; None where it has none."""
    row = None if length is None else next((r for r in entry.at(length) if r.selected), None)
    if row is None:
        return dict.fromkeys(SCORES)
    return {name: _finite(getattr(row, field)) for name, field in SCORES.items()}


def _statistics(entry: Entry, length: int | None) -> dict[str, Any]:
    if length is None:
        nobody = dict.fromkeys(name for name in COLUMNS if name.startswith("seeds"))
        return nobody | dict.fromkeys(OVER_REPLICAS)
    found = statistics_at(entry, length)
    return {
        **_population(found.everyone),
        "seeds": found.seeds.replicas,
        "seeds_diverged": found.seeds.diverged,
        **{f"seeds_{name}": value for name, value in _population(found.seeds).items()},
    }


OVER_REPLICAS = (
    *("evaluated", "right", "success", "success_low", "success_high"),
    *("best", "median", "mean", "deviation", "least"),
)
"""The columns over replicas; those that begin with `seeds_` are at the selected learning rate."""


def _population(found: Population) -> dict[str, Any]:
    low, high = found.success_interval or (None, None)
    return {
        "evaluated": found.evaluated,
        "right": found.right,
        "success": found.success,
        "success_low": low,
        "success_high": high,
        "best": found.best,
        "median": found.median,
        "mean": found.mean,
        "deviation": found.deviation,
        "least": found.least,
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(content: Any) -> str:
    return json.dumps(plain(content), ensure_ascii=False, default=str)


def as_text(name: str, value: Any) -> str:
    """A value as a reader is shown it; accuracies are rounded down, and what is above them up."""
    if value is None:
        return "-"
    if isinstance(value, float):
        if name == "seconds":
            return f"{value:.1f}"
        if name == "selected_lr":
            return f"{value:g}"
        digits = 3 if name.endswith(("_low", "_high")) else 2
        above = name.endswith(("_high", "deviation"))
        return rounded_up(value, digits) if above else rounded_down(value, digits)
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())


def is_number(rows: Sequence[LongRow], name: str) -> bool:
    """Whether a column has a number."""
    return any(isinstance(getattr(row, name), int | float) for row in rows)


def as_values(rows: Sequence[LongRow], columns: Sequence[str] = COLUMNS) -> list[list[Any]]:
    """The values of some columns, row by row."""
    return [[getattr(row, name) for name in columns] for row in rows]
