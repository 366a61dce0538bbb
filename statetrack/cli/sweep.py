"""Train and evaluate models x tasks, and any settings, in one table.

The models, tasks and settings are options, or those of a suite's file.
"""

from __future__ import annotations

import re
import shlex
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack import models as architectures
from statetrack import sources, spec
from statetrack.catalogue import inner_type
from statetrack.cli import _sweeping as sweeping
from statetrack.cli import _terminal as terminal
from statetrack.cli import options
from statetrack.errors import SettingsError, nearest_or_known
from statetrack.settings import Settings
from statetrack.sweep import SWEEP_FILE, Suite, load_suite, repeated, title_of
from statetrack.text import is_plain_number
from statetrack.training import DataSettings, TrainSettings

SETTINGS = ("lrs", "seeds", "seed", "steps", "batch_size", "loss")
WORDS = ("train_length", "words", "supervision")
"""The settings that have an option of their own; `--set` has all."""

PLACE = 9.5
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command, with the options of the executor that its arguments name."""

    def sweep(
        file: Annotated[
            str | None,
            typer.Argument(
                metavar="[FILE]", help="A suite's .yaml file or name, or the folder of a sweep."
            ),
        ] = None,
        *,
        model: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAMES",
                help="Models with commas between, each with options of its own: "
                "'deltanet --beta double,lstm'; repeatable.",
            ),
        ] = None,
        task: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAMES",
                help="Tasks with commas between, as modular-addition:m=5,s5; repeatable.",
            ),
        ] = None,
        set_: Annotated[
            list[str] | None,
            typer.Option(
                "--set",
                metavar="NAME=VALUES",
                help="Any setting of a model or of training; with several values, as "
                "hidden=32,64, every point at each; repeatable.",
            ),
        ] = None,
        length: Annotated[
            list[str] | None,
            typer.Option(
                metavar="LENGTHS",
                help="The length that the table reports, as 500, or several, as 10,50,200, with a "
                "column for each; repeatable.",
            ),
        ] = None,
        samples: Annotated[int | None, typer.Option(help="Test words.", min=1)] = None,
        out: Annotated[
            list[Path] | None,
            typer.Option(
                metavar="FOLDER|FILE",
                help="The sweep's runs; by default sweeps/NAME, after its points"
                + terminal.OR_A_FILE,
            ),
        ] = None,
        force: terminal.Force = False,
        **given: Any,
    ) -> None:
        """Train and evaluate models x tasks, and any settings, in one table.

        Every learning rate and seed of a point is trained at once. All points are checked before
        the first is trained. Each has a run folder of its own: an interrupted sweep continues with
        the same command, finished points are not run again, and one that fails does not end the
        sweep.

        Examples:
            statetrack sweep --model bilinear,lstm --task s3,s5 --lrs 1e-3,3e-3 --seeds 3
            statetrack sweep --model lstm --task s5 --set hidden=32,64 --dry-run
            statetrack sweep mine.yaml --steps 500

        """
        own = {name: given[name] for name in (*WORDS, *SETTINGS) if given[name] is not None}
        settings, axes = settings_and_axes(set_ or (), own)
        if file is None:
            suite = made_suite(model or (), task or (), settings, axes)
            name = spec.folder_name(
                "_".join("-".join(names) for names in (suite.models, suite.tasks))
            )
            folder = Path("sweeps") / name
        else:
            if model or task:
                raise SettingsError(
                    f"sweep: {file} is read as a suite, which names models and tasks: give it, or "
                    "--model and --task, with commas between names, as in --task parity,s3"
                )
            suite = load_suite(file).with_settings(settings, axes)
            name = Path(file).stem
            kept = (Path(file) / SWEEP_FILE).is_file()
            folder = Path(file) if kept else Path("sweeps") / name
        lengths = tuple(sources.parse_lengths(length or []))
        suite = suite.tested(lengths=lengths, samples=samples)
        runs, files = terminal.folder_and_files(out, force=force)
        sweeping.run(
            given,
            suite=suite,
            name=name,
            folder=runs or folder,
            command=shlex.join(["statetrack", "sweep", *argv]),
            files=files,
        )

    more = [
        *options.optional(TrainSettings, SETTINGS, "Training"),
        *options.optional(DataSettings, WORDS, "Training"),
    ]
    return sweeping.with_options(sweep, argv, stress_seconds=0.0, more=more)


# --- suites made of options: models, tasks, and settings with one value or several ---

_TRUTH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def made_suite(
    models: Sequence[str],
    tasks: Sequence[str],
    settings: Mapping[str, Any],
    axes: Mapping[str, list[Any]],
) -> Suite:
    """The suite of these models and tasks.

    Raises `SettingsError` where there are none, or one is named twice, and `UnknownNameError` for
    a model that does not exist.
    """
    from statetrack.cli.options import chosen_models

    rows: dict[str, Any] = {}
    for text in models:
        if not text.strip():
            continue
        for name, given in chosen_models(text, "--model").items():
            own = given.model_dump(mode="json", include=given.model_fields_set)
            if name in rows:
                raise SettingsError(f"--model: '{name}' is named twice")
            rows[name] = {"model": name.split()[0], **own} if own else name
    columns = [name for text in tasks for name in task_names(text)]
    for what, named in (("model", rows), ("task", columns)):
        if not named:
            raise SettingsError(
                f"sweep: give a file, or --model and --task: there is no {what}; "
                f"`statetrack list {what}s` shows all"
            )
    if again := repeated(columns):
        raise SettingsError(f"--task: '{again[0]}' is named twice")
    return Suite(
        title=title_of(rows, columns),
        settings=dict(settings),
        models=rows,
        tasks={name: name for name in columns},
        axes=dict(axes),
    )


def task_names(text: str) -> list[str]:
    """The tasks in a text, with commas between.

    `dihedral:n=6,generators=[r,s],s5` are two (`statetrack.spec.names` says how they are told).
    """
    return [name for name in spec.names_in(text, f"tasks '{text}'") if name]


def settings_and_axes(
    given: Sequence[str], own: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The settings with one value, those of `own` among them, and those with several.

    Raises `SettingsError` for what is no `NAME=VALUES`, for an unknown name, with the nearest, and
    for a setting that is given twice.
    """
    settings, axes = dict(own), dict[str, list[Any]]()
    known = _known_settings()
    for text in given:
        written, equals, values = text.partition("=")
        name = written.strip().removeprefix("--").replace("-", "_")
        if not equals or not values.strip():
            raise SettingsError(f"--set {text}: write it as NAME=VALUE, or NAME=VALUE,VALUE")
        if name not in known:
            told = nearest_or_known(name, known)
            raise SettingsError(f"--set {text}: there is no setting '{name}'.{told}")
        if name in settings or name in axes:
            raise SettingsError(f"--set {text}: '{name}' is given twice")
        found = _values(values, known[name])
        if repeated(found):
            raise SettingsError(f"--set {text}: a value is given twice")
        if len(found) == 1:
            settings[name] = found[0]
        else:
            axes[name] = found
    return settings, axes


def _known_settings() -> dict[str, Any]:
    """Every setting of words, of training and of any model, and the type of its values."""
    models = [facts.settings_class for facts in architectures.MODEL_FACTS.values()]
    kinds: list[type[Settings]] = [DataSettings, TrainSettings, *models]
    known = {name: field.annotation for kind in kinds for name, field in kind.model_fields.items()}
    return {name: kind for name, kind in known.items() if name != "task"}


def _values(text: str, kind: Any) -> list[Any]:
    """The values in a text: lists with `;` between, where a value is a list itself."""
    core = inner_type(kind)
    if typing.get_origin(core) in (tuple, list):
        return [
            [_value(part, core) for part in each.split(",") if part.strip()]
            for each in text.split(";")
        ]
    return [_value(part, core) for part in spec.split_at_commas(text, f"--set: '{text}'")]


def _value(text: str, kind: Any) -> Any:
    text = text.strip()
    if kind is bool:
        return _TRUTH.get(text.lower(), text)
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return int(text)
    return float(text) if is_plain_number(text) else text
