"""Show everything about one task, model, protocol or suite.

A task: its states, alphabet, labels, transitions, examples and the best constant accuracy.
A model: its equation, source, settings and number of parameters.
A suite: what it trains and tests, what it is compared with, and what its budgets change.
A protocol: its file, with what its comments say is known and what is not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli import options
from statetrack.errors import SettingsError, nearest
from statetrack.models import MODELS
from statetrack.pictures import MANNERS
from statetrack.protocols import PROTOCOLS
from statetrack.registry import tasks_folder
from statetrack.sweep.suite import SUITES

AUTO = "auto"
"""The value of `--plot-as` that leaves the choice to the task."""

PLACE = 5
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack show`."""
    return show


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="A task (its name, or a file), a model, a protocol or a suite.",
            metavar="NAME",
        ),
    ],
    as_json: options.PrintJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the task instead, as .svg, .png or .pdf."),
    ] = None,
    plot_as: Annotated[
        str, typer.Option(help=f"{', '.join(MANNERS)}; auto: what suits the task.")
    ] = AUTO,
) -> None:
    """Show everything about one task, model, protocol or suite.

    A task's name may carry arguments, as in `statetrack show modular-addition:m=7`.

    Examples:
        statetrack show s3
        statetrack show modular-addition:m=7 --plot ring.svg
        statetrack show mamba2 --json

    """
    if plot is not None:
        if as_json:
            raise SettingsError("--json and --plot: choose one")
        _plot(name, plot, plot_as)
    elif plot_as != AUTO:
        raise SettingsError("--plot-as: needs --plot FILE as well")
    elif name in MODELS:
        _show_model(name, as_json)
    elif name in PROTOCOLS:
        _show_protocol(name, as_json)
    elif name in SUITES or _is_suite(name):
        _show_suite(name, as_json)
    else:
        _show_task(name, as_json)


# What the functions below need is imported when they run, so that `show --help` is quick.


def _show_model(name: str, as_json: bool) -> None:
    from statetrack.catalogue.models import describe_model
    from statetrack.cli._json import print_json
    from statetrack.cli._show_model import draw_model
    from statetrack.report.drawing import console

    about = describe_model(name)
    if as_json:
        print_json(about)
    else:
        draw_model(about, console())


def _show_protocol(name: str, as_json: bool) -> None:
    """The file of a shipped protocol as it is, or its keys as JSON."""
    from statetrack.cli._json import print_json
    from statetrack.report.drawing import console
    from statetrack.settings import read_yaml

    path = tasks_folder() / "protocols" / f"{name}.yaml"
    if as_json:
        print_json({"name": name, "type": "protocol", **read_yaml(path)})
    else:
        console().print(path.read_text(encoding="utf-8").rstrip(), soft_wrap=True)


def _is_suite(name: str) -> bool:
    """Whether a name is a file of a suite, and not of a task."""
    from statetrack.settings import read_yaml

    path = Path(name)
    return name.endswith(".yaml") and path.is_file() and "models" in read_yaml(path)


def _show_suite(name: str, as_json: bool) -> None:
    """What a suite consists of, or the keys of its file as JSON."""
    from statetrack.cli._json import print_json
    from statetrack.cli._show_suite import draw_suite
    from statetrack.report.drawing import console
    from statetrack.settings import read_yaml
    from statetrack.sweep.suite import load_suite

    shipped = name in SUITES
    path = tasks_folder() / "suites" / f"{name}.yaml" if shipped else Path(name)
    if as_json:
        print_json({"name": path.stem, "type": "suite", **read_yaml(path)})
    else:
        draw_suite(path.stem, load_suite(name), path, console())


def _show_task(name: str, as_json: bool) -> None:
    from statetrack.algebra.analysing import analyse
    from statetrack.catalogue.predictions import describe_algebra
    from statetrack.catalogue.tasks import describe_task, load_named_task
    from statetrack.cli._algebra import algebra_facts
    from statetrack.cli._chosen_models import chosen_models
    from statetrack.cli._json import print_json
    from statetrack.cli._show_task import draw_task
    from statetrack.report.drawing import console
    from statetrack.spec import WordSpec

    task = load_named_task(name)
    algebra = analyse(task.automaton) if task.has_automaton else None
    about = describe_task(task)
    if as_json:
        print_json(about | describe_algebra(task, algebra, chosen_models("")))
    else:
        facts = None if algebra is None else algebra_facts(algebra, WordSpec.of(task))
        draw_task(about, console(), algebra=facts)


def _plot(name: str, path: Path, manner: str) -> None:
    """Draw a task into a file, and print the file and its title."""
    from rich.text import Text

    from statetrack.catalogue.tasks import load_named_task
    from statetrack.pictures.pictures import draw_task
    from statetrack.report.drawing import console

    if name in MODELS:
        raise SettingsError(f"--plot: {name} is a model, and only tasks are drawn")
    if manner not in (AUTO, *MANNERS):
        known = ", ".join((AUTO, *MANNERS))
        raise SettingsError(f"--plot-as {manner}: take one of {known}.{nearest(manner, MANNERS)}")
    task = load_named_task(name)
    chosen = next((each for each in MANNERS if each == manner), None)
    what = draw_task(task, path, chosen)
    console().print(Text(f"{path}: {what}"), soft_wrap=True)
