"""Bound how far a run is right: the length that is proven, and the first word that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli import options
from statetrack.settings import GREATEST_SEED

if TYPE_CHECKING:
    from statetrack.evidence import Bracket
    from statetrack.runs import Outcome
    from statetrack.sources import Automaton

PLACE = 3.2
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return certify


def certify(
    run: options.RunArgument = None,
    *,
    task: options.OtherTask = None,
    seconds: options.Seconds = 40.0,
    replica: options.Replica = None,
    everyone: options.Everyone = False,
    seed: Annotated[int, typer.Option(help="Seed of the searches.", min=0, max=GREATEST_SEED)] = 0,
    as_json: options.AsJson = False,
    device: options.Device = None,
    trust_plugin: options.TrustPlugin = False,
) -> None:
    """Bound how far a run is right: the length that is proven, and the first word that fails.

    The longest length at which every word is answered rightly lies between the two. All words up to
    some length are read, through the states that they lead to; a certificate proves a length, or
    all, from the weights. Each part is kept in the run's folder as soon as it is found.

    Examples:
        statetrack certify
        statetrack certify runs/mine --all --seconds 120

    """
    # what follows imports torch, which `--help` does not need
    from statetrack.cli._json import print_json
    from statetrack.cli._progress import searching
    from statetrack.evidence import Bracket, Evidence, search_bounds
    from statetrack.runs import RUNS, Run, newest_run
    from statetrack.scoring import plain
    from statetrack.spec import load_task

    path = newest_run(RUNS).path if run is None else run
    opened = Run.open(path, device=device, trust_plugin=trust_plugin)
    tested = opened.task if task is None else load_task(task)
    found: list[tuple[Outcome, Bracket]] = []
    for outcome, subject in opened.subjects(replica=replica, everyone=everyone, task=tested):
        evidence, skipped = [], []
        with searching(f"replica {outcome.replica}", seconds) as budget:
            for each in search_bounds(subject, budget=budget, seed=seed):
                if isinstance(each, Evidence):
                    evidence.append(opened.add_evidence(each, outcome, tested).evidence)
                else:
                    skipped.append(each)
        random = [
            row.first_error
            for row in opened.rows
            if row.replica == outcome.replica and row.task in (None, tested.name)
        ]
        bracket = Bracket.of(evidence, skipped, min(filter(None, random), default=None))
        bracket.require_consistent()
        found.append((outcome, bracket))
    about = {"run": str(path), "task": tested.name, "model": opened.experiment.model}
    if as_json:
        selected = opened.summary.selected
        rows = [
            _as_json(outcome, selected, bracket, tested.automaton) for outcome, bracket in found
        ]
        print_json(plain(about | {"replicas": rows}))
    else:
        _draw(about, found, tested.automaton)


def _as_json(
    outcome: Outcome, selected: int | None, bracket: Bracket, automaton: Automaton
) -> dict[str, Any]:
    from dataclasses import asdict

    from statetrack.cli._json import failure_json

    return {
        "replica": outcome.replica,
        "seed": outcome.seed,
        "lr": outcome.lr,
        "selected": outcome.replica == selected,
        "verdict": bracket.verdict,
        "proven": bracket.proven,
        "proven_by": bracket.proven_by,
        "fails_at": bracket.fails_at,
        "failure": failure_json(bracket.failure, automaton),
        "evidence": {each.kind: asdict(each) for each in bracket.evidence},
        "skipped": dict(bracket.skipped),
    }


def _draw(
    about: dict[str, str], found: list[tuple[Outcome, Bracket]], automaton: Automaton
) -> None:
    from statetrack.report import bracket_lines, console, evidence_lines, facts

    to = console()
    for outcome, bracket in found:
        to.print(f"{about['model']} on {about['task']}, seed {outcome.seed}, lr {outcome.lr:g}")
        for line in bracket_lines(bracket, automaton.symbols, automaton.labels):
            to.print(line)
        to.print(facts([(f"  {kind}", said) for kind, said in evidence_lines(bracket)]))
        to.print()
    to.print(f"run: {about['run']}", soft_wrap=True)
