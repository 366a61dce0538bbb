"""Check that the models of your own file have the properties that training relies on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.text import Text

from statetrack import models, report, runs
from statetrack.cli import options
from statetrack.cli._terminal import print_json
from statetrack.errors import (
    SettingsError,
    StatetrackError,
    UnknownNameError,
    nearest_or_known,
)
from statetrack.plugins import load_plugin, plugin_of

NUM_SYMBOLS, NUM_LABELS = 5, 3
"""Sizes that models are built for: different, so that mistaking one for the other shows."""

IN_COMMANDS = "train, eval, predict and report work"
"""The property that a run of two steps has."""

EIGENVALUES, MEASURED = "eigenvalues of steps are as claimed", "eigenvalues of steps are known"
"""Another property, and what it is where nothing is claimed."""

NO_CLASS = (
    "`statetrack predict` says nothing of it: its settings name no class of recurrence "
    "(docs/add-a-model.md)"
)
"""What is to be noted of a model that has all properties."""

TRIED = "s3"
SMALLEST: dict[str, Any] = {
    **{"steps": 2, "batch_size": 4, "validation_words": 8, "threads": 1, "device": "cpu"},
    "train_length": "2-3",
}
"""That run's task, and its settings."""

WRONG = "what is wrong, or to be noted"
"""A heading."""

FAILED = 1
"""The exit code where a property does not hold."""

PLACE = 6
"""Its place among the commands that `statetrack --help` lists."""


def command(
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
    Models are built with their default settings. The eigenvalues that steps have at first weights
    are shown beside those that the settings' class of recurrence claims. At last, a run of two
    steps is trained, evaluated, predicted and reported. The exit code is 1 if any property does
    not hold.

    Examples:
        statetrack check mine.py
        statetrack check mine.py --model my-rnn --json

    """
    found = {}
    for name, each in _chosen(file, model).items():
        found[name] = models.check_model(each, num_symbols=NUM_SYMBOLS, num_labels=NUM_LABELS)
        if found[name][0].ok:
            found[name] += [_eigenvalues(name), _in_commands(name)]
    if as_json:
        print_json({name: [asdict(each) for each in findings] for name, findings in found.items()})
    else:
        for name, findings in found.items():
            _draw(name, findings)
    if not all(each.ok for findings in found.values() for each in findings):
        raise typer.Exit(FAILED)


def _chosen(file: Path, model: str) -> Mapping[str, type[models.SequenceModel]]:
    """The models that a file registers, or the one of that name."""
    load_plugin(file, called=str(file))
    own = {
        name: each
        for name, each in models.MODELS.loaded().items()
        if (plugin := plugin_of(models.MODELS.home(name))) and plugin.path == file.resolve()
    }
    if not own:
        raise SettingsError(f"{file}: registers no model; `@MODELS.register(NAME)` does")
    for name in own:
        _ = models.MODEL_FACTS[name]  # which raises for what is no model
    if model and model not in own:
        raise UnknownNameError(
            f"--model {model}: {file} registers no such model.{nearest_or_known(model, own)}"
        )
    return {model: own[model]} if model else own


def _eigenvalues(name: str) -> models.Finding:
    """Whether the eigenvalues of steps are some that the settings claim, and which they are."""
    from statetrack.evidence import SearchBudget, Subject, find_step_eigenvalues  # imports numpy

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is not causal is a finding of its own
            subject = Subject(models.make_model(name, TRIED), TRIED)
        found = find_step_eigenvalues(subject, budget=SearchBudget(1.0))
    except SettingsError as why:
        return models.Finding(EIGENVALUES, True, f"not measured: {why}")
    except Exception as error:  # the model may raise any class of exception
        return models.Finding(EIGENVALUES, False, models.told(error))
    said = f"{found.on_symbols} over symbols"
    if found.on_random is not None:
        said += f"; {found.on_random} over random inputs"
    if found.claimed is None:
        return models.Finding(MEASURED, True, said)
    return models.Finding(
        EIGENVALUES, not found.beyond, f"{said}; claimed {found.claimed}{found.said}"
    )


def _in_commands(name: str) -> models.Finding:
    """Whether a model can be trained, evaluated, predicted and reported as a run."""
    from statetrack.predicting import predict  # imports numpy

    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = runs.Run.start(out=Path(folder, "run"), model=name, task=TRIED, **SMALLEST)
            for _ in run.train():
                pass
            run.evaluate([2 * run.words.lengths.longest], num_words=8)
            predict(TRIED, run.experiment.model_settings)
            report.make_report(run.path)
        except StatetrackError as refused:
            return models.Finding(IN_COMMANDS, False, str(refused))
        except Exception as error:  # the model may raise any class of exception
            return models.Finding(IN_COMMANDS, False, models.told(error))
    return models.Finding(IN_COMMANDS, True)


def _draw(name: str, findings: list[models.Finding]) -> None:
    to = report.console()
    to.print(Text(name, "bold"))
    columns = report.plain_columns("property", "holds", WRONG, whole=("holds",))
    yes, no = Text("yes", "green"), Text("no", "bold red")
    rows = [(each.name, yes if each.ok else no, each.detail) for each in findings]
    to.print(report.Table(columns, rows))
    failed = sum(not each.ok for each in findings)
    held = "does not hold" if failed == 1 else "do not hold"
    to.print(f"{failed} of {len(findings)} properties {held}" if failed else "all hold")
    if not failed and models.MODEL_FACTS[name].recurrence is None:
        to.print(NO_CLASS)
    to.print()
