"""Survey machines: groups, witness words, what models can do; and train models on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli import _tables as tables
from statetrack.cli import options

PLACE = 7.5
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack atlas`."""
    return atlas


def atlas(
    machines: Annotated[
        Path, typer.Argument(metavar="FOLDER|FILE", help="Machine files, or one of them.")
    ],
    *,
    recursive: Annotated[
        bool, typer.Option("--recursive", help="Also those of sub-folders, each a family.")
    ] = False,
    models: Annotated[str, options.models_option("a choice of them")] = "",
    seconds: Annotated[
        int, typer.Option(help="Processor seconds for each machine.", min=1, max=10**6)
    ] = 60,
    memory: Annotated[
        float, typer.Option(help="Gigabytes of memory for each machine.", min=0.5, max=1000.0)
    ] = 4.0,
    jobs: Annotated[
        int, typer.Option(help="Machines, or runs, at once; 0: one for each core.", min=0)
    ] = 0,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER|FILE",
            help="Where rows and runs are kept, so that nothing is done twice; by default atlas"
            + tables.OR_A_FILE,
        ),
    ] = None,
    force: tables.Force = False,
    train: Annotated[
        bool,
        typer.Option(
            "--train",
            help="Also train the models, and show what was predicted beside what they do.",
        ),
    ] = False,
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="With --train: minutes or hours.")
    ] = "minutes",
    lengths: Annotated[
        str,
        typer.Option(
            "--length", metavar="SHORT,LONG", help="With --train: the two lengths to test at."
        ),
    ] = "20,500",
    samples: Annotated[
        int, typer.Option(help="With --train: test words; 0: those of the budget.", min=0)
    ] = 0,
    seeds: Annotated[
        int, typer.Option(help="With --train: seeds; 0: those of the budget.", min=0)
    ] = 0,
    steps: Annotated[
        int, typer.Option(help="With --train: steps; 0: those of the budget.", min=0)
    ] = 0,
    finished: Annotated[
        bool,
        typer.Option("--finished", help="With --train: show the runs that are there, train none."),
    ] = False,
    markdown: options.MarkdownFile = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV and nothing else.")] = False,
    as_json: options.PrintJson = False,
) -> None:
    """Survey machine files: which groups they have, and which models can follow them.

    For every machine: its states, inputs and outputs, the groups that words make (none: it is
    aperiodic, star-free), words that show them, the complexity class of its labels, its merging
    horizon, and what classes of models can do. Families are what stands before `__` in the names of
    files, or sub-folders.

    Each file is surveyed in a process of its own, within a time and a memory; one that cannot be
    read is named at the end, and the exit code is then 1. Rows are kept: the same command
    continues, and surveys again only what has changed.

    With --train every model is trained on every machine: on uniform words and, where the machine
    has a group, on words that stay inside it. Each run is tested on both kinds of words.

    Examples:
        statetrack atlas broker.dot --models mamba,bilinear,lstm
        statetrack atlas machines --recursive --jobs 4 --out atlas

    """
    # what follows imports NumPy, which `--help` does not need
    from statetrack.cli._atlas import Asked, show_atlas

    folder, written = tables.folder_and_files(out, force=force)

    show_atlas(
        Asked(
            machines=machines,
            recursive=recursive,
            models=models,
            seconds=seconds,
            memory=memory,
            jobs=jobs,
            out=folder or Path("atlas"),
            written=written,
            train=train,
            budget=budget,
            lengths=lengths,
            samples=samples,
            seeds=seeds,
            steps=steps,
            finished=finished,
            markdown=markdown,
            as_csv=as_csv,
            as_json=as_json,
        )
    )
