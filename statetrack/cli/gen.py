"""Write words of tasks and their labels as datasets that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from statetrack.catalogue import GenSettings
from statetrack.cli import options

PLACE = 1
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack gen`; with a format of machines, its options are others."""
    formats = get_args(GenSettings.model_fields["format"].annotation)
    if options.peek(argv, "--format") not in (None, *formats):
        from statetrack.sources import (
            MACHINE_FORMATS,
        )  # numpy, which `--help` does not need

        if options.peek(argv, "--format") in MACHINE_FORMATS:
            return gen_machines
    return options.with_settings(gen, options.parameters(GenSettings, "Dataset"))


def gen(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="TASK", help="Tasks; none: a small set to start with."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The dataset's folder, or for several tasks the folder around theirs; "
            "by default data/TASK.",
        ),
    ] = None,
    test_length: options.TestLengths = None,
    force: options.Force = False,
    as_json: options.PrintJson = False,
    **given: Any,
) -> None:
    """Write words of tasks and their labels as datasets, or their machines into files.

    Every dataset is a folder with the splits train, validation and test_len500 (one for each
    test length), of which no two share a word, and a README that describes it. A folder that is
    not empty is never overwritten; --force replaces one that is a dataset and nothing else.

    With a format of machines (dot, kiss2, aut, jff, fst, scxml or xstate), no words are drawn: the
    smallest machine of every task is written into a file, which is a task again.

    Examples:
        statetrack gen parity --length 2-10 --test-length 500 --format jsonl
        statetrack gen s3 s5 --out data
        statetrack gen parity --format dot --out parity.dot

    """
    from statetrack.cli._gen import write_datasets  # numpy, which `--help` does not need

    settings = options.collect(GenSettings, given)
    write_datasets(tasks or (), settings, out, test_length or (), as_json, force=force)


def gen_machines(
    context: typer.Context,
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK", help="Tasks whose machines are written.")
    ] = None,
    format: Annotated[
        str, typer.Option(help="The format: dot, kiss2, aut, jff, fst, scxml or xstate.")
    ] = "dot",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file; by default data/TASK.dot, by its format."),
    ] = None,
    force: options.Force = False,
    as_json: options.PrintJson = False,
) -> None:
    """Write the smallest machines of tasks into files of other programs.

    Every file is a task again: its name is taken wherever a task's is. The same words have the
    same labels. A file that is there is never overwritten; --force replaces a file of the format.

    Examples:
        statetrack gen parity --format dot --out parity.dot

    """
    from statetrack.cli._machine_files import write_machines  # numpy, which `--help` does not need

    write_machines([*(tasks or ()), *context.args], format, out, as_json, force=force)
