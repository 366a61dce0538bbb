"""Train a population of one model on one task.

Which options there are depends on `--model`: each model brings its own.
"""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from tqdm import tqdm

from statetrack import experiment, protocols
from statetrack.cli import options
from statetrack.cli._warnings import warn_of_shortcut_in_validation
from statetrack.errors import SettingsError
from statetrack.experiment import DataSettings, Experiment, Setup
from statetrack.models import MODELS
from statetrack.report.drawing import share, small
from statetrack.report.tables import training_table
from statetrack.runs import RunFolder
from statetrack.settings import Settings, read_yaml
from statetrack.training import Record, Trainer, TrainSettings

DEFAULT_MODEL = "bilinear-cp"
INTERRUPTED = 130

Context = inspect.Parameter(
    "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
)


def build(argv: list[str]) -> Callable[..., None]:
    """The command for these arguments: a new run with the chosen model's options, or `--resume`."""
    if options.peek(argv, "--resume") is not None:
        return resume
    config, protocol = options.peek(argv, "--config"), options.peek(argv, "--protocol")
    values = read_yaml(Path(config)) if config else {}
    name = options.peek(argv, "--model") or str(values.get("model", DEFAULT_MODEL))
    model = MODELS[name]
    kinds = (model.settings_class, DataSettings, TrainSettings)
    checked = options.check_preset(values, str(config), kinds, also=["model"])
    published = protocols.settings_for(protocol, name) if protocol else {}
    preset = {**model.training_defaults, **published, **checked}

    def train(context: typer.Context, **given: Any) -> None:
        """Train a population of one model: seeds x learning rates, in one process."""
        options.refuse_unknown(context.args, name, _names(kinds), _other_models)
        chosen = Experiment(
            name,
            options.collect(model.settings_class, given),
            options.collect(DataSettings, given),
            options.collect(TrainSettings, given),
        )
        setup, folder = experiment.start(chosen, given["out"])
        _run(setup, folder)

    return options.with_parameters(
        train,
        [
            Context,
            *_choices(name),
            *options.parameters(DataSettings, "Data", preset),
            *options.parameters(model.settings_class, f"Model {name}", preset),
            *options.parameters(TrainSettings, "Training", preset),
        ],
    )


def _choices(name: str) -> list[inspect.Parameter]:
    """The options that say what to train and where, before any settings."""

    def choice(key: str, kind: Any, default: Any, text: str, metavar: str) -> inspect.Parameter:
        info = typer.Option(options.flag(key), help=text, metavar=metavar)
        return inspect.Parameter(
            key, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info], default=default
        )

    return [
        choice("model", str, name, "The model; its own options are listed below.", "NAME"),
        choice("config", Path | None, None, "A run's config.yaml, or your own: defaults.", "FILE"),
        choice("protocol", str | None, None, "A paper's protocol: defaults.", "NAME"),
        choice(
            "out", Path | None, None, "The run folder; by default a new one in runs/.", "FOLDER"
        ),
        choice("resume", Path | None, None, "Go on with an interrupted run.", "RUN"),
    ]


def _names(kinds: Sequence[type[Settings]]) -> set[str]:
    own = {name for kind in kinds for name in kind.model_fields}
    return own | {"model", "config", "protocol", "out", "resume", "plugin"}


def _other_models() -> Mapping[str, set[str]]:
    return {name: set(model.settings_class.model_fields) for name, model in MODELS.items()}


def resume(
    context: typer.Context,
    *,
    resume: Annotated[Path, typer.Option(metavar="RUN", help="The interrupted run's folder.")],
) -> None:
    """Go on with an interrupted run, from its last checkpoint and with its own settings."""
    if context.args:
        raise SettingsError(
            f"--resume goes on with the run's own settings: leave out {context.args[0]}"
        )
    setup, folder = experiment.reopen(resume)
    _run(setup, folder)


def _run(setup: Setup, folder: RunFolder) -> None:
    """Train with a progress bar, then show how it came out."""
    settings = setup.experiment.training
    out = Console()
    with (
        _interruptible() as stop,
        tqdm(
            total=settings.steps, unit="step", file=sys.stderr, dynamic_ncols=True, disable=None
        ) as bar,
    ):
        bar.set_description(setup.experiment.model)

        def show(trainer: Trainer, records: list[Record]) -> None:
            bar.update(trainer.step - bar.n)
            if records:
                best = min(records, key=lambda record: record.loss)
                bar.set_postfix_str(f"loss {small(best.loss)}, accuracy {share(best.accuracy)}")

        done = experiment.train(setup, folder, show, stop)
    if not done:
        typer.echo(f"interrupted; `statetrack train --resume {folder.path}` goes on", err=True)
        raise typer.Exit(INTERRUPTED)
    summary = folder.read_json("summary.json")
    title = f"{setup.experiment.model} on {setup.task.name}, lengths {setup.lengths}"
    out.print(training_table(title, summary["replicas"], summary["selected"]))
    out.print(
        f"{summary['steps']} steps in {summary['seconds']:.1f} s; "
        f"selected on {settings.validation_words} words of the training lengths",
        highlight=False,
    )
    out.print(f"run: {folder.path}", highlight=False, soft_wrap=True, markup=False)
    selected = next(r for r in summary["replicas"] if r["replica"] == summary["selected"])
    strongest = experiment.strongest_shortcut(setup, selected["seed"])
    warn_of_shortcut_in_validation(selected["validation_accuracy"], strongest)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or termination into a wish to stop; a second one stops at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
