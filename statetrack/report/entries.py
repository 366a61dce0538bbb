"""What a report is made of: one entry for each run, and the table that they fill.

Tables, files, figures and pages are all drawn from these; torch is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from statetrack.algebra import Prediction
from statetrack.evidence import Bracket, Evidence
from statetrack.runs import EvaluationRow, Outcome
from statetrack.sweep import Compared

State = Literal["finished", "unfinished", "failed", "waiting"]

Measure = Literal["accuracy", "scaled", "success", "prefix", "horizon", "worst"]
"""What a cell shows: accuracy at the last position, the same with chance at 0, the replicas right
on every word, the share of words right at every position, and the lengths up to which every random
word and every word that was sought is right."""

Over = Literal["all", "seeds"]
"""The replicas of a statistic: all of them, or the seeds at the selected learning rate."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run in a report: its place in the table, what was done, and what was found.

    `row` and `column` are its places (of a suite, its names; of other runs, the model with the
    settings in which the runs differ, and the task). `rows` are the scores of every replica that
    did not diverge, at every length tested; of several evaluations of one length, the last.
    `outcomes` has every replica of a finished run, `selected` the one that validation selected.
    `evidence` is about that one. `trained_to` is the longest training length. `command` repeats the
    run alone. `seconds` are those of training, on `machine`; `words` are those that each replica
    was trained on. `symbols` and `labels` are the names of those of the task. `parameters` and
    `dimensions` are the weights of one replica and the numbers in its state, None where they are
    not known or the state grows. `error` says why a run failed, `notes` what a reader of its
    numbers must know.
    """

    row: str
    column: str
    run: Path
    state: State
    model: str
    task: str
    settings: Mapping[str, Any]
    axes: Mapping[str, Any] = field(default_factory=dict)
    settings_hash: str = ""
    task_version: int = 0
    task_hash: str = ""
    command: str = ""
    version: str = ""
    machine: str = ""
    device: str = ""
    started: str = ""
    replicas: int = 0
    diverged: int = 0
    steps: int = 0
    seconds: float = 0.0
    words: int = 0
    parameters: int | None = None
    dimensions: int | None = None
    trained_to: int | None = None
    symbols: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    selected: int | None = None
    rows: tuple[EvaluationRow, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    searched: Mapping[str, float] = field(default_factory=dict)
    prediction: Prediction | None = None
    compared: tuple[Compared, ...] = ()
    error: str = ""
    notes: tuple[str, ...] = ()

    @property
    def bracket(self) -> Bracket:
        """What is proven of the selected replica, and where it fails."""
        wrong = [r.first_error for r in self.rows if r.selected and r.first_error is not None]
        return Bracket.of(self.evidence, wrong_at=min(wrong, default=None))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths tested, rising."""
        return tuple(sorted({row.length for row in self.rows}))

    def at(self, length: int) -> tuple[EvaluationRow, ...]:
        """The scores of every replica at a length."""
        return tuple(row for row in self.rows if row.length == length)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The entries of a report, and how their table is read.

    `row_names` and `column_names` are in the order of the table; `length` is the one whose
    accuracies it shows (0: nothing was evaluated), `measure` what of them. `suite` is the name of
    the suite, if it is one. An entry whose settings cannot be read has no place in the table: its
    row and column are empty. `training` says how the runs were trained, in lines;
    `departures` how training and testing differ from those of `reference`, and `differences` the
    settings in which they do, with both values. `command` is the one that makes the report.
    """

    title: str
    entries: tuple[Entry, ...]
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    length: int
    measure: Measure = "accuracy"
    suite: str | None = None
    budget: str | None = None
    reference: str = ""
    departures: str = ""
    differences: str = ""
    training: str = ""
    command: str = ""

    def find(self, row: str, column: str) -> Entry | None:
        """The entry at a place of the table."""
        return next((e for e in self.entries if (e.row, e.column) == (row, column)), None)

    def to_markdown(self, **wanted: Any) -> str:
        """The table as Markdown; `wanted` are the fields of `statetrack.report.formats.Wanted`."""
        return self._as("markdown", wanted)

    def to_latex(self, **wanted: Any) -> str:
        """The table as LaTeX; `wanted` likewise."""
        return self._as("latex", wanted)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each run and length, with the columns of the CSV: for a data frame."""
        from statetrack.report.long_form import long_rows

        return [dict(vars(row)) for row in long_rows(self)]

    def _as(self, form: Literal["markdown", "latex"], wanted: Mapping[str, Any]) -> str:
        from statetrack.report.wanted import Wanted  # which imports this module

        content = Wanted(form=form, **wanted).of_report(self)
        assert isinstance(content, str)
        return content
