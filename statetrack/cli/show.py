"""Show everything about one task, model, kind, protocol, suite or run.

A task: its states, alphabet, labels, transitions, examples and the best constant accuracy.
A model: its equation, source, settings and number of parameters.
A suite: what it trains and tests, what it is compared with, and what its budgets change.
A protocol: its file, with what its comments say is known and what is not.
A rounding model: its file, with its source.
A kind of automaton: its arguments, an example, and the tasks that use it.
A run: what was trained, what came out, evaluations, evidence, files, and how to repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from statetrack import catalogue, pictures, report, runs, sources, spec, sweep
from statetrack.cli import _descriptions as descriptions
from statetrack.cli import options
from statetrack.cli._algebra import algebra_facts
from statetrack.cli._terminal import note, print_json, require_writable
from statetrack.cli.options import chosen_models
from statetrack.errors import RunError, SettingsError, TaskError, UnknownNameError, nearest
from statetrack.models import MODELS
from statetrack.pictures import MANNERS
from statetrack.registry import tasks_folder
from statetrack.rounding import ROUNDINGS
from statetrack.settings import read_yaml
from statetrack.sweep import SUITES
from statetrack.text import as_argument
from statetrack.training import PROTOCOLS

AUTO = "auto"
"""The value of `--plot-as` that leaves the choice to the task."""

PLACE = 5
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack show`."""
    return options.with_settings(show, options.LOOK, after="plot_as")


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="A task (its name, or a file), a model, a kind of automaton, a protocol, a suite "
            "or a run folder; kind:NAME and so on where a name has several.",
            metavar="NAME",
        ),
    ],
    *,
    as_json: options.PrintJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the task instead, as .svg, .png or .pdf."),
    ] = None,
    plot_as: Annotated[
        str, typer.Option(help=f"{', '.join(MANNERS)}; auto: what suits the task.")
    ] = AUTO,
    caption: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="The text below the picture; '' for none. By default its legend."
        ),
    ] = None,
    **given: Any,
) -> None:
    """Show everything about one task, model, kind, protocol, suite or run.

    A task's name may carry arguments, as in `statetrack show modular-addition:m=7`. Where a name
    stands for several things, the first of these is shown: task, model, protocol, suite, kind, run.
    Another is chosen as `kind:parity`, `task:parity` or `./parity`, for a run folder.

    Examples:
        statetrack show s3
        statetrack show kind:dihedral
        statetrack show runs/mine
        statetrack show modular-addition:m=7 --plot ring.svg
        statetrack show mamba2 --json

    """
    if plot is not None:
        if as_json:
            raise SettingsError("--json and --plot: choose one")
        _plot(name, plot, plot_as, options.look_of(**given), caption)
        return
    of_a_picture = {
        "--plot-as": plot_as != AUTO,
        **{options.flag(one.name): given[one.name] != one.default for one in options.LOOK},
        "--caption": caption is not None,
    }
    if without := [option for option, asked in of_a_picture.items() if asked]:
        raise SettingsError(f"{without[0]}: needs --plot FILE as well")
    _show(name, as_json)


def _show(name: str, as_json: bool) -> None:
    """Show what a name stands for; where it is several things, the first, and say so."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in _SHOWN:
        is_one, show_it = _SHOWN[prefix]
        if not is_one(rest):
            known = {"run": (), **_names()}[prefix]
            listing = f"`statetrack list {prefix}s` shows all."
            raise UnknownNameError(
                f"there is no {prefix} '{rest}'.{nearest(rest, known)} {listing}"
            )
        show_it(rest, as_json)
        return
    found = [kind for kind, (is_one, _) in _SHOWN.items() if is_one(name)]
    if not found and Path(name).is_dir():
        raise RunError(
            f"{name}: is no run folder (it has no config.yaml); `statetrack list runs --runs "
            f"{as_argument(name)}` shows the runs in it"
        )
    if not found and _is_plain(name):
        every = [known for names in _names().values() for known in names]
        hint = spec.group_meant(name, spec.TASKS) or f"{nearest(name, every)}{MODELS.hint}"
        raise UnknownNameError(
            f"there is nothing called '{name}'.{hint} `statetrack list` says what there is."
        )
    kind, *others = found or ["task"]
    if kind == "task" and not (":" in name or "(" in name or spec.is_path(name) or _is_plain(name)):
        if Path(name).is_file():
            raise TaskError(
                f"{name}: a task's file ends in .yaml, or as a machine or a log of traces"
            )
        if "/" in name:
            raise RunError(
                f"{name}: there is no such file and no such run folder; `statetrack list runs` "
                "shows the runs"
            )
    _SHOWN[kind][1](name, as_json)
    for other in others:
        chosen = as_argument(f"./{name}" if other == "run" else f"{other}:{name}")
        what = "a run folder" if other == "run" else f"a {other}"
        note(f"{name} is also {what}: `statetrack show {chosen}`")


def _is_plain(name: str) -> bool:
    """Whether a name is no path, and carries no arguments."""
    return all(letter.isalnum() or letter in "-_" for letter in name)


def _names() -> Mapping[str, Collection[str]]:
    """The names of everything but runs, by what they stand for."""
    return {
        "task": spec.TASKS,
        "model": MODELS,
        "protocol": PROTOCOLS,
        "suite": SUITES,
        "rounding": ROUNDINGS,
        "kind": sources.KINDS,
    }


def _is_task(name: str) -> bool:
    if name in MODELS or _is_suite(name) or (Path(name).is_dir() and name not in spec.TASKS):
        return False
    named = spec.is_path(name) or not _is_plain(name)
    return named or spec.base_and_arguments(name)[0] in spec.TASKS


def _is_suite(name: str) -> bool:
    """Whether a name is a file of a suite, and not of a task."""
    path = Path(name)
    return name.endswith(".yaml") and path.is_file() and "models" in read_yaml(path)


def _show_task(name: str, as_json: bool) -> None:
    from statetrack.predicting import algebra_of  # numpy, which `--help` does not need

    task = catalogue.load_named_task(name)
    found = algebra_of(task.automaton) if task.has_automaton else None
    about = catalogue.describe_task(task)
    if as_json:
        print_json(about | catalogue.describe_algebra(task, found, chosen_models("")))
    else:
        facts = None if found is None else list(algebra_facts(found, spec.WordSpec.of(task)))
        descriptions.draw_task(about, report.console(), algebra=facts)


def _show_values(
    about: dict[str, Any], draw: Callable[[dict[str, Any], Console], None], as_json: bool
) -> None:
    """A description as it is, or drawn."""
    if as_json:
        print_json(about)
    else:
        draw(about, report.console())


def _show_model(name: str, as_json: bool) -> None:
    _show_values(catalogue.describe_model(name), descriptions.draw_model, as_json)


def _show_kind(name: str, as_json: bool) -> None:
    _show_values(catalogue.describe_kind(name), descriptions.draw_kind, as_json)


def _show_run(name: str, as_json: bool) -> None:
    _show_values(catalogue.describe_run(Path(name)), descriptions.draw_run, as_json)


def _show_file(kind: str, folder: str, name: str, as_json: bool) -> None:
    """A shipped file as it is, or its keys as JSON."""
    path = tasks_folder() / folder / f"{name}.yaml"
    if as_json:
        print_json({"name": name, "type": kind, **read_yaml(path)})
    else:
        report.console().print(path.read_text(encoding="utf-8").rstrip(), soft_wrap=True)


def _show_suite(name: str, as_json: bool) -> None:
    """What a suite consists of, or the keys of its file as JSON."""
    path = tasks_folder() / "suites" / f"{name}.yaml" if name in SUITES else Path(name)
    if as_json:
        print_json({"name": path.stem, "type": "suite", **read_yaml(path)})
    else:
        descriptions.draw_suite(path.stem, sweep.load_suite(name), path, report.console())


def _plot(name: str, path: Path, manner: str, look: pictures.Look, caption: str | None) -> None:
    """Draw a task into a file, and print the file, its title, and what there is to say of it."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix == "task":
        name = rest
    else:
        kinds = (kind for kind, (is_one, _) in _SHOWN.items() if is_one(name))
        kind = prefix if colon and prefix in _SHOWN else next(kinds, "task")
        if kind != "task":
            raise SettingsError(f"--plot: {name} is a {kind}, and only tasks are drawn")
    if manner not in (AUTO, *MANNERS):
        known = ", ".join((AUTO, *MANNERS))
        raise SettingsError(f"--plot-as {manner}: take one of {known}.{nearest(manner, MANNERS)}")
    pictures.check_path(path)
    look.settings()
    require_writable(path, "--plot")
    chosen = next((each for each in MANNERS if each == manner), None)
    drawn = pictures.draw_task(catalogue.load_named_task(name), path, chosen, look, caption)
    line = Text("\n".join((f"{path}: {drawn.title}", *drawn.notes)))
    report.console().print(line, soft_wrap=True)


_SHOWN: Mapping[str, tuple[Callable[[str], bool], Callable[[str, bool], None]]] = {
    "task": (_is_task, _show_task),
    "model": (lambda name: name in MODELS, _show_model),
    "protocol": (lambda name: name in PROTOCOLS, partial(_show_file, "protocol", "protocols")),
    "suite": (lambda name: name in SUITES or _is_suite(name), _show_suite),
    "rounding": (lambda name: name in ROUNDINGS, partial(_show_file, "rounding", "rounding")),
    "kind": (lambda name: name in sources.KINDS, _show_kind),
    "run": (lambda name: runs.is_run(Path(name)), _show_run),
}
"""What a name can stand for, in the order in which it is looked for: whether it does, and how that
is shown."""
