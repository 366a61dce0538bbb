"""Bound how far a run is right: the length that is proven, and the first word that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli import options
from statetrack.text import GREATEST_SEED

if TYPE_CHECKING:
    from statetrack.evidence import Bracket
    from statetrack.sources import Automaton

PLACE = 3.2
"""Its place among the commands that `statetrack --help` lists."""


def command(
    run: options.RunArgument = None,
    *,
    task: options.OtherTask = None,
    seconds: options.Seconds = 40.0,
    replica: options.Replica = None,
    everyone: options.Everyone = False,
    seed: Annotated[int, typer.Option(help="Seed of the searches.", min=0, max=GREATEST_SEED)] = 0,
    rounding: options.RoundingModel = None,
    as_json: options.AsJson = False,
    device: options.Device = None,
    trust_plugin: options.TrustPlugin = False,
) -> None:
    """Bound how far a run is right: the length that is proven, and the first word that fails.

    The longest length at which every word is answered rightly lies between the two. All words up to
    some length are read, through the states that they lead to; a certificate proves a length, or
    all, from the weights. Each part is kept in the run's folder as soon as it is found. With
    --rounding all of it is about the model under that rounding model, the length at which rounding
    should break it is printed beside, and nothing is kept.

    Examples:
        statetrack certify
        statetrack certify runs/mine --all --seconds 120
        statetrack certify runs/mine --rounding bfloat16

    """
    # what follows imports torch, which `--help` does not need
    from statetrack.cli._evidence import Searched
    from statetrack.evidence import Bracket
    from statetrack.report import bracket_lines, console, evidence_lines, facts

    opened = Searched(run, task, device, trust_plugin, rounding)
    found = opened.search("certify", replica, everyone, seconds, seed)
    brackets: dict[int, Bracket] = {}
    for each in found:
        wrong = opened.earliest_wrong(each.outcome)
        wrong_at = None if wrong is None else wrong.first_error
        bracket = Bracket.of(each.evidence, each.skipped, wrong_at, each.expected)
        bracket.require_consistent()
        brackets[each.outcome.replica] = bracket
    automaton = opened.task.automaton
    if as_json:
        opened.print_json(
            found,
            lambda one: _as_json(brackets[one.outcome.replica], automaton),
            rounding=rounding,
        )
        return
    to = console()
    for each in found:
        opened.print_heading(each.outcome)
        bracket = brackets[each.outcome.replica]
        for line in bracket_lines(bracket, automaton.symbols, automaton.labels):
            to.print(line)
        to.print(facts((f"  {kind}", said) for kind, said in evidence_lines(bracket)))
        to.print()
    opened.print_end()


def _as_json(bracket: Bracket, automaton: Automaton) -> dict[str, Any]:
    from statetrack.cli._terminal import evidence_json, failure_json

    return {
        "verdict": bracket.verdict,
        "proven": bracket.proven,
        "proven_by": bracket.proven_by,
        "fails_at": bracket.fails_at,
        "failure": failure_json(bracket.failure, automaton),
        "expected": None if bracket.expected is None else bracket.expected.to_json(),
        "evidence": {each.kind: evidence_json(each, automaton) for each in bracket.evidence},
        "skipped": dict(bracket.skipped),
    }
