"""Train a population of one model on one task.

The options depend on `--model`: each model has its own.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack import report, runs
from statetrack.cli import _warnings as warnings
from statetrack.cli import options
from statetrack.cli._terminal import (
    INTERRUPTED,
    clock,
    interruptible,
    note,
    print_json,
    say_warnings,
    status,
    warn,
)
from statetrack.cli._usage import refuse_unknown
from statetrack.cli.options import others_of, own_of
from statetrack.errors import SettingsError
from statetrack.models import MODEL_FACTS, MODELS, recurrence_of
from statetrack.scoring import plain
from statetrack.settings import read_yaml
from statetrack.text import as_argument, visible
from statetrack.training import DataSettings, TrainSettings

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
    if (start := options.peek(argv, "--from")) is not None:
        values = _settings_of(Path(start), options.peek(argv, "--model")) | values
    if any(values.get(name) for name in runs.ORIGINS):
        raise SettingsError(
            f"{config}: these settings are of a run whose weights were not random: give the run "
            "itself by --from"
        )
    given_name = options.peek(argv, "--model") or values.get("model")
    name = str(given_name or options.DEFAULT_MODEL)
    said = name if given_name else f"{name}, the model where none is given,"
    facts = MODEL_FACTS[name]
    classes = (facts.settings_class, DataSettings, TrainSettings)
    checked = options.check_preset(values, str(config), classes, also=["model"])
    defaults = runs.preset(name, checked, protocol=protocol or "")
    runs.require_own_names(name, facts.settings_class)
    own = runs.COMMAND_OPTIONS.union(*(kind.model_fields for kind in classes))

    def train(
        context: typer.Context,
        *,
        model: options.Model = name,
        config: Annotated[
            Path | None,
            typer.Option(
                metavar="FILE",
                help="Settings from a run's config.yaml, or from a file of your own; options win.",
            ),
        ] = None,
        protocol: Annotated[
            str | None,
            typer.Option(
                metavar="NAME",
                help="Settings from a paper's protocol (`statetrack list protocols`).",
            ),
        ] = None,
        start_from: Annotated[
            Path | None,
            typer.Option(
                "--from",
                metavar="RUN",
                help="Start with the weights of a run, trained or built; its model, settings and "
                "task are kept where options give no others.",
            ),
        ] = None,
        out: options.NewRun = None,
        force: options.Force = False,
        resume: Annotated[
            Path | None,
            typer.Option(
                metavar="RUN",
                help="Continue an interrupted run; with more --steps, extend a finished one.",
            ),
        ] = None,
        log: options.Logs = None,
        as_json: options.PrintJson = False,
        **given: Any,
    ) -> None:
        """Train a population of one model: seeds x learning rates, in one process.

        Examples:
            statetrack train --task s3
            statetrack train --model gru --task s3 --lrs 1e-3,3e-3 --seeds 3 --steps 3000
            statetrack train --protocol deltaproduct-paper --model deltaproduct --task s5

        """
        refuse_unknown(context.args, said, own, others_of(name), own_of(name), command="train")
        options.require_new_run(out, force=force)  # before what follows imports torch
        training = options.collect(TrainSettings, given)
        if options.peek(argv, "--label-smoothing") is not None:
            from statetrack.training import require_smoothing  # imports torch

            require_smoothing(training)
        experiment = runs.Experiment(
            name,
            options.collect(MODELS[name].settings_class, given),
            options.collect(DataSettings, given),
            training,
        )
        runs.require_logs(log or ())
        command = shlex.join(["statetrack", "train", *argv])
        run = runs.Run.start(
            experiment, out=out, command=command, force=force, start_from=start_from
        )
        _train(run, log or (), as_json)

    settings = [
        *options.parameters(DataSettings, "Data", defaults),
        *options.parameters(facts.settings_class, f"Model {visible(name)}", defaults),
        *options.parameters(TrainSettings, "Training", defaults, PANELS),
    ]
    return options.with_settings(train, settings)


def _settings_of(path: Path, model: str | None) -> dict[str, Any]:
    """The settings of a run that training starts from: they are those of the new run.

    Raises `SettingsError` where another model is asked for.
    """
    folder = runs.RunFolder.open(path)
    values = folder.read(runs.files.CONFIG)
    if model not in (None, values.get("model")):
        raise SettingsError(f"--model {model}: {path} is a run of {values.get('model')}")
    return {
        name: value
        for name, value in values.items()
        if name not in (*runs.ORIGINS, "extended_at", "seed", "seeds")
    }


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
        command = shlex.join(["statetrack", "train", *argv])
        run = runs.Run.resume(resume, steps=steps, trust_plugin=trust_plugin, command=command)
        _train(run, log or (), as_json)

    return resume


def _train(run: runs.Run, log: Sequence[str], as_json: bool) -> None:
    """Train with a progress bar, then print the outcome, or JSON.

    Raises `RunError` where all replicas diverged, once the outcome is printed.
    """
    settings = run.experiment.training
    warnings.warn_of_short_training_words(run.task, run.words.spec)
    warnings.warn_of_hidden_groups_in_training(run.words.drawn)
    say_warnings()  # before hours of training, if it takes them
    what = f"training {run.experiment.model} on {run.task.name}"
    with interruptible() as stop, status(what) as shown:
        best = (0, float("inf"))  # step, and loss of its best replica
        begun = None
        for record in run.train(stop, log=log):
            begun = begun or (record.step, time.monotonic())
            if record.step != best[0] or record.loss < best[1]:
                best = (record.step, record.loss)
                loss, accuracy = report.small(record.loss), report.share(record.accuracy)
                left = ""
                if (done := record.step - begun[0]) > 0:
                    each = (time.monotonic() - begun[1]) / done
                    left = f", {clock((settings.steps - record.step) * each)} left"
                shown.say(
                    f"{record.step:,} of {settings.steps:,} steps{left}, accuracy {accuracy}, "
                    f"loss {loss}"
                )
            if settings.finish != "none" and record.step == settings.steps:
                shown.say("solving for the operators")
    if not run.finished:
        again = f"statetrack train --resume {as_argument(run.path)}"
        typer.echo(visible(f"interrupted; `{again}` continues it"), err=True)
        raise typer.Exit(INTERRUPTED)
    summary = run.summary
    if as_json:
        about = {"run": str(run.path), "model": run.experiment.model, "task": run.task.name}
        print_json(plain(about | {"summary": asdict(summary)}))
    else:
        _draw(run, summary)
    warnings.warn_of_divergence(summary)
    if summary.selected is not None:
        _remark(run)
    say_warnings()
    if not as_json:
        report.console().print(f"run: {run.path}", soft_wrap=True)
    assert run.selected is not None  # it raises where there is none


def _remark(run: runs.Run) -> None:
    """Say what the accuracy of validation does not show."""
    chosen, lengths = run.selected, run.words.lengths
    task, settings = shlex.quote(run.experiment.data.task), run.experiment.model_settings
    known = run.task.has_automaton and recurrence_of(settings) is not None
    model = options.with_own_options(run.experiment.model, settings)
    remark = warnings.validation_remark(
        chosen.validation_accuracy,
        runs.strongest_in_validation(run.words, chosen.seed),
        lengths=lengths,
        task=task,
        run=as_argument(run.path),
        test_length=max([*run.task.spec.test_lengths, 10 * lengths.longest]),
        predicted=f"{task} --models {shlex.quote(model)}" if known else "",
    )
    kind, _, line = remark.partition(": ")
    if kind == "warning":
        warn(line)
    elif remark:
        note(remark)


def _draw(run: runs.Run, summary: runs.Summary) -> None:
    """The outcome of every replica, and what was selected."""
    out, lengths, settings = report.console(), run.words.lengths, run.experiment.training
    title = f"{run.experiment.model} on {run.task.name}, lengths {lengths}"
    out.print(report.training_table(title, summary))
    at = ", ".join(f"{step}" for step in settings.extended_at)
    at = at and f" (extended at {at})"
    by = f"selected on {settings.validation_words} words of the training lengths"
    out.print(
        f"{summary.steps} steps{at} in {summary.seconds:.1f} s; "
        f"{'none is selected' if summary.selected is None else by}"
    )
    if summary.chosen is not None and summary.chosen.finish is not None:
        out.print(report.finish_line(summary.chosen.finish))
