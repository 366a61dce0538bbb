"""Train a population of one model on one task.

The options depend on `--model`: each model has its own.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli import options
from statetrack.cli._chosen_models import fields_of_models
from statetrack.cli._terminal import INTERRUPTED, interruptible, progress_bar
from statetrack.errors import SettingsError
from statetrack.models import MODEL_FACTS, MODELS
from statetrack.runs import Experiment, preset
from statetrack.settings import read_yaml
from statetrack.text import visible
from statetrack.training import DataSettings, TrainSettings

if TYPE_CHECKING:
    from statetrack.runs import Run, Summary

DEFAULT_MODEL = "bilinear-cp"

PANELS: Mapping[str, Sequence[str]] = {
    "Optimiser": (
        *("optimizer", "beta1", "beta2", "epsilon", "weight_decay", "schedule", "warmup", "clip"),
    ),
    "Other ways of training": ("robust", "robust_size", "robust_start", "freeze", "finish"),
    "Validation and checkpoints": (
        *("validate_every", "validation_words", "patience", "stop_loss", "checkpoint_every"),
    ),
    "Machine": ("device", "threads", "precision"),
}
"""The groups in which help shows settings of training, beside the first, `Training`."""

PLACE = 2
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command for these arguments: a new run with the chosen model's options, or `--resume`."""
    if options.peek(argv, "--resume") is not None:
        return _resuming(argv)
    config, protocol = options.peek(argv, "--config"), options.peek(argv, "--protocol")
    values = read_yaml(Path(config)) if config else {}
    given_name = options.peek(argv, "--model") or values.get("model")
    name = str(given_name or DEFAULT_MODEL)
    said = name if given_name else f"{name}, the model where none is given,"
    facts = MODEL_FACTS[name]
    classes = (facts.settings_class, DataSettings, TrainSettings)
    checked = options.check_preset(values, str(config), classes, also=["model"])
    defaults = preset(name, checked, protocol=protocol or "")
    own = {key for kind in classes for key in kind.model_fields}
    own |= {"model", "config", "protocol", "out", "force", "resume", "plugin", "log", "json"}

    def train(context: typer.Context, **given: Any) -> None:
        """Train a population of one model: seeds x learning rates, in one process.

        Examples:
            statetrack train --task s3
            statetrack train --model gru --task s3 --lrs 1e-3,3e-3 --seeds 3 --steps 3000
            statetrack train --protocol deltaproduct-paper --model deltaproduct --task s5

        """
        options.refuse_unknown(context.args, said, own, fields_of_models, command="train")
        from statetrack.runs import (
            Run,  # imports torch, which `--help` does not need
            require_logs,
        )

        experiment = Experiment(
            name,
            options.collect(MODELS[name].settings_class, given),
            options.collect(DataSettings, given),
            options.collect(TrainSettings, given),
        )
        command = shlex.join(["statetrack", "train", *argv])
        log = given["log"] or ()
        require_logs(log)
        if given["force"] and given["out"] is None:
            raise SettingsError("--force replaces the run that --out names: name one")
        run = Run.start(experiment, out=given["out"], command=command, force=given["force"])
        _train(run, log, given["as_json"])

    return options.with_parameters(
        train,
        [
            options.CONTEXT,
            *_choices(name),
            *options.parameters(DataSettings, "Data", defaults),
            *options.parameters(facts.settings_class, f"Model {visible(name)}", defaults),
            *options.parameters(TrainSettings, "Training", defaults, PANELS),
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
        choice(
            "config",
            Path | None,
            None,
            "Settings from a run's config.yaml, or from a file of your own; options win.",
            "FILE",
        ),
        choice(
            "protocol",
            str | None,
            None,
            "Settings from a paper's protocol (`statetrack list protocols`).",
            "NAME",
        ),
        choice(
            "out", Path | None, None, "The run folder; by default a new one in runs/.", "FOLDER"
        ),
        inspect.Parameter(
            "force", inspect.Parameter.KEYWORD_ONLY, annotation=options.Force, default=False
        ),
        choice(
            "resume",
            Path | None,
            None,
            "Continue an interrupted run; with more --steps, extend a finished one.",
            "RUN",
        ),
        inspect.Parameter(
            "log", inspect.Parameter.KEYWORD_ONLY, annotation=options.Logs, default=None
        ),
        inspect.Parameter(
            "as_json", inspect.Parameter.KEYWORD_ONLY, annotation=options.PrintJson, default=False
        ),
    ]


def _resuming(argv: list[str]) -> Callable[..., None]:
    """The command `train --resume` for these arguments."""

    def resume(
        context: typer.Context,
        *,
        resume: Annotated[
            Path, typer.Option(metavar="RUN", help="The run's folder: interrupted, or finished.")
        ],
        steps: Annotated[
            int | None, typer.Option(metavar="N", help="Extend a finished run to N steps.", min=1)
        ] = None,
        trust_plugin: options.TrustPlugin = False,
        log: options.Logs = None,
        as_json: options.PrintJson = False,
    ) -> None:
        """Continue an interrupted run from its last checkpoint, or extend a finished one.

        All other settings are the run's own.

        Examples:
            statetrack train --resume runs/mine
            statetrack train --resume runs/mine --steps 5000

        """
        if context.args:
            raise SettingsError(
                "--resume continues with the run's own settings, of which only --steps can be "
                f"raised: leave out {context.args[0]}"
            )
        from statetrack.runs import Run  # imports torch, which `--help` does not need

        command = shlex.join(["statetrack", "train", *argv])
        run = Run.resume(resume, steps=steps, trust_plugin=trust_plugin, command=command)
        _train(run, log or (), as_json)

    return resume


def _train(run: Run, log: Sequence[str], as_json: bool) -> None:
    """Train with a progress bar, then print the outcome, or JSON.

    Raises `RunError` where all replicas diverged, once the outcome is printed.
    """
    from statetrack.cli._terminal import print_json
    from statetrack.cli._warnings import (
        validation_remark,
        warn_of_divergence,
        warn_of_hidden_groups_in_training,
        warn_of_short_training_words,
    )
    from statetrack.report import share, small
    from statetrack.runs import strongest_in_validation
    from statetrack.scoring import plain

    settings = run.experiment.training
    warn_of_short_training_words(run.task, run.words.spec)
    warn_of_hidden_groups_in_training(run.words.drawn)
    with (
        interruptible() as stop,
        progress_bar(total=settings.steps, unit="step", dynamic_ncols=True) as bar,
    ):
        bar.set_description(visible(run.experiment.model))
        best = (0, float("inf"), 0.0)  # step, loss and accuracy of its best replica
        for record in run.train(stop, log=log):
            bar.update(record.step - bar.n)
            if record.step != best[0] or record.loss < best[1]:
                best = (record.step, record.loss, record.accuracy)
                bar.set_postfix_str(f"loss {small(best[1])}, accuracy {share(best[2])}")
            if settings.finish != "none" and record.step == settings.steps:
                bar.set_postfix_str("solving for the operators")
    if not run.finished:
        typer.echo(
            f"interrupted; `statetrack train --resume {visible(str(run.path))}` continues it",
            err=True,
        )
        raise typer.Exit(INTERRUPTED)
    summary, lengths = run.summary, run.words.lengths
    if as_json:
        about = {"run": str(run.path), "model": run.experiment.model, "task": run.task.name}
        print_json(plain(about | {"summary": asdict(summary)}))
    else:
        _draw(run, summary)
    chosen = run.selected
    warn_of_divergence(summary)
    strongest = strongest_in_validation(run.words, chosen.seed)
    remark = validation_remark(
        chosen.validation_accuracy,
        strongest,
        lengths=lengths,
        task=shlex.quote(run.experiment.data.task),
        run=shlex.quote(str(run.path)),
        test_length=max([*run.task.spec.test_lengths, 10 * lengths.longest]),
    )
    if remark:
        typer.echo(visible(remark), err=True)


def _draw(run: Run, summary: Summary) -> None:
    """The outcome of every replica, and what was selected."""
    from statetrack.report import console, finish_line, training_table

    out, lengths, settings = console(), run.words.lengths, run.experiment.training
    title = f"{run.experiment.model} on {run.task.name}, lengths {lengths}"
    out.print(training_table(title, summary))
    at = ", ".join(f"{step}" for step in settings.extended_at)
    at = at and f" (extended at {at})"
    by = f"selected on {settings.validation_words} words of the training lengths"
    out.print(
        f"{summary.steps} steps{at} in {summary.seconds:.1f} s; "
        f"{'none is selected' if summary.selected is None else by}"
    )
    if summary.chosen is not None and summary.chosen.finish is not None:
        out.print(finish_line(summary.chosen.finish))
    out.print(f"run: {run.path}", soft_wrap=True)
