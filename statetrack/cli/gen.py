"""Write words of tasks and their labels as datasets that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from statetrack.cli import options
from statetrack.settings import Settings, option


class GenSettings(Settings):
    """What a dataset holds, apart from its task and its test lengths."""

    length: str = option("task", "Training lengths, as 2-10 or 500; `task`: the task's own.")
    samples: int = option(10_000, "Training words.", min=1)
    validation_samples: int = option(
        1_000, "Validation words, of the training lengths but never among those.", min=0
    )
    test_samples: int = option(1_000, "Words at every test length.", min=0)
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    format: Literal["parquet", "jsonl", "npz", "csv"] = option(
        "parquet", "The format of the files."
    )
    seed: int = option(0, "The seed that all words come from.", min=0)


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
    test length), of which no two share a word, and a README with all there is to know about it.
    A folder that holds anything is never written over.

        statetrack gen parity --length 2-10 --test-length 500 --format jsonl
    """
    from statetrack.cli._gen import write_datasets  # numpy, which `--help` does not need

    settings = options.collect(GenSettings, given)
    write_datasets(tasks or (), settings, out, test_length or ())
