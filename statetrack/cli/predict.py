"""Predict which models can track a task, and which size they need, before any training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from statetrack.cli import options

PLACE = 7
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack predict`."""
    return predictions


def predictions(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Tasks, by name or file; left out, all.", metavar="[TASK ...]"),
    ] = None,
    models: Annotated[str, options.models_option("all")] = "",
    as_json: options.PrintJson = False,
) -> None:
    """Predict which models can track a task, and which size they need, before any training.

    A model tracks a task if some one set of weights gives the right label a logit that is ahead
    by a fixed margin, on words of every length, in exact real arithmetic, with gains that may
    reach the closed ends of their range. What holds in another sense only, such as at finite
    precision or for constant depth, says so in its theorem.

    For one task, with the theorem and its source for every model; for several, a table. A model
    has its default settings, but for the options behind its name, which are those that `train`
    has for it. A size is a value of the named setting: `=` means that no smaller one suffices,
    `<=` that a construction needs no more, `layers ?` that some number does, and [has 2] that the
    model has less. *as set* says whether the model can with the settings that it has.

    Examples:
        statetrack predict s5
        statetrack predict s3 --models 'deltanet --beta double,lstm'

    """
    from statetrack.cli._predict import show_predictions  # numpy, which `--help` does not need

    show_predictions(tasks or (), models, as_json)
