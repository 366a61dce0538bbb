"""The commands that search a run for evidence: open it, search, keep what is found, print it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.cli._terminal import print_json, replica_json, searching
from statetrack.evidence import Evidence, RoundingHorizon, expected_horizon, search
from statetrack.report import console
from statetrack.rounding import load_rounding
from statetrack.runs import RUNS, Conditions, EvaluationRow, EvidenceRow, Outcome, Run, newest_run
from statetrack.scoring import plain
from statetrack.spec import Task, load_task


@dataclass(frozen=True)
class OfReplica:
    """What was found about one replica, and what could not be looked for, with the reasons."""

    outcome: Outcome
    evidence: tuple[Evidence, ...]
    skipped: tuple[tuple[str, str], ...]
    rows: tuple[EvidenceRow, ...] = ()
    expected: RoundingHorizon | None = None


class Searched:
    """A run, opened to be searched for evidence about its replicas on the words of a task."""

    def __init__(
        self,
        run: Path | None,
        task: str | None,
        device: str | None,
        trust_plugin: bool,
        rounding: str | None = None,
    ) -> None:
        self.rounding = None if rounding is None else load_rounding(rounding)
        self.rounded_by = rounding
        self.path = newest_run(RUNS).path if run is None else run
        self.run = Run.open(self.path, device=device, trust_plugin=trust_plugin)
        self.task: Task = self.run.task if task is None else load_task(task)
        self.about = {
            "run": str(self.path),
            "task": self.task.name,
            "model": self.run.experiment.model,
        }

    @property
    def of(self) -> str:
        """The model and the task, as headings and titles have them."""
        title = f"{self.about['model']} on {self.about['task']}"
        return title if self.rounded_by is None else f"{title}, rounding {self.rounded_by}"

    def search(
        self,
        command: str,
        replica: int | None,
        everyone: bool,
        seconds: float,
        seed: int,
        *,
        only: Collection[str] = (),
        given: Callable[[Outcome], dict[str, dict[str, Any]]] = lambda outcome: {},
    ) -> list[OfReplica]:
        """What the searches of a command find of each replica; each is kept in the run at once.

        Under a rounding model nothing is kept, and nothing that was known counts.

        It stands with what was known about the same weights before (`Evidence.merged`). `only`
        names some of the kinds, and `given` has further arguments of their searches.
        """
        found = []
        for outcome, subject in self.run.subjects(
            replica=replica, everyone=everyone, task=self.task, rounding=self.rounding
        ):
            own = given(outcome)
            with searching(f"{self.of}, replica {outcome.replica}", seconds) as budget:
                every = search(command, subject, budget=budget, seed=seed, only=only, given=own)
                conditions = Conditions.of(subject, seed, seconds)
                rows: list[EvidenceRow] = []
                skipped: list[tuple[str, str]] = []
                for each in every:
                    if not isinstance(each, Evidence):
                        skipped.append(each)
                        continue
                    row = self.run.add_evidence(
                        each,
                        outcome,
                        self.task,
                        conditions=conditions,
                        keep=self.rounding is None,
                    )
                    rows.append(row if self.rounding is not None else self.run.known_with(row))
                    budget.tell(f"{each.kind}: {each.summary}")
                evidence = tuple(row.evidence for row in rows)
                expected = expected_horizon(subject, seed=seed)
                found.append(OfReplica(outcome, evidence, tuple(skipped), tuple(rows), expected))
        return found

    def earliest_wrong(self, outcome: Outcome) -> EvaluationRow | None:
        """The evaluation with the earliest wrong answer of a replica; None where nothing is wrong.

        Without a rounding model: evaluations have none.
        """
        rows = self.run.rows if self.rounding is None else []
        wrong = [
            (row.first_error, number, row)
            for number, row in enumerate(rows)
            if row.replica == outcome.replica
            and row.task in (None, self.task.name)
            and row.first_error is not None
        ]
        return min(wrong)[-1] if wrong else None

    def print_json(
        self,
        found: Sequence[OfReplica],
        entry: Callable[[OfReplica], dict[str, Any]],
        **more: Any,
    ) -> None:
        """One object: about the run, and an entry for each replica."""
        selected = self.run.summary.selected
        replicas = [
            {
                **replica_json(each.outcome, each.outcome.replica == selected),
                **entry(each),
                "found": {row.kind: row.origin for row in each.rows},
            }
            for each in found
        ]
        print_json(plain(self.about | {"replicas": replicas} | more))

    def print_heading(self, outcome: Outcome) -> None:
        """The line above what was found about a replica."""
        console().print(f"{self.of}, seed {outcome.seed}, lr {outcome.lr:g}")

    def print_end(self, figures: Sequence[Path] = ()) -> None:
        """The files that were written, and the run."""
        to = console()
        for figure in figures:
            to.print(f"figure: {figure}", soft_wrap=True)
        to.print(f"run: {self.path}", soft_wrap=True)
