"""Measure how a run keeps its state: the representation it learned, and how errors grow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli import options
from statetrack.settings import GREATEST_SEED

if TYPE_CHECKING:
    from statetrack.evidence import Probe
    from statetrack.runs import Outcome

PLACE = 3.4
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return probe


def probe(
    run: options.RunArgument = None,
    *,
    task: options.OtherTask = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="Parts, separated by commas: representation, myhill-nerode, error-control.",
            metavar="PARTS",
        ),
    ] = None,
    seconds: options.Seconds = 40.0,
    replica: options.Replica = None,
    everyone: options.Everyone = False,
    seed: Annotated[
        int, typer.Option(help="Seed of the sampled words.", min=0, max=GREATEST_SEED)
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw what is found into this folder.", metavar="FOLDER"),
    ] = None,
    plot_as: Annotated[
        str, typer.Option(help="How figures are stored: svg, png or pdf.", metavar="TYPE")
    ] = "svg",
    as_json: options.AsJson = False,
    device: options.Device = None,
    trust_plugin: options.TrustPlugin = False,
) -> None:
    """Measure how a run keeps its state: the representation it learned, and how errors grow.

    Of a model with one matrix for each symbol, the representation: eigenvalues, the angles of
    planes and their harmonics, commutators, how far words that do the same differ, and the
    irreducible representations by their characters. Of every model, Myhill-Nerode metrics: whether
    it tells apart the words that the task does, and no others. Of one with a state, error control:
    how far hidden states of one automaton state are apart along words, where the decoder fails by
    that, the noise it bears, and which precision fails first. Each part is kept in the run's folder
    as soon as it is found.

    Examples:
        statetrack probe
        statetrack probe runs/mine --plot figures

    """
    # what follows imports torch, which `--help` does not need
    from statetrack.cli._json import print_json
    from statetrack.cli._progress import searching
    from statetrack.evidence import Evidence, Probe, parts_of, search_parts
    from statetrack.runs import RUNS, Run, newest_run
    from statetrack.scoring import plain
    from statetrack.spec import load_task

    parts = parts_of([each.strip() for each in only.split(",")] if only else ())
    if plot is not None:
        from statetrack.pictures import check_path

        check_path(plot / f"figure.{plot_as}")
    path = newest_run(RUNS).path if run is None else run
    opened = Run.open(path, device=device, trust_plugin=trust_plugin)
    tested = opened.task if task is None else load_task(task)
    found: list[tuple[Outcome, Probe]] = []
    for outcome, subject in opened.subjects(replica=replica, everyone=everyone, task=tested):
        evidence, skipped = [], []
        with searching(f"replica {outcome.replica}", seconds) as budget:
            for each in search_parts(subject, budget=budget, only=parts, seed=seed):
                if isinstance(each, Evidence):
                    evidence.append(opened.add_evidence(each, outcome, tested).evidence)
                else:
                    skipped.append(each)
        found.append((outcome, Probe(tuple(evidence), tuple(skipped))))
    about = {"run": str(path), "task": tested.name, "model": opened.experiment.model}
    figures: list[Path] = []
    if plot is not None:
        figures = _plot(plot, plot_as, about, found)
    if as_json:
        selected = opened.summary.selected
        replicas = [_as_json(outcome, selected, probe) for outcome, probe in found]
        print_json(plain(about | {"replicas": replicas, "figures": list(map(str, figures))}))
    else:
        _draw(about, found, figures)


def _plot(
    folder: Path, kind: str, about: dict[str, str], found: list[tuple[Outcome, Probe]]
) -> list[Path]:
    """Draw what was found; each of several replicas into a folder of its own."""
    from statetrack.pictures import draw_probe

    written = []
    for outcome, probe in found:
        own = folder / f"replica-{outcome.replica}" if len(found) > 1 else folder
        of = f"{about['model']} on {about['task']}"
        written += draw_probe(own, f".{kind}", of, probe.representation, probe.error_control)
    return written


def _as_json(outcome: Outcome, selected: int | None, probe: Probe) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "replica": outcome.replica,
        "seed": outcome.seed,
        "lr": outcome.lr,
        "selected": outcome.replica == selected,
        "evidence": {each.kind: asdict(each) for each in probe.evidence},
        "skipped": dict(probe.skipped),
    }


def _draw(about: dict[str, str], found: list[tuple[Outcome, Probe]], figures: list[Path]) -> None:
    from statetrack.evidence import ErrorControl, MyhillNerode, Representation
    from statetrack.report import (
        console,
        distinction_lines,
        error_control_lines,
        facts,
        representation_lines,
    )

    to = console()
    for outcome, probe in found:
        to.print(f"{about['model']} on {about['task']}, seed {outcome.seed}, lr {outcome.lr:g}")
        if probe.representation is not None:
            to.print(Representation.kind, *representation_lines(probe.representation), sep="\n")
        if probe.myhill_nerode is not None:
            lines = [(f"  {name}", said) for name, said in distinction_lines(probe.myhill_nerode)]
            to.print(MyhillNerode.kind, facts(lines), sep="\n")
        if probe.error_control is not None:
            to.print(ErrorControl.kind, *error_control_lines(probe.error_control), sep="\n")
        for kind, reason in probe.skipped:
            to.print(f"{kind}: not measured: {reason}")
        to.print()
    for figure in figures:
        to.print(f"figure: {figure}", soft_wrap=True)
    to.print(f"run: {about['run']}", soft_wrap=True)
