"""Measure how a run keeps its state: the representation it learned, and how errors grow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli import options
from statetrack.evidence import kinds_of
from statetrack.text import GREATEST_SEED

PLACE = 3.4
"""Its place among the commands that `statetrack --help` lists."""

PARTS = ", ".join(kind.kind for kind in kinds_of("probe"))
"""What can be measured, in that order."""


def command(
    run: options.RunArgument = None,
    *,
    task: options.OtherTask = None,
    only: Annotated[
        str | None,
        typer.Option(
            help=f"Parts, separated by commas: {PARTS}.",
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
    it tells apart the words that the task does, and no others. Of one with a state, whether states
    stay apart along a word that is read again and again; and error control: how far hidden states
    of one automaton state are apart along words, where the decoder fails by that, the noise it
    bears, and which precision fails first. Each part is kept in the run's folder
    as soon as it is found.

    Examples:
        statetrack probe
        statetrack probe runs/mine --plot figures

    """
    # what follows imports torch, which `--help` does not need
    from statetrack.evidence import require_parts

    parts = [each.strip() for each in only.split(",")] if only else []
    require_parts(parts)
    if plot is not None:
        from statetrack.pictures import check_path

        check_path(plot / f"figure.{plot_as}")
    from statetrack.cli._evidence import Searched
    from statetrack.cli._terminal import evidence_json
    from statetrack.report import console, drawn

    opened = Searched(run, task, device, trust_plugin)
    found = opened.search("probe", replica, everyone, seconds, seed, only=parts)
    figures: list[Path] = []
    for each in found if plot is not None else ():
        from statetrack.pictures import draw_evidence

        assert plot is not None
        folder = plot / f"replica-{each.outcome.replica}" if len(found) > 1 else plot
        figures += draw_evidence(each.evidence, folder, f".{plot_as}", opened.of)
    if as_json:
        opened.print_json(
            found,
            lambda one: {
                "evidence": {
                    each.kind: evidence_json(each, opened.task.source) for each in one.evidence
                },
                "skipped": dict(one.skipped),
            },
            figures=list(map(str, figures)),
        )
        return
    to = console()
    for each in found:
        opened.print_heading(each.outcome)
        for one in each.evidence:
            to.print(one.kind, *drawn(one.lines(opened.task.automaton), indent="  "), sep="\n")
        for kind, reason in each.skipped:
            to.print(f"{kind}: not measured: {reason}")
        to.print()
    opened.print_end(figures)
