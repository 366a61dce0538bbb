"""Extract the machine that a run's network computes, and compare it with the task's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from statetrack import sources
from statetrack.cli import options
from statetrack.cli._terminal import require_writable
from statetrack.errors import SettingsError
from statetrack.text import GREATEST_SEED

if TYPE_CHECKING:
    from statetrack.cli._evidence import OfReplica, Searched
    from statetrack.evidence import Extraction
    from statetrack.runs import EvaluationRow
    from statetrack.sources import Automaton
    from statetrack.spec import Task

PLACE = 3.4
"""Its place among the commands that `statetrack --help` lists."""

MOST_STATES_SHOWN = 30
"""The most rows of a transition table that is printed; files and `--json` have all."""


def command(
    run: options.RunArgument = None,
    *,
    task: options.OtherTask = None,
    algorithm: Annotated[
        Literal["lstar", "kv"], typer.Option(help="The algorithm that learns the machine.")
    ] = "lstar",
    states: Annotated[int, typer.Option(help="The most states to learn.", min=1, max=10**5)] = 200,
    words: Annotated[
        int, typer.Option(help="The most words that the network reads.", min=1, max=10**9)
    ] = 10**6,
    random_words: Annotated[
        int, typer.Option(help="Random words that a machine is tested on.", min=1, max=10**7)
    ] = 1000,
    length: Annotated[
        int, typer.Option(help="The length of the longest of these.", min=1, max=10**6)
    ] = 200,
    seconds: options.Seconds = 40.0,
    replica: options.Replica = None,
    everyone: options.Everyone = False,
    seed: Annotated[
        int, typer.Option(help="Seed of the random words.", min=0, max=GREATEST_SEED)
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the machine: .yaml for a task file, or the ending of a format of machines.",
            metavar="FILE",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help=f"The format of --out: {', '.join(sources.MACHINE_FORMATS)}; by default as its "
            "name ends.",
            metavar="NAME",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the machine: .svg, .png or .pdf.", metavar="FILE"),
    ] = None,
    as_json: options.AsJson = False,
    device: options.Device = None,
    trust_plugin: options.TrustPlugin = False,
) -> None:
    """Extract the machine that a run computes, and compare it with the task's.

    L* or KV learn the machine from the network's answers; it is made as small as possible. Either
    it is equivalent to the task, or the shortest word on which they differ is one that the network
    answers wrongly. An extracted machine agrees with the network on every word that was read; of
    other words it is a hypothesis. Beside it stands how well the network keeps apart what the task
    keeps apart, by the metrics of Vafa et al. (2024, arXiv:2406.03689).

    Examples:
        statetrack extract runs/mine --out machine.yaml
        statetrack extract runs/mine --algorithm kv --plot machine.svg

    """
    if format is not None and out is None:
        raise SettingsError(f"--format {format}: is that of a file: name it with --out")
    writer = None if out is None else _writer(out, format)
    if everyone and (out is not None or plot is not None):
        raise SettingsError("--all: --out and --plot take one machine: choose it with --replica")
    if out is not None:
        require_writable(out, "--out")
    if plot is not None:
        from statetrack.pictures import check_path

        check_path(plot)
        require_writable(plot, "--plot")
    # what follows imports torch, which `--help` does not need
    from statetrack.cli._evidence import Searched
    from statetrack.cli._terminal import write_file
    from statetrack.evidence import Extraction

    opened = Searched(run, task, device, trust_plugin)
    caps = {
        "algorithm": algorithm,
        "max_states": states,
        "max_words": words,
        "random_words": random_words,
        "max_length": length,
    }
    found = opened.search(
        "extract",
        replica,
        everyone,
        seconds,
        seed,
        given=lambda one: {
            Extraction.kind: {**caps, "known": opened.run.failures(one, opened.task)}
        },
    )
    machines = {each.outcome.replica: _machine(each, opened) for each in found}
    wrong = {each.outcome.replica: opened.earliest_wrong(each.outcome) for each in found}
    found = [_beside(each, wrong[each.outcome.replica]) for each in found]
    if as_json:
        opened.print_json(
            found,
            lambda one: _as_json(
                one, machines[one.outcome.replica], opened.task, wrong[one.outcome.replica]
            ),
        )
    else:
        for each in found:
            opened.print_heading(each.outcome)
            replica = each.outcome.replica
            _draw(each, machines[replica], opened.task.automaton, wrong[replica])
        opened.print_end()
    for machine in machines.values():
        if machine is None and (out is not None or plot is not None):
            raise SettingsError("no machine was extracted in this time: give more --seconds")
        if machine is not None and out is not None and writer is not None:
            write_file(out, writer(machine), "--out")
        if machine is not None and plot is not None:
            from statetrack.pictures import draw_task

            draw_task(machine, plot)


def _machine(found: OfReplica, opened: Searched) -> Task | None:
    """The machine as a task; None where none was extracted."""
    from statetrack.evidence import machine_of
    from statetrack.spec import Task

    task = opened.task
    extraction = _extraction(found)
    if not extraction.states:
        return None
    return Task.from_automaton(
        machine_of(extraction, task.automaton),
        name=f"{task.name}-extracted",
        title=f"The machine that {opened.about['model']} computes, "
        f"trained on {opened.run.task.name}",
        train_length=task.spec.train_length,
        test_lengths=task.spec.test_lengths,
    )


def _extraction(found: OfReplica) -> Extraction:
    """What was learned. Raises `SettingsError` for a model that does not allow it."""
    from statetrack.evidence import Extraction

    for each in found.evidence:
        if isinstance(each, Extraction):
            return each
    raise SettingsError(dict(found.skipped)[Extraction.kind])


def _beside(found: OfReplica, wrong: EvaluationRow | None) -> OfReplica:
    """What was found; no machine is equivalent where an evaluation saw the network fail."""
    from statetrack.evidence import Extraction

    if wrong is None:
        return found
    evidence = tuple(
        replace(each, equivalent=False)
        if isinstance(each, Extraction) and each.equivalent
        else each
        for each in found.evidence
    )
    return replace(found, evidence=evidence)


def _writer(out: Path, name: str | None) -> Callable[[Task], str]:
    """The function that makes the text of a file with this ending."""
    if name is None and out.suffix.lower() in (".yaml", ".yml"):
        return lambda machine: machine.document()
    from statetrack.cli.gen import machine_format, machine_text

    form = machine_format(out, name)
    return lambda machine: machine_text(machine, form)


def _as_json(
    found: OfReplica, machine: Task | None, tested: Task, wrong: EvaluationRow | None
) -> dict[str, Any]:
    from statetrack.cli._terminal import evidence_json
    from statetrack.evidence import Bracket

    extraction = _extraction(found)
    others = (each for each in found.evidence if each is not extraction)
    seen = None if wrong is None else wrong.first_error
    return {
        "verdict": extraction.verdict,
        "fails_at": Bracket.of([extraction], wrong_at=seen).fails_at,
        **evidence_json(extraction, tested.source),
        "machine": None if machine is None else machine.spec.automaton,
        "myhill_nerode": None,
        **{each.kind.replace("-", "_"): evidence_json(each, tested.source) for each in others},
    }


def _draw(
    found: OfReplica, machine: Task | None, automaton: Automaton, wrong: EvaluationRow | None
) -> None:
    from statetrack.evidence import Facts
    from statetrack.report import console, drawn, transitions

    to = console()
    lines = [line for each in found.evidence for line in each.lines(automaton)]
    every = [row for line in lines if isinstance(line, Facts) for row in line.rows]
    if wrong is not None:
        place = f"symbol {wrong.first_error:,} of a word of {wrong.length:,} is answered wrongly"
        seed = "" if wrong.evaluation_seed is None else f", seed {wrong.evaluation_seed}"
        every.append(("eval", f"{place} ({wrong.sequences:,} words{seed})"))
    for each in drawn([Facts(every), *(line for line in lines if not isinstance(line, Facts))]):
        to.print(each)
    to.print()
    if machine is not None and machine.automaton.num_states <= MOST_STATES_SHOWN:
        to.print(transitions(machine.automaton))
        to.print()
