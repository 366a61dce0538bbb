"""The map of a table: of every model and task, what theory says beside what training found.

Rows and columns are in the order of theory: tasks from what most rows can do to what fewest can,
rows from those that can do least to those that can do most. So what is possible at all fills one
corner, and what is learned of it is seen at a glance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from statetrack.algebra import Answer, Prediction
from statetrack.evidence import Bracket
from statetrack.models import MODEL_FACTS, MODELS
from statetrack.predicting import predict
from statetrack.report.entries import Entry, reach_of, reach_text, worst_text
from statetrack.report.recorded import RecordedCell, RecordedTable
from statetrack.report.table import MISSING, Column, Table
from statetrack.runs import Algebras, EvaluationRow, Outcome
from statetrack.scoring import horizon
from statetrack.spec import load_task
from statetrack.sweep import Measurement
from statetrack.text import markdown, markdown_table

if TYPE_CHECKING:
    from statetrack.training import TaskWords

Standing = Literal[
    "learned",
    "not held",
    "not learned",
    "too small",
    "cannot",
    "open, learned",
    "open",
    "DISAGREES",
    "tests nothing",
]

STANDINGS: Mapping[Standing, str] = {
    "learned": "can, and is right beyond training",
    "not held": "can; learned words of training, fails on longer ones",
    "not learned": "can; words of training were not learned",
    "too small": "can at another size",
    "cannot": "cannot, and fails",
    "open, learned": "not known whether it can; right beyond training",
    "open": "not known whether it can; fails",
    "DISAGREES": "cannot, and is right on every word tried",
    "tests nothing": "words have one possible answer",
}
"""What each standing says of a cell. *Right* is every answer of every word of every longer length
that was tried, of some replica; *learned* is `FITTED` of the words of validation."""

FITTED = 0.99
"""The share of validation words with every answer right from which a replica has learned them."""


def standing_of(
    can: Answer | None, answer: Answer | None, *, right: bool, fitted: bool, tests: bool = True
) -> Standing:
    """Where a cell stands: by what its class of models can, what its settings can, and its best.

    `can` is said of the class at some size and `answer` of the settings at hand; `right` is that
    some replica is right on every longer word, `fitted` that one learned the words of training.
    """
    if not tests:
        return "tests nothing"
    if can == "no":
        return "DISAGREES" if right else "cannot"
    if right:
        return "learned" if can == "yes" else "open, learned"
    if can != "yes":
        return "open"
    if answer == "no":
        return "too small"
    return "not held" if fitted else "not learned"


@dataclass(frozen=True, kw_only=True)
class MapCell:
    """One model on one task: where it stands, and what its replicas reached.

    `family` is the class of models that its model names, `right` counts the replicas with every
    answer right at every length beyond those of training, and `holds_to` is the longest tested
    length up to which the best one is right on every word. `fitted` is the greatest share of words
    of validation, which have the lengths of training, that a replica has right at every symbol
    after `steps` steps, and `at_longest` that of words of the `longest` tested length. `seconds`
    are those of training.

    Of the selected replica, every word that was tried or proven is right up to the length
    `right_to`, which is infinity where that is proven for all, and some word of the length
    `fails_at` is answered wrongly; both are None where no word was sought that fails. `built` says
    whether exact weights of this model on this task were built and run; None is not known.
    """

    row: str
    column: str
    family: str
    standing: Standing
    replicas: int
    right: int
    holds_to: int
    steps: int
    fitted: float
    longest: int
    at_longest: float
    seconds: float
    right_to: float | None = None
    fails_at: int | None = None
    built: bool | None = None

    @classmethod
    def of_entry(cls, entry: Entry) -> MapCell | None:
        """The cell of a run of a report; None where it was not evaluated beyond training."""
        judged = entry.judged
        if judged is None or judged.best is None:
            return None
        found, reached = judged.prediction, _reached(entry.rows, entry.outcomes, entry.steps)
        return cls(
            row=entry.row,
            column=entry.column,
            family=family_of(entry.model),
            standing=standing_of(
                None if found is None else found.can,
                judged.predicted,
                right=judged.num_tracking > 0,
                fitted=reached["fitted"] >= FITTED,
                tests=judged.best.tests,
            ),
            replicas=entry.replicas,
            right=judged.num_tracking,
            holds_to=judged.best.horizon,
            seconds=round(entry.seconds, 1),
            **_sought(entry.bracket),
            **reached,
        )

    @classmethod
    def of_record(
        cls,
        cell: RecordedCell,
        model: str,
        measured: Measurement,
        found: Prediction,
        words: TaskWords,
        built: bool | None = None,
    ) -> MapCell:
        """The cell of a recorded point, trained on some words: predicted by the present rules."""
        result, trained_to = cell.result(measured), words.spec.lengths.longest
        rows = result.every_row
        beyond = sorted({row.length for row in rows if row.length > trained_to}, reverse=True)
        by_replica = [
            [row for row in rows if row.replica == replica] for replica in range(len(cell.outcomes))
        ]
        reached = _reached(rows, cell.summary().replicas, cell.steps)
        right = sum(
            bool(own) and all(row.all_right for row in own if row.length > trained_to)
            for own in by_replica
        )
        return cls(
            row=cell.row,
            column=cell.column,
            family=family_of(model),
            standing=standing_of(
                found.can,
                found.answer,
                right=right > 0,
                fitted=reached["fitted"] >= FITTED,
                tests=not all(map(words.drawn.source.has_one_answer, beyond)),
            ),
            replicas=len(cell.outcomes),
            right=right,
            holds_to=max((horizon(own) for own in by_replica if own), default=0),
            seconds=cell.seconds,
            built=built,
            **_sought(result.bracket),
            **reached,
        )

    @property
    def says(self) -> str:
        """The cell in one line."""
        found = f"right beyond training: {self.right} of {self.replicas}"
        if self.holds_to:
            found += f"; every word right up to length {self.holds_to:,}"
        if self.why:
            found += f"; {self.why}"
        if self.right and self.worst:
            found += f"; worst-case horizon of the selected replica: {self.worst}"
        if self.built:
            found += "; exact weights are built"
        return f"{self.row} on {self.column}: {self.standing} ({STANDINGS[self.standing]}); {found}"

    @property
    def worst(self) -> str:
        """The worst-case horizon of the selected replica; empty where no word was sought."""
        return "" if self.right_to is None else reach_text(self.right_to, self.fails_at)

    @property
    def why(self) -> str:
        """What was measured of the best replica of a cell that can and is not right; else empty."""
        if self.standing == "not learned":
            return (
                f"{_share(self.fitted)} of validation words are right after {self.steps:,} steps "
                f"({_share(FITTED)} count as learned)"
            )
        if self.standing == "not held":
            right = f"{_share(self.at_longest)} of words of {self.longest:,} symbols are right"
            return f"{_share(self.fitted)} of validation words are right, {right}"
        return ""


def family_of(model: str) -> str:
    """The class that a model names; empty for one that names none, or is not at hand."""
    return (MODEL_FACTS[model].family or "") if model in MODELS else ""


def _reached(
    rows: Sequence[EvaluationRow], outcomes: Sequence[Outcome], steps: int
) -> dict[str, Any]:
    """The fields of a cell that say how far its replicas came."""
    longest = max((row.length for row in rows), default=0)
    whole = (row.prefix_accuracy for row in rows if row.length == longest)
    return {
        "steps": steps,
        "fitted": max((one.validation_prefix_accuracy or 0.0 for one in outcomes), default=0.0),
        "longest": longest,
        "at_longest": max(whole, default=0.0),
    }


def _sought(bracket: Bracket) -> dict[str, Any]:
    """The fields of a cell that say where its selected replica fails, if such words were sought."""
    if worst_text(bracket) == MISSING:
        return {}
    return {"right_to": reach_of(bracket), "fails_at": bracket.fails_at}


def _share(of_words: float) -> str:
    """A share of words, of which only all are written as 100 %."""
    return f"{math.floor(of_words * 1000) / 10:.1f}".removesuffix(".0") + " %"


@dataclass(frozen=True)
class LearnedMap:
    """The cells of a map, and its rows and columns in the order of theory."""

    cells: tuple[MapCell, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, cells: Iterable[MapCell | None]) -> LearnedMap:
        """The map of some cells; of None there is none."""
        found = tuple(cell for cell in cells if cell is not None)
        cannot = [cell for cell in found if cell.standing in ("cannot", "DISAGREES")]

        def shares(place: Callable[[MapCell], str]) -> dict[str, float]:
            """Of each row, or column, the share of its cells that cannot, least first."""
            every, some = Counter(map(place, found)), Counter(map(place, cannot))
            return dict(sorted(((n, some[n] / every[n]) for n in every), key=lambda one: one[1]))

        rows, columns = shares(lambda cell: cell.row), shares(lambda cell: cell.column)
        return cls(found, tuple(sorted(rows, key=lambda row: -rows[row])), tuple(columns))

    @classmethod
    def of_records(
        cls, table: RecordedTable, built: Collection[tuple[str, str]] | None = None
    ) -> LearnedMap:
        """The map of a recorded suite; `built` are the rows and columns with exact weights."""
        from statetrack.training import TaskWords  # torch

        suite, algebras = table.suite_now, Algebras()
        points = {(point.row, point.column): point for point in table.points}
        tasks = {point.column: load_task(point.experiment.data.task) for point in points.values()}
        cells = []
        for cell in table.cells:
            if (point := points.get((cell.row, cell.column))) is None:
                continue
            task, experiment = tasks[cell.column], point.experiment
            found = predict(algebras.of(task), experiment.model_settings)
            measured = Measurement.of(suite, task)
            words = TaskWords(task, experiment.data, experiment.training)
            exact = None if built is None else (cell.row, cell.column) in built
            cells.append(MapCell.of_record(cell, experiment.model, measured, found, words, exact))
        return cls.of(cells)

    def find(self, row: str, column: str) -> MapCell | None:
        """The cell at a place; None where there is none."""
        return next((c for c in self.cells if (c.row, c.column) == (row, column)), None)

    def counts(self) -> dict[Standing, int]:
        """How many cells stand where, in the order of `STANDINGS`."""
        found = Counter(cell.standing for cell in self.cells)
        return {standing: found[standing] for standing in STANDINGS if found[standing]}

    def table(self) -> Table:
        """The cells, for programs."""
        names = [each.name for each in fields(MapCell)]
        rows = [[getattr(cell, name) for name in names] for cell in self.cells]
        return Table([Column(name) for name in names], rows)

    def to_markdown(self, *, by: Literal["row", "column"]) -> str:
        """A table with a line for each row, or column, and a count for each standing."""
        shown = list(self.counts())
        lines = []
        for name in self.rows if by == "row" else self.columns:
            own = Counter(cell.standing for cell in self.cells if getattr(cell, by) == name)
            lines.append([markdown(name), *(str(own[each] or "") for each in shown)])
        head = ["model" if by == "row" else "task", *shown]
        return markdown_table(head, lines)
