"""Write words of tasks and their labels as datasets that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.catalogue.commands import GenSettings
from statetrack.cli import options

PLACE = 1
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack gen`."""
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
    **given: Any,
) -> None:
    """Write words of tasks and their labels as datasets.

    Every dataset is a folder with the splits train, validation and test_len500 (one for each
    test length), of which no two share a word, and a README that describes it. A folder that is
    not empty is never overwritten.

        statetrack gen parity --length 2-10 --test-length 500 --format jsonl
    """
    from statetrack.cli._gen import write_datasets  # numpy, which `--help` does not need

    settings = options.collect(GenSettings, given)
    write_datasets(tasks or (), settings, out, test_length or ())
