"""Show everything about one task, model, kind, protocol, suite or run.

A task: its states, alphabet, labels, transitions, examples and the best constant accuracy.
A model: its equation, source, settings and number of parameters.
A suite: what it trains and tests, what it is compared with, and what its budgets change.
A protocol: its file, with what its comments say is known and what is not.
A kind of automaton: its arguments, an example, and the tasks that use it.
A run: what was trained, what came out, evaluations, evidence, files, and how to repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli import _figure_options as figure_options
from statetrack.cli import options
from statetrack.cli._verbosity import note
from statetrack.errors import RunError, SettingsError, TaskError, UnknownNameError, nearest
from statetrack.models import MODELS
from statetrack.pictures import MANNERS
from statetrack.protocols import PROTOCOLS
from statetrack.registry import tasks_folder
from statetrack.sweep import SUITES

if TYPE_CHECKING:
    from statetrack.pictures import Look

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
            help="A task (its name, or a file), a model, a kind of automaton, a protocol, a suite "
            "or a run folder; kind:NAME and so on where a name has several.",
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
    width: figure_options.Width = None,
    height: figure_options.Height = None,
    dpi: figure_options.Dpi = figure_options.DPI,
    font: figure_options.Font = None,
    style: figure_options.Style = figure_options.STYLE,
    title: figure_options.Title = None,
    no_title: figure_options.NoTitle = False,
    caption: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="The text below the picture; '' for none. By default its legend."
        ),
    ] = None,
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
        look = figure_options.look_of(
            width=width,
            height=height,
            dpi=dpi,
            font=font,
            style=style,
            title=title,
            no_title=no_title,
        )
        _plot(name, plot, plot_as, look, caption)
        return
    of_a_picture = {
        "--plot-as": plot_as != AUTO,
        "--width": width is not None,
        "--height": height is not None,
        "--dpi": dpi != figure_options.DPI,
        "--font": font is not None,
        "--style": style != figure_options.STYLE,
        "--title": title is not None,
        "--no-title": no_title,
        "--caption": caption is not None,
    }
    if without := [option for option, given in of_a_picture.items() if given]:
        raise SettingsError(f"{without[0]}: needs --plot FILE as well")
    _show(name, as_json)


# What the functions below need is imported when they run, so that `show --help` is quick.


def _show(name: str, as_json: bool) -> None:
    """Show what a name stands for; where it is several things, the first, and say so."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in _SHOWN:
        is_one, draw = _SHOWN[prefix]
        if not is_one(rest):
            known = {"run": (), **_names()}[prefix]
            listing = f"`statetrack list {prefix}s` shows all."
            raise UnknownNameError(
                f"there is no {prefix} '{rest}'.{nearest(rest, known)} {listing}"
            )
        draw(rest, as_json)
        return
    found = [kind for kind, (is_one, _) in _SHOWN.items() if is_one(name)]
    if not found and Path(name).is_dir():
        raise RunError(
            f"{name}: is no run folder (it has no config.yaml); `statetrack list runs --runs "
            f"{name}` shows the runs in it"
        )
    if not found and _is_plain(name):
        from statetrack.spec import group_meant

        every = [known for names in _names().values() for known in names]
        raise UnknownNameError(
            f"there is nothing called '{name}'.{group_meant(name) or nearest(name, every)} "
            "`statetrack list` says what there is."
        )
    if (found or ["task"])[0] == "task":
        _check_path(name)
    kind, *others = found or ["task"]
    _SHOWN[kind][1](name, as_json)
    for other in others:
        chosen = f"./{name}" if other == "run" else f"{other}:{name}"
        what = "a run folder" if other == "run" else f"a {other}"
        note(f"{name} is also {what}: `statetrack show {chosen}`")


def _check_path(name: str) -> None:
    """Raises for a path that is neither a run nor has the ending of a task's file."""
    from statetrack.spec import is_path

    if ":" in name or "(" in name or is_path(name) or _is_plain(name):
        return
    if Path(name).is_file():
        raise TaskError(f"{name}: a task's file ends in .yaml, or as a machine or a log of traces")
    if "/" in name:
        raise RunError(
            f"{name}: there is no such file and no such run folder; `statetrack list runs` shows "
            "the runs"
        )


def _is_plain(name: str) -> bool:
    """Whether a name is no path, and carries no arguments."""
    return all(letter.isalnum() or letter in "-_" for letter in name)


def _names() -> Mapping[str, Collection[str]]:
    """The names of everything but runs, by what they stand for."""
    from statetrack.sources import KINDS
    from statetrack.spec import TASKS

    return {"task": TASKS, "model": MODELS, "protocol": PROTOCOLS, "suite": SUITES, "kind": KINDS}


def _is_task(name: str) -> bool:
    from statetrack.spec import TASKS, base_and_arguments, is_path

    if name in MODELS or _is_suite(name) or (Path(name).is_dir() and name not in TASKS):
        return False
    return is_path(name) or not _is_plain(name) or base_and_arguments(name)[0] in TASKS


def _is_kind(name: str) -> bool:
    from statetrack.sources import KINDS

    return name in KINDS


def _is_run(name: str) -> bool:
    from statetrack.runs import is_run

    return is_run(Path(name))


def _show_kind(name: str, as_json: bool) -> None:
    from statetrack.catalogue import describe_kind
    from statetrack.cli._json import print_json
    from statetrack.cli._show_kind import draw_kind
    from statetrack.report import console

    about = describe_kind(name)
    if as_json:
        print_json(about)
    else:
        draw_kind(about, console())


def _show_run(name: str, as_json: bool) -> None:
    from statetrack.catalogue import describe_run
    from statetrack.cli._json import print_json
    from statetrack.cli._show_run import draw_run
    from statetrack.report import console

    about = describe_run(Path(name))
    if as_json:
        print_json(about)
    else:
        draw_run(about, console())


def _show_model(name: str, as_json: bool) -> None:
    from statetrack.catalogue import describe_model
    from statetrack.cli._json import print_json
    from statetrack.cli._show_model import draw_model
    from statetrack.report import console

    about = describe_model(name)
    if as_json:
        print_json(about)
    else:
        draw_model(about, console())


def _show_protocol(name: str, as_json: bool) -> None:
    """The file of a shipped protocol as it is, or its keys as JSON."""
    from statetrack.cli._json import print_json
    from statetrack.report import console
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
    from statetrack.report import console
    from statetrack.settings import read_yaml
    from statetrack.sweep import load_suite

    shipped = name in SUITES
    path = tasks_folder() / "suites" / f"{name}.yaml" if shipped else Path(name)
    if as_json:
        print_json({"name": path.stem, "type": "suite", **read_yaml(path)})
    else:
        draw_suite(path.stem, load_suite(name), path, console())


def _show_task(name: str, as_json: bool) -> None:
    from statetrack.algebra import analyse
    from statetrack.catalogue import describe_algebra, describe_task, load_named_task
    from statetrack.cli._algebra import algebra_facts
    from statetrack.cli._chosen_models import chosen_models
    from statetrack.cli._json import print_json
    from statetrack.cli._show_task import draw_task
    from statetrack.report import console
    from statetrack.spec import WordSpec

    task = load_named_task(name)
    algebra = analyse(task.automaton) if task.has_automaton else None
    about = describe_task(task)
    if as_json:
        print_json(about | describe_algebra(task, algebra, chosen_models("")))
    else:
        facts = None if algebra is None else algebra_facts(algebra, WordSpec.of(task))
        draw_task(about, console(), algebra=facts)


def _plot(name: str, path: Path, manner: str, look: Look, caption: str | None) -> None:
    """Draw a task into a file, and print the file, its title, and what there is to say of it."""
    from rich.text import Text

    from statetrack.catalogue import load_named_task
    from statetrack.cli._files import require_writable
    from statetrack.pictures import check_path, draw_task
    from statetrack.report import console

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
    check_path(path)
    look.settings()
    require_writable(path, "--plot")
    task = load_named_task(name)
    chosen = next((each for each in MANNERS if each == manner), None)
    drawn = draw_task(task, path, chosen, look, caption)
    console().print(Text("\n".join((f"{path}: {drawn.title}", *drawn.notes))), soft_wrap=True)


_SHOWN: Mapping[str, tuple[Callable[[str], bool], Callable[[str, bool], None]]] = {
    "task": (_is_task, _show_task),
    "model": (lambda name: name in MODELS, _show_model),
    "protocol": (lambda name: name in PROTOCOLS, _show_protocol),
    "suite": (lambda name: name in SUITES or _is_suite(name), _show_suite),
    "kind": (_is_kind, _show_kind),
    "run": (_is_run, _show_run),
}
"""What a name can stand for, in the order in which it is looked for: whether it does, and how that
is shown."""
