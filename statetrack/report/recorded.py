"""Recorded tables: what was measured, by which command, and on what its numbers depend.

Every recorded table has one file in this form. That of a suite keeps the counts of right words of
every replica, so that its verdicts are given anew by the present rules without training. A table is
stale where something that it depends on is no longer what it was, or where it says so itself: of
what was recorded before records were kept, nobody knows what it depends on.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from statetrack.evidence import Evidence
from statetrack.runs import (
    WITHOUT_EFFECT,
    EvaluationRow,
    Outcome,
    Summary,
    evidence_to_json,
    read_evidence,
)
from statetrack.scoring import Accuracies, horizon, score_of, wilson
from statetrack.spec import golden_hash, load_task
from statetrack.sweep import (
    SUITES,
    Compared,
    Measurement,
    Point,
    PointResult,
    Suite,
    compare_published,
    points_of,
)
from statetrack.training import SAME_SINCE


@dataclass(frozen=True, kw_only=True)
class RecordedCell:
    """What was measured of one point of a suite.

    `rows` are `[replica, length, words, right at the last position, right at every position, share
    of positions, floor]`, `outcomes` are `[seed, lr, validation accuracy, share of right validation
    words, best step]` of each replica in their order, of one that diverged with null shares.
    `horizon` is read where lengths were tested that no row is of; earlier versions left those of
    curves out of it.
    `evidence`, `searched` and `first_error` are about the selected replica, as `PointResult` has
    them; where nothing was looked for, they are missing in the file.
    """

    row: str
    column: str
    steps: int
    seconds: float
    selected: int | None
    chance: float
    horizon: int
    rows: Sequence[Sequence[Any]]
    outcomes: Sequence[Sequence[Any]]
    evidence: Sequence[Mapping[str, Any]] = ()
    searched: Mapping[str, float] = field(default_factory=dict)
    first_error: int | None = None

    @classmethod
    def of(cls, result: PointResult, summary: Summary) -> RecordedCell:
        """The numbers of a result, and of the training behind it."""
        return cls(
            row=result.row,
            column=result.column,
            steps=result.steps,
            seconds=round(result.seconds, 1),
            selected=summary.selected,
            chance=result.every_row[0].chance if result.every_row else 0.0,
            horizon=result.horizon,
            rows=[
                (
                    *(row.replica, row.length, row.sequences),
                    round(row.accuracy * row.sequences),
                    round(row.prefix_accuracy * row.sequences),
                    *(round(row.symbol_accuracy, 4), round(row.floor, 6)),
                )
                for row in result.every_row
                if not math.isnan(row.accuracy)
            ],
            outcomes=[
                (
                    *(one.seed, one.lr, one.validation_accuracy),
                    *(one.validation_prefix_accuracy, one.best_step),
                )
                for one in summary.replicas
            ],
            evidence=[evidence_to_json(each) for each in result.evidence],
            searched=result.searched,
            first_error=result.first_error if result.searched else None,
        )

    def to_json(self) -> dict[str, Any]:
        """The cell as a line of the file."""
        content = dict(vars(self))
        if not self.searched:
            for name in ("evidence", "searched", "first_error"):
                del content[name]
        return content

    def summary(self) -> Summary:
        """The outcome of training."""
        outcomes = (
            Outcome(replica, seed, lr, right, None, step, "", validation_prefix_accuracy=words)
            for replica, (seed, lr, right, words, step) in enumerate(self.outcomes)
        )
        return Summary(self.steps, self.seconds, self.selected, tuple(outcomes))

    def result(self, measured: Measurement) -> PointResult:
        """The result, as far as it is recorded."""
        rows = []
        for replica, length, words, last, whole, symbols, floor in self.rows:
            counted = Accuracies(
                words, last / words, *wilson(last, words), symbols, whole / words, None
            )
            score = score_of(length, counted, floor, self.chance)
            seed, lr = self.outcomes[replica][:2]
            about = {"replica": replica, "seed": seed, "lr": lr}
            rows.append(EvaluationRow(**vars(score), **about, selected=replica == self.selected))
        own = tuple(row for row in rows if row.length == measured.length)
        return PointResult(
            row=self.row,
            column=self.column,
            run=f"{self.column}/{self.row}",
            replicas=len(self.outcomes),
            rows=own,
            curves=tuple(rows) if measured.curve_lengths else (),
            selected=next((row for row in own if row.selected), None),
            success=sum(row.all_right for row in own) / len(self.outcomes),
            horizon=self.horizon
            if measured.horizon_lengths
            else horizon(row for row in rows if row.selected),
            steps=self.steps,
            seconds=self.seconds,
            measured=measured,
            first_error=self.first_error,
            evidence=tuple(self._known_evidence()),
            searched=self.searched,
        )

    def _known_evidence(self) -> Iterator[Evidence]:
        for content in self.evidence:
            if (known := read_evidence(content, f"{self.row} on {self.column}")) is not None:
                yield known


@dataclass(frozen=True, kw_only=True)
class RecordedTable:
    """One recorded table: the content of its file.

    `depends` has what its numbers depend on, by name; `stale` says why it is known not to hold any
    more, where that cannot be found by comparing. `suite`, `settings` and `cells` are those of a
    suite: `settings` has those of all points under an empty name, what others have by their row and
    column, and how they were tested. `seed` is the first seed, where it is not the suite's own.
    """

    name: str
    command: str
    date: str
    version: str
    commit: str
    machine: str
    seconds: float
    depends: Mapping[str, str]
    stale: Sequence[str] = ()
    suite: str = ""
    budget: str | None = None
    seed: int | None = None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cells: Sequence[RecordedCell] = field(default=())

    @classmethod
    def read(cls, file: Path) -> RecordedTable:
        """The table of a file."""
        content = json.loads(file.read_text(encoding="utf-8"))
        cells = [RecordedCell(**cell) for cell in content.pop("cells", ())]
        return cls(**content, cells=cells)

    def write(self, file: Path) -> None:
        """Write the file: a line for every setting and every cell."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        del content["cells"]
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()]
        if self.cells:
            cells = ",\n".join(json.dumps(cell.to_json()) for cell in self.cells)
            lines.append(f'"cells": [\n{cells}\n]')
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    def why_stale(self) -> list[str]:
        """Why the table does not hold any more; empty where it does."""
        if self.stale:
            return list(self.stale)
        if not self.suite:
            return _differences("", self.depends, of_everything())
        return _differences("", self.depends, dependencies(self.points)) + self._other_settings()

    def _other_settings(self) -> list[str]:
        """What a suite trains or tests otherwise now; a new setting at its default is no change."""
        return self._tested_otherwise() + [
            each for point in self.points for each in self._trained_otherwise(point)
        ]

    def _tested_otherwise(self) -> list[str]:
        return _differences("tested with ", self.settings[TESTED], _plain(_tested(self.suite_now)))

    def _trained_otherwise(self, point: Point) -> list[str]:
        then, name = self.settings, _name(point)
        were = {**then[""], **then.get(name, {})}
        now = _plain(_values(point))
        usual = _plain(point.experiment.defaults)
        known = {key: now[key] for key in now if key in were or now[key] != usual.get(key)}
        were = {key: were[key] for key in were if key in now}
        return _differences(f"{name}: ", were, known)

    def cells_that_hold(self) -> list[RecordedCell]:
        """Of a suite, the cells that are not stale themselves, where the table is as well."""
        if self.stale or self._tested_otherwise():
            return []
        points = {(point.row, point.column): point for point in self.points}

        def holds(point: Point) -> bool:
            now = dependencies([point])
            same = all(self.depends.get(name) == of for name, of in now.items())
            return same and not self._trained_otherwise(point)

        return [
            cell
            for cell in self.cells
            if (point := points.get((cell.row, cell.column))) and holds(point)
        ]

    # --- of a suite, as it is when one of these is asked for first ---

    @cached_property
    def suite_now(self) -> Suite:
        """The suite as it is now, within the budget, and from the seed of the record."""
        own = {} if self.seed is None else {"seed": self.seed}
        return SUITES[self.suite].for_budget(self.budget).with_settings(own)

    @cached_property
    def all_points(self) -> tuple[Point, ...]:
        """The points of the suite as it is now."""
        return tuple(points_of(self.suite_now, Path(), {}, to_train=False))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Those of them that were recorded."""
        there = {(cell.row, cell.column) for cell in self.cells}
        return tuple(
            point for point in self.all_points if not there or (point.row, point.column) in there
        )

    @cached_property
    def results(self) -> tuple[PointResult, ...]:
        """What was measured, at the lengths that the suite has now."""
        suite = self.suite_now
        tasks = {name: load_task(str(own["task"])) for name, own in suite.columns.items()}
        return tuple(
            cell.result(Measurement.of(suite, tasks[cell.column]))
            for cell in self.cells
            if cell.column in tasks and cell.row in suite.rows
        )

    @cached_property
    def compared(self) -> tuple[Compared, ...]:
        """The verdicts on the published numbers of what was recorded, by the present rules."""
        known = {f"{cell.column}/{cell.row}": cell.summary() for cell in self.cells}
        found = compare_published(
            self.suite_now, self.points, self.results, lambda run: known.get(run.as_posix())
        )
        there = {(cell.row, cell.column) for cell in self.cells}
        return tuple(each for each in found if each.is_about(there))


TESTED = "tested"
"""The name under which a record has how the points were tested."""


def dependencies(points: Sequence[Point]) -> dict[str, str]:
    """What the numbers of some points of a suite depend on beside their settings, by name."""
    experiments = [point.experiment for point in points]
    depends = {"training": SAME_SINCE}
    for model in {each.model for each in experiments}:
        depends[f"model {model}"] = _since(model)
    for name in {each.data.task for each in experiments}:
        task = load_task(name)
        depends[f"task {name}"] = f"version {task.spec.version}, words {golden_hash(task)[:12]}"
    return dict(sorted(depends.items()))


def settings_of(suite: Suite, points: Sequence[Point]) -> dict[str, dict[str, Any]]:
    """The settings of points as a record has them: what all have in common once."""
    every = {_name(point): _plain(_values(point)) for point in points}
    first: dict[str, Any] = next(iter(every.values()), {})
    common = {
        key: value
        for key, value in first.items()
        if all(key in own and own[key] == value for own in every.values())
    }
    others = {
        name: {key: value for key, value in own.items() if key not in common}
        for name, own in every.items()
    }
    return {TESTED: _plain(_tested(suite)), "": common, **others}


def _tested(suite: Suite) -> dict[str, Any]:
    names = ("length", "samples", "curve_lengths", "horizon_lengths", "horizon_samples")
    return {name: getattr(suite, name) for name in names}


def _name(point: Point) -> str:
    return f"{point.row} on {point.column}"


def _values(point: Point) -> dict[str, Any]:
    """The settings of a point that its numbers depend on."""
    values = point.experiment.values().items()
    return {name: value for name, value in values if name not in WITHOUT_EFFECT}


def _differences(where: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is otherwise, one line each."""
    return [
        f"{where}{name}: {then.get(name, 'nothing')} then, {now.get(name, 'nothing')} now"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]


def of_everything() -> dict[str, str]:
    """What a table depends on that asks all models, or all tasks; plugins' are none of them."""
    from statetrack.models import MODELS
    from statetrack.spec import TASKS

    shipped = [name for name in MODELS if MODELS[name].__module__.startswith("statetrack.")]
    return {
        "training": SAME_SINCE,
        "models": _hash({name: _since(name) for name in shipped}),
        "tasks": _hash({name: TASKS[name].spec.version for name in TASKS}),
    }


def _since(model: str) -> str:
    from statetrack.models import MODELS

    return MODELS[model].same_since


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(content: Any) -> Any:
    """Values as they are read back from JSON."""
    return json.loads(json.dumps(content, default=str))
