"""Check that the models of your own file have the properties that training relies on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from statetrack import models, report
from statetrack.cli import options
from statetrack.cli._terminal import print_json
from statetrack.errors import SettingsError, UnknownNameError, nearest_or_known
from statetrack.plugins import load_plugin, plugin_of

NUM_SYMBOLS, NUM_LABELS = 5, 3
"""Sizes that models are built for: different, so that mistaking one for the other shows."""

WRONG = "what is wrong, or to be noted"
"""A heading."""

FAILED = 1
"""The exit code where a property does not hold."""

PLACE = 6
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack check`."""
    return check


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.py", help="A Python file that registers models.")
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="One of its models; by default all.")
    ] = "",
    as_json: options.PrintJson = False,
) -> None:
    """Check that the models of your own file have the properties that training relies on.

    Among other properties: logits have the right shape, and those of a position depend on no later
    symbol; reading step by step gives the same as reading at once; every weight has a gradient;
    a population is trained as each of its replicas alone; saved weights give the same logits.
    Models are built with their default settings. The exit code is 1 if any property does not hold.

    Examples:
        statetrack check mine.py
        statetrack check mine.py --model my-rnn --json

    """
    found = {
        name: models.check_model(each, num_symbols=NUM_SYMBOLS, num_labels=NUM_LABELS)
        for name, each in _chosen(file, model).items()
    }
    if as_json:
        print_json({name: [asdict(each) for each in findings] for name, findings in found.items()})
    else:
        for name, findings in found.items():
            _draw(name, findings)
    if not all(each.ok for findings in found.values() for each in findings):
        raise typer.Exit(FAILED)


def _chosen(file: Path, model: str) -> Mapping[str, type[models.SequenceModel]]:
    """The models that a file registers, or the one of that name."""
    load_plugin(file)
    own = {
        name: each
        for name, each in models.MODELS.loaded().items()
        if (plugin := plugin_of(models.MODELS.home(name))) and plugin.path == file.resolve()
    }
    if not own:
        raise SettingsError(f"{file}: registers no model; `@MODELS.register(NAME)` does")
    if model and model not in own:
        raise UnknownNameError(
            f"--model {model}: {file} registers no such model.{nearest_or_known(model, own)}"
        )
    return {model: own[model]} if model else own


def _draw(name: str, findings: list[models.Finding]) -> None:
    to = report.console()
    to.print(Text(name, "bold"))
    columns = report.plain_columns("property", "holds", WRONG, whole=("holds",))
    yes, no = Text("yes", "green"), Text("no", "bold red")
    rows = [(each.name, yes if each.ok else no, each.detail) for each in findings]
    to.print(report.Table(columns, rows))
    failed = sum(not each.ok for each in findings)
    to.print(f"{failed} of {len(findings)} properties do not hold" if failed else "all hold")
    to.print()
