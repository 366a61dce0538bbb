"""What a report is made of: one entry for each run, and what its replicas reach at each length.

Tables, files, figures and pages are all drawn from these; torch is not imported here.

The replicas of a run are every seed at every learning rate. Two populations are told apart: all of
them, and the seeds at the selected learning rate, which is what papers report. A replica that
diverged counts as 0, and as one that failed: its answers would be NaN, and such answers are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from statetrack.algebra import Prediction
from statetrack.evidence import Bracket, Evidence
from statetrack.report.table import MISSING
from statetrack.runs import (
    Comparison,
    EvaluationRow,
    Outcome,
    RunFacts,
    judge,
    settings_hash,
    train_command,
)
from statetrack.scoring import ReplicaSpread, horizon, wilson
from statetrack.spec import current_name, golden_hash
from statetrack.sweep import MOST_TABLE_LENGTHS, Compared, Of

State = Literal["finished", "unfinished", "failed", "waiting"]

Measure = Literal["accuracy", "scaled", "success", "prefix", "horizon", "worst"]
"""What a cell shows: accuracy at the last position, the same with chance at 0, the replicas right
on every word, the share of words right at every position, and the lengths up to which every random
word and every word that was sought is right."""

Also = Literal["weights", "state", "seconds", "interval"]
"""What can stand beside the numbers of a table: the weights of a replica, the numbers in its state,
the seconds of training, and 95 % intervals."""

Over = Literal["all", "seeds"]
"""The replicas of a statistic: all of them, or the seeds at the selected learning rate."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run in a report: its place in the table, what was done, and what was found.

    `row` and `column` are its places (of a suite, its names; of other runs, the model with the
    settings in which the runs differ, and the task). `rows` are the scores of every replica that
    did not diverge, at every length tested; of several evaluations of one length, the last.
    `every_row` are those of the selected one in all evaluations that count, however their words are
    drawn: what is known to be answered wrongly stays so.
    `newest_lengths` are those of the last evaluation.
    `outcomes` has every replica of a finished run, `selected` the one that validation selected.
    `evidence` is about that one. `trained_to` is the longest training length. `command` repeats the
    run alone. `seconds` are those of training, on `machine`; `words` are those that each replica
    was trained on. `symbols` and `labels` are the names of those of the task. `parameters` and
    `dimensions` are the weights of one replica and the numbers in its state, None where they are
    not known or the state grows. `judged` says whether the run agrees with what is predicted of it,
    None where there is none. `error` says why a run failed, `notes` what a reader of its
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
    every_row: tuple[EvaluationRow, ...] = ()
    newest_lengths: tuple[int, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    searched: Mapping[str, float] = field(default_factory=dict)
    prediction: Prediction | None = None
    judged: Comparison | None = None
    compared: tuple[Compared, ...] = ()
    error: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: RunFacts, parameters: int | None, dimensions: int | None) -> Entry:
        """The entry of a run, whose place in the table is still to be found."""
        config, summary = run.experiment.values(), run.summary if run.finished else None
        selected = None if summary is None else summary.selected
        said = {
            name: str(run.environment.get(name) or "")
            for name in ("statetrack", "device_name", "device", "started")
        }
        evidence = {
            row.kind: row.evidence
            for row in run.evidence()
            if row.replica == selected and row.task == run.task.name
        }
        return cls(
            row="",
            column="",
            run=run.path,
            state="finished" if summary else "unfinished",
            model=run.experiment.model,
            task=current_name(run.task.name),
            settings=config,
            settings_hash=settings_hash(config),
            task_version=run.task.spec.version,
            task_hash=golden_hash(run.task),
            command=train_command(config, run.folder.plugins),
            version=said["statetrack"],
            machine=said["device_name"],
            device=said["device"],
            started=said["started"],
            replicas=len(run.experiment.replicas),
            diverged=len(summary.diverged) if summary else 0,
            steps=run.step,
            seconds=summary.seconds if summary else 0.0,
            words=run.step * run.experiment.training.batch_size,
            parameters=parameters,
            dimensions=dimensions,
            trained_to=run.words.spec.lengths.longest,
            symbols=tuple(run.task.source.symbols),
            labels=tuple(run.task.source.labels),
            outcomes=summary.replicas if summary else (),
            selected=selected,
            rows=run.last_rows,
            every_row=tuple(row for row in run.rows if row.selected and run.counts(row)),
            newest_lengths=run.newest_lengths,
            evidence=tuple(evidence.values()),
            prediction=run.prediction,
            judged=judge(run),
        )

    @property
    def bracket(self) -> Bracket:
        """What is proven of the selected replica, and where it fails."""
        wrong = [row.first_error for row in self.of_selected if row.first_error is not None]
        return Bracket.of(self.evidence, wrong_at=min(wrong, default=None))

    @property
    def of_selected(self) -> tuple[EvaluationRow, ...]:
        """All scores of the selected replica, of which some may be the same."""
        return (*self.every_row, *(row for row in self.rows if row.selected))

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
    lengths: tuple[int, ...] = ()
    measure: Measure = "accuracy"
    suite: str | None = None
    budget: str | None = None
    reference: str = ""
    departures: str = ""
    differences: str = ""
    training: str = ""
    command: str = ""

    @property
    def compared(self) -> tuple[Compared, ...]:
        """Every published number once: one may stand for several entries."""
        return tuple(dict.fromkeys(each for entry in self.entries for each in entry.compared))

    @property
    def shown_lengths(self) -> tuple[int, ...]:
        """The lengths that the table shows."""
        return self.lengths or (self.length,)

    def find(self, row: str, column: str) -> Entry | None:
        """The entry at a place of the table."""
        return next((e for e in self.entries if (e.row, e.column) == (row, column)), None)


def worst_text(bracket: Bracket) -> str:
    """The length up to which every word tried is right: `1,701`, or `>= 30,000` without a failure.

    A wrong answer to the random words counts too, and a proof of more than was tried: `all lengths`
    where that is proven. `(CPU time)` says that the search was ended by it, and not by its budget
    of work. `-` where no word was sought or could be.
    """
    worst = bracket.worst_case
    if worst is None and bracket.verdict == "not proven":
        return MISSING
    reach, fails_at = reach_of(bracket), bracket.fails_at
    limited = fails_at is None and worst is not None and worst.limited and reach == worst.tested
    return reach_text(reach, fails_at) + (" (CPU time)" if limited else "")


def reach_of(bracket: Bracket) -> float:
    """Up to which length every word that was tried or proven is right; infinity for all."""
    always = bracket.proven is None and bracket.fails_at is None
    return math.inf if always else bracket.right_to


def reach_text(right_to: float, fails_at: int | None = None) -> str:
    """Up to which length words are right, infinity for all, and whether one is known to fail."""
    if right_to == math.inf:
        return "all lengths"
    return f"{right_to:,}" if fails_at is not None else f">= {right_to:,}"


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


Kind = Literal["accuracy", "scaled", "prefix"]
"""Accuracy at the last position, the same with chance at 0, and whole words right."""

FIELDS = {"accuracy": "accuracy", "scaled": "scaled", "prefix": "prefix_accuracy"}
"""The field of a row that holds each kind."""


@dataclass(frozen=True, kw_only=True)
class ReplicaStatistics(ReplicaSpread):
    """What some replicas reach together at one length, in one kind of accuracy.

    `replicas` counts those that diverged too, `evaluated` those that were evaluated at the length,
    `right` those with every answer right at every scored position of every word. The spread is
    known where every replica that did not diverge was evaluated: the best of some is not the best.
    """

    replicas: int
    diverged: int
    evaluated: int
    right: int

    @property
    def complete(self) -> bool:
        """Whether every replica that did not diverge was evaluated."""
        return self.replicas > 0 and self.evaluated == self.replicas - self.diverged

    @property
    def success(self) -> float | None:
        """The fraction of replicas with every answer right; None unless `complete`."""
        return self.right / self.replicas if self.complete else None

    @property
    def success_interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval of `success`; None unless `complete`."""
        return wilson(self.right, self.replicas) if self.complete else None


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The results of a run at one length.

    `selected` is the row of the replica that validation selected, None where it was not evaluated
    or all diverged. `everyone` has all replicas; `seeds` those at `lr`, the learning rate of the
    selected one.
    """

    length: int
    selected: EvaluationRow | None
    everyone: ReplicaStatistics
    seeds: ReplicaStatistics
    lr: float | None

    def over(self, which: Over) -> ReplicaStatistics:
        """All replicas, or the seeds at the selected learning rate."""
        return self.everyone if which == "all" else self.seeds

    def of(self, which: Of, kind: Kind, over: Over = "all") -> float | None:
        """A number of the table: of the selected replica, or over several."""
        if which != "selected":
            value: float | None = getattr(self.over(over), which)
            return value
        return None if self.selected is None else _finite(getattr(self.selected, FIELDS[kind]))


def statistics_at(entry: Entry, length: int, kind: Kind = "accuracy") -> Statistics:
    """The results of an entry at a length, where it may not have been evaluated."""
    rows = entry.at(length)
    chosen = next((one for one in entry.outcomes if one.replica == entry.selected), None)
    lr = None if chosen is None else chosen.lr
    same = [one for one in entry.outcomes if one.lr == lr]
    return Statistics(
        length=length,
        selected=next((row for row in rows if row.selected), None),
        everyone=_population(rows, entry.outcomes, kind),
        seeds=_population([row for row in rows if row.lr == lr], same, kind),
        lr=lr,
    )


def common_length(entries: Sequence[Entry], *, of_all_replicas: bool = False) -> int:
    """The longest length of all evaluated entries; 0 where there are none.

    Where they have no length in common, the length that most of them have, of several the longest.
    With `of_all_replicas`, only lengths count at which all trained replicas were evaluated.
    """
    lengths = [
        {
            length
            for length in entry.lengths
            if not of_all_replicas or statistics_at(entry, length).everyone.complete
        }
        for entry in entries
        if entry.rows
    ]
    every: set[int] = set().union(*lengths)
    if not every:
        return 0
    if common := set.intersection(*lengths):
        return max(common)
    return max(every, key=lambda length: (sum(length in of for of in lengths), length))


def newest_lengths(entries: Sequence[Entry]) -> tuple[int, ...]:
    """The lengths at which all evaluated entries were evaluated last, of many the longest."""
    lengths = [set(entry.newest_lengths) for entry in entries if entry.rows]
    common = sorted(set.intersection(*lengths)) if lengths else []
    return tuple(common if len(common) <= MOST_TABLE_LENGTHS else common[-1:])


def horizon_of_entry(entry: Entry) -> int | None:
    """The longest length tested up to which the selected replica answers everything rightly.

    0: it is wrong at the shortest; None: it was not evaluated.
    """
    return horizon(entry.of_selected) if any(row.selected for row in entry.rows) else None


def _population(
    rows: Sequence[EvaluationRow], outcomes: Sequence[Outcome], kind: Kind
) -> ReplicaStatistics:
    trained = {one.replica for one in outcomes if not one.diverged}
    scored = [row for row in rows if row.replica in trained]
    values = [value for row in scored if (value := _finite(getattr(row, FIELDS[kind]))) is not None]
    whole = len(scored) == len(trained) and len(values) == len(scored)
    known = [*values, *[0.0] * (len(outcomes) - len(trained))] if whole else []
    return ReplicaStatistics(
        replicas=len(outcomes),
        diverged=len(outcomes) - len(trained),
        evaluated=len(scored),
        right=sum(row.all_right for row in scored),
        **vars(ReplicaSpread.of(known)),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
