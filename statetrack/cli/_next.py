"""`reproduce --next`: the points of suites that settle the most published numbers a second.

Points that were not run yet are estimated, suite by suite, and taken in the order of the published
numbers that wait for them a second, as long as there is time.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statetrack import report, runs, sweep
from statetrack.cli import _sweeping as sweeping
from statetrack.cli import options
from statetrack.cli._terminal import note
from statetrack.errors import SettingsError

ESTIMATING = 0.1
"""The share of the seconds that may go into estimates."""


@dataclass(frozen=True)
class Waiting:
    """A point that was not run yet, how many published numbers wait for it, and its seconds."""

    name: str
    suite: sweep.Suite
    point: sweep.Point
    numbers: float
    seconds: float

    @property
    def rate(self) -> float:
        """Published numbers a second."""
        return self.numbers / max(self.seconds, 1e-3)


def run_next(
    names: Sequence[str],
    budget: str | None,
    seconds: float,
    given: Mapping[str, Any],
    own: Mapping[str, Any],
) -> None:
    """Choose points of these suites (none: of all that have published numbers), and run them.

    Raises `SettingsError` for options that choose points, or say where they are shown.
    """
    _refuse_others(given, own)
    executor = options.collect(sweep.EXECUTORS[given["executor"]], given)
    every = names or [name for name in sweep.SUITES if sweep.SUITES[name].published_tables]
    waiting: list[Waiting] = []
    for name in every:
        waiting += _waiting(name, budget, executor.num_at_once, ESTIMATING * seconds / len(every))
    chosen: list[Waiting] = []
    for each in sorted(waiting, key=lambda one: -one.rate):
        if sum(one.seconds for one in chosen) + each.seconds <= seconds * executor.num_at_once:
            chosen.append(each)
    to = report.console()
    if not chosen:
        least = min(waiting, key=lambda one: one.seconds, default=None)
        raise SettingsError(
            "--next: no published number waits for a point that was not run"
            if least is None
            else f"--next: no point takes so few seconds: the least, {least.point.row} on "
            f"{least.point.column} of {least.name}, takes about {least.seconds:,.0f}"
        )
    to.print(_table(chosen))
    if given["dry_run"]:
        return
    log = given["log"] or ()
    runs.require_logs(log)
    for name in dict.fromkeys(each.name for each in chosen):
        own_points = [each.point for each in chosen if each.name == name]
        suite = next(each.suite for each in chosen if each.name == name)
        done = sweeping.run_points(suite, own_points, executor, log=log)
        places = {(point.row, point.column) for point in own_points}
        compared = [
            each
            for each in sweep.compare_published(suite, own_points, done)
            if each.is_about(places)
        ]
        to.print(report.verdict_table(compared))
        to.print(f"{name}: {report.summary(compared)}")


def _refuse_others(given: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    usual = inspect.signature(sweeping.Sweep).parameters
    shown = (
        *("rows", "columns", "finished", "markdown", "html"),
        *("evidence", "evidence_seconds", "as_json"),
    )
    wrong = [name for name in shown if given[name] != usual[name].default]
    wrong += [name for name, value in own.items() if value]
    if wrong:
        option = "--json" if wrong[0] == "as_json" else options.flag(wrong[0])
        raise SettingsError(f"--next chooses the points itself, without {option}")


def _waiting(name: str, budget: str | None, at_once: int, seconds: float) -> list[Waiting]:
    """The points of a suite that were not run in this budget, and for which numbers wait."""
    loaded = sweep.load_suite(name)
    if budget is not None and budget not in loaded.budgets:
        return []
    suite = loaded.for_budget(budget)
    points = sweep.points_of(suite, sweep.folder_of(name, budget), {}, to_train=False)
    numbers = sweep.open_numbers(suite, points)
    open_points = [
        point
        for point in points
        if (point.row, point.column) in numbers and not runs.RunFolder(point.path).finished
    ]
    if not open_points:
        return []
    note(f"{name}: estimating {len(open_points)} points")
    found = sweep.estimate(suite, open_points, at_once, budget=seconds)
    return [
        Waiting(name, suite, point, numbers[point.row, point.column], each.seconds)
        for point, each in zip(open_points, found.points, strict=True)
    ]


def _table(chosen: Sequence[Waiting]) -> report.Table:
    rows = [
        (each.name, each.point.row, each.point.column, f"{each.numbers:g}", f"{each.seconds:,.0f}")
        for each in chosen
    ]
    columns = report.plain_columns("suite", "row", "column", "numbers", "s", right=("numbers", "s"))
    return report.Table(columns, rows, title="points that settle the most numbers a second")
