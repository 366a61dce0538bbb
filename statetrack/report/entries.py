"""What a report is made of: one entry for each run, and the table that they fill.

Tables, files, figures and pages are all drawn from these; torch is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from statetrack.algebra import Prediction
from statetrack.evidence import Bracket, Evidence
from statetrack.report.table import MISSING
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
class Gathered:
    """What a `Report` holds, whose docstring says what its fields are."""

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


def worst_text(bracket: Bracket) -> str:
    """The length up to which every word tried is right: `1,701`, or `>= 30,000` without a failure.

    A wrong answer to the random words counts too, and a proof of more than was tried: `all lengths`
    where that is proven. `-` where no word was sought or could be.
    """
    if bracket.worst_case is None and bracket.verdict == "not proven":
        return MISSING
    if bracket.fails_at is not None:
        return f"{bracket.right_to:,}"
    return "all lengths" if bracket.proven is None else f">= {bracket.right_to:,}"


def short_names(runs: Sequence[Path]) -> list[str]:
    """A name for each folder, in their order: `b`, or `sweep/b` where another has a `b` too.

    Folders with the same path have the same name.
    """
    found: dict[Path, str] = {}
    for run in runs:
        others = [each.parts for each in runs if each != run]
        for number in range(1, len(run.parts) + 1):
            end = run.parts[-number:]
            if all(other[-number:] != end for other in others):
                break
        found[run] = "/".join(run.parts[-number:]) if number < len(run.parts) else run.as_posix()
    return [found[run] for run in runs]
