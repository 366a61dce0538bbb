"""Extract the machine that a run's network computes, and compare it with the task's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from statetrack.cli import options
from statetrack.cli._files import require_writable
from statetrack.errors import SettingsError
from statetrack.settings import GREATEST_SEED

if TYPE_CHECKING:
    from statetrack.evidence import Budget, Extraction, MyhillNerode, Subject
    from statetrack.runs import Outcome
    from statetrack.spec import Task

PLACE = 3.4
"""Its place among the commands that `statetrack --help` lists."""

MOST_STATES_SHOWN = 30
"""The most rows of a transition table that is printed; files and `--json` have all."""


SHARE = 0.8
"""The share of the time that learning the machine may take."""


class _Row(NamedTuple):
    """What was found about one replica."""

    outcome: Outcome
    found: Extraction
    apart: MyhillNerode | None
    machine: Task | None


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return extract


def extract(
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
            help="The format of --out: dot, kiss2, aut, jff, fst, scxml, xstate; by default as "
            "its name ends.",
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
    from statetrack.cli._json import print_json
    from statetrack.cli._machine_files import write_text
    from statetrack.cli._progress import searching
    from statetrack.evidence import find_extraction, machine_of
    from statetrack.runs import RUNS, Run, newest_run
    from statetrack.scoring import plain
    from statetrack.spec import Task, load_task

    path = newest_run(RUNS).path if run is None else run
    opened = Run.open(path, device=device, trust_plugin=trust_plugin)
    tested = opened.task if task is None else load_task(task)
    about = {"run": str(path), "task": tested.name, "model": opened.experiment.model}
    rows: list[_Row] = []
    for outcome, subject in opened.subjects(replica=replica, everyone=everyone, task=tested):
        with searching(f"replica {outcome.replica}", seconds) as budget:
            found = find_extraction(
                subject,
                budget=budget.part(SHARE),
                seed=seed,
                algorithm=algorithm,
                max_states=states,
                max_words=words,
                random_words=random_words,
                max_length=length,
                known=opened.failures(outcome, tested),
            )
            opened.add_evidence(found, outcome, tested)
            apart = _distinctions(subject, budget, seed)
        if apart is not None:
            opened.add_evidence(apart, outcome, tested)
        machine = None
        if found.states:
            machine = Task.from_automaton(
                machine_of(found, subject.automaton),
                name=f"{tested.name}-extracted",
                title=f"The machine that {about['model']} computes, trained on {opened.task.name}",
                train_length=tested.spec.train_length,
                test_lengths=tested.spec.test_lengths,
            )
        rows.append(_Row(outcome, found, apart, machine))
    if as_json:
        selected = opened.summary.selected
        replicas = [
            {
                "replica": row.outcome.replica,
                "seed": row.outcome.seed,
                "lr": row.outcome.lr,
                "selected": row.outcome.replica == selected,
                **_as_json(row, tested),
            }
            for row in rows
        ]
        print_json(plain(about | {"replicas": replicas}))
    else:
        _draw(about, rows, tested)
    for machine in (row.machine for row in rows):
        if machine is None and (out is not None or plot is not None):
            raise SettingsError("no machine was extracted in this time: give more --seconds")
        if machine is not None and out is not None and writer is not None:
            write_text(out, writer(machine))
        if machine is not None and plot is not None:
            from statetrack.pictures import draw_task

            draw_task(machine, plot)


def _writer(out: Path, name: str | None) -> Callable[[Task], str]:
    """The function that makes the text of a file with this ending."""
    if name is None and out.suffix.lower() in (".yaml", ".yml"):
        return lambda machine: machine.document()
    from statetrack.cli._machine_files import machine_format, machine_text

    form = machine_format(out, name)
    return lambda machine: machine_text(machine, form)


def _distinctions(subject: Subject, budget: Budget, seed: int) -> MyhillNerode | None:
    """How well the network keeps apart what the task does; None for a task of too many states."""
    from statetrack.evidence import find_myhill_nerode

    try:
        return find_myhill_nerode(subject, budget=budget, seed=seed)
    except SettingsError:
        return None


def _as_json(row: _Row, tested: Task) -> dict[str, Any]:
    from statetrack.cli._json import failure_json

    found = row.found
    return {
        "verdict": found.verdict,
        **asdict(found),
        "difference": failure_json(found.difference, tested.automaton),
        "machine": None if row.machine is None else row.machine.spec.automaton,
        "myhill_nerode": None if row.apart is None else asdict(row.apart),
    }


def _draw(about: dict[str, str], rows: list[_Row], tested: Task) -> None:
    from statetrack.report import console, distinction_lines, extraction_lines, facts, transitions

    to = console()
    automaton = tested.automaton
    for row in rows:
        outcome = row.outcome
        to.print(f"{about['model']} on {about['task']}, seed {outcome.seed}, lr {outcome.lr:g}")
        lines = extraction_lines(row.found, automaton.symbols, automaton.labels)
        if row.apart is not None:
            lines += distinction_lines(row.apart)
        to.print(facts(lines))
        to.print()
        if row.machine is not None and row.found.states <= MOST_STATES_SHOWN:
            to.print(transitions(row.machine.automaton))
            to.print()
    to.print(f"run: {about['run']}", soft_wrap=True)
