"""Score the answers of a model from elsewhere to a dataset that gen wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli import options

PLACE = 8.5
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return score


def score(
    answers: Annotated[
        list[Path],
        typer.Argument(
            metavar="ANSWERS ...",
            help="Files SPLIT.npy or SPLIT.jsonl, or folders of them.",
        ),
    ],
    *,
    data: Annotated[
        Path, typer.Option(metavar="DATASET", help="The folder that gen wrote.", show_default=False)
    ],
    as_json: options.PrintJson = False,
) -> None:
    """Score the answers of a model from elsewhere to a dataset that gen wrote.

    A file has the answers to the words of the split that it is named after, in their order, as
    labels numbered from 0; -1 stands for no answer, which is wrong. SPLIT.npy is an array of whole
    numbers, words x positions. SPLIT.jsonl has {"answers": [0, 1, ...]} on each line. One number
    for each word, in place of one for each position, answers its last label alone.

    The table is that of eval, with the accuracy of the best shortcut on the same words. The floor
    is counted on these words.

    Examples:
        statetrack score answers --data data/s3
        statetrack score test_len500.npy --data data/s3 --json

    """
    from statetrack.cli._score import show_scores  # numpy, which `--help` does not need

    show_scores(answers, data, as_json)
