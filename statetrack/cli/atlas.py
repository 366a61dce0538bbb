"""Survey machines: groups, witness words, what models can do; and train models on them."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack import report, runs, sweep
from statetrack.cli import _terminal as terminal
from statetrack.cli import options
from statetrack.cli._sweeping import run_points
from statetrack.cli._terminal import (
    INTERRUPTED,
    interruptible,
    print_json,
    require_writable,
    searching,
)
from statetrack.cli.options import chosen_models
from statetrack.errors import SettingsError, StatetrackError
from statetrack.text import visible

PLACE = 7.5
"""Its place among the commands that `statetrack --help` lists."""

SURVEYED = "mamba,gla,deltanet,gated-deltaproduct,bilinear,lstm,transformer"
"""The models whose answers a survey has, where none are named."""

TRAINED = (
    "mamba --width 32,gla --width 32,deltanet --width 32,bilinear --hidden 64,lstm --hidden 64,"
    "transformer --width 32"
)
"""The models that are trained, where none are named."""

OF_TRAINING: dict[str, Any] = {
    "budget": "minutes",
    "length": "20,500",
    "samples": 0,
    "seeds": 0,
    "steps": 0,
    "finished": False,
}
"""The options of training, and their defaults."""


def command(
    machines: Annotated[
        Path, typer.Argument(metavar="FOLDER|FILE", help="Machine files, or one of them.")
    ],
    *,
    recursive: Annotated[
        bool, typer.Option("--recursive", help="Also those of sub-folders, each a family.")
    ] = False,
    models: Annotated[str, options.models_option("a choice of them")] = "",
    seconds: Annotated[
        int, typer.Option(help="Processor seconds for each machine.", min=1, max=10**6)
    ] = 60,
    memory: Annotated[
        float, typer.Option(help="Gigabytes of memory for each machine.", min=0.5, max=1000.0)
    ] = 4.0,
    jobs: Annotated[
        int, typer.Option(help="Machines, or runs, at once; 0: one for each core.", min=0)
    ] = 0,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER|FILE",
            help="Where rows and runs are kept, so that nothing is done twice; by default atlas"
            + terminal.OR_A_FILE,
        ),
    ] = None,
    force: terminal.Force = False,
    train: Annotated[
        bool,
        typer.Option(
            "--train",
            help="Also train the models, and show what was predicted beside what they do.",
        ),
    ] = False,
    budget: Annotated[
        str, typer.Option(metavar="BUDGET", help="With --train: minutes or hours.")
    ] = OF_TRAINING["budget"],
    lengths: Annotated[
        str,
        typer.Option(
            "--length", metavar="SHORT,LONG", help="With --train: the two lengths to test at."
        ),
    ] = OF_TRAINING["length"],
    samples: Annotated[
        int, typer.Option(help="With --train: test words; 0: those of the budget.", min=0)
    ] = OF_TRAINING["samples"],
    seeds: Annotated[
        int, typer.Option(help="With --train: seeds; 0: those of the budget.", min=0)
    ] = OF_TRAINING["seeds"],
    steps: Annotated[
        int, typer.Option(help="With --train: steps; 0: those of the budget.", min=0)
    ] = OF_TRAINING["steps"],
    finished: Annotated[
        bool,
        typer.Option("--finished", help="With --train: show the runs that are there, train none."),
    ] = OF_TRAINING["finished"],
    markdown: options.MarkdownFile = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV and nothing else.")] = False,
    as_json: options.PrintJson = False,
) -> None:
    """Survey machine files: which groups they have, and which models can follow them.

    For every machine: its states, inputs and outputs, the groups that words make (none: it is
    aperiodic, star-free), words that show them, the complexity class of its labels, its merging
    horizon, and what classes of models can do. Families are what stands before `__` in the names of
    files, or sub-folders.

    Each file is surveyed in a process of its own, within a time and a memory; one that cannot be
    read is named at the end, and the exit code is then 1. Rows are kept: the same command
    continues, and surveys again only what has changed.

    With --train every model is trained on every machine: on uniform words and, where the machine
    has a group, on words that stay inside it. Each run is tested on both kinds of words.

    Examples:
        statetrack atlas broker.dot --models mamba,bilinear,lstm
        statetrack atlas machines --recursive --jobs 4 --out atlas

    """
    kept, written = terminal.folder_and_files(out, force=force)
    kept = kept or Path("atlas")
    if as_csv and as_json:
        raise SettingsError("--json: does not go with --csv: give one of the two")
    if markdown is not None:
        require_writable(markdown, "--markdown")
    given = dict(zip(OF_TRAINING, (budget, lengths, samples, seeds, steps, finished), strict=True))
    for name, default in OF_TRAINING.items():
        if given[name] != default and not train:
            raise SettingsError(f"--{name}: belongs to --train")
    files = sweep.machine_files(machines, recursive=recursive)
    settings: sweep.Models = {
        text: own.model_dump(mode="json", include=own.model_fields_set)
        for text, own in chosen_models(models or (TRAINED if train else SURVEYED)).items()
    }
    jobs = jobs or sweep.available_cores()
    rows = _surveyed(files, settings, kept, sweep.Limits(seconds, memory), jobs)
    read = [row for row in rows if not row.error]
    words = ["statetrack", "atlas", str(machines), *["--recursive"] * recursive]
    words += ["--models", models] if models else []
    if train:
        words.append("--train")
        for name, default in OF_TRAINING.items():
            if given[name] != default and name != "finished":
                words += [f"--{name}", str(given[name])]
        suite = _suite(machines.name, files, settings, read, given)
        folder = kept / ("runs" if budget == sweep.BUDGETS[0] else f"runs-{budget}")
        trained, how = _trained(suite, read, folder, sweep.Local(jobs=jobs), finished=finished)
        document = report.Document(
            title=suite.title,
            parts=lambda: [
                *report.training_tables(read, trained),
                report.TRAINING_LEGEND,
                *report.summary_lines(trained),
            ],
            rows=lambda: report.training_values(trained),
            json=lambda: [row.to_json() for row in trained],
        )
        page = report.training_markdown(suite.title, read, trained, shlex.join(words), how)
    else:
        document = report.Document(
            title=f"Atlas of {machines.name}",
            parts=lambda: _parts(machines, read),
            rows=lambda: report.atlas_values(rows),
            json=lambda: [row.to_json() for row in rows],
        )
        page = report.atlas_markdown(document.title, rows, shlex.join(words))
    if as_json:
        print_json(document.json())
    else:
        terminal.show_document(document, "csv" if as_csv else "rich")
    for file in written:
        terminal.write_document(document, file, quietly=as_json or as_csv)
    if markdown is not None:
        terminal.write_file(markdown, page, "--markdown")
    for row in rows:
        if row.stopped and not row.error:
            terminal.warn(f"not finished: {row.stopped}", row.name)
    for row in rows:
        if row.error:
            typer.echo(visible(f"failed: {row.name}: {row.error}"), err=True)
    if unread := len(rows) - len(read):
        raise StatetrackError(f"{unread} of {len(rows)} machine files could not be surveyed")


def _parts(machines: Path, read: Sequence[sweep.MachineRow]) -> list[report.Table | str]:
    """What is shown of the machines that could be read."""
    if not read:
        return []
    number = f"{len(read)} machine{'s' * (len(read) != 1)}"
    table = report.atlas_table(f"{number} of {machines}", read)
    if len(read) == 1:
        return [table, report.ATLAS_LEGEND, report.facts(report.machine_facts(read[0]))]
    return [table, report.ATLAS_LEGEND, report.family_table(read), report.models_table(read)]


def _surveyed(
    files: Sequence[sweep.MachineFile],
    models: sweep.Models,
    out: Path,
    limits: sweep.Limits,
    jobs: int,
) -> list[sweep.MachineRow]:
    """The rows of all files, in their order.

    Raises `typer.Exit` where the work was interrupted; what was done by then is kept.
    """
    found: dict[str, sweep.MachineRow] = {}
    with interruptible() as stop, searching("surveying", math.inf) as progress:
        for row in sweep.survey_all(files, models, out, limits, jobs, stop):
            found[row.name] = row
            progress.say(f"{len(found)} of {len(files)} machines")
    if len(found) < len(files):
        done = f"{len(found)} of {len(files)} machines surveyed"
        typer.echo(f"interrupted with {done}; the same command continues", err=True)
        raise typer.Exit(INTERRUPTED)
    return [found[file.name] for file in files]


def _suite(
    name: str,
    files: Sequence[sweep.MachineFile],
    models: sweep.Models,
    read: Sequence[sweep.MachineRow],
    given: Mapping[str, Any],
) -> sweep.Suite:
    """The suite of every model on every machine that can be read."""
    if given["budget"] not in ("minutes", "hours"):
        raise SettingsError(f"--budget {given['budget']}: it is minutes or hours")
    written = re.fullmatch(r"([0-9]{1,6}),([0-9]{1,6})", "".join(given["length"].split()))
    lengths = tuple(sorted(map(int, written.groups()))) if written else ()
    if len({*lengths}) != 2 or lengths[0] < 1:
        raise SettingsError(
            f"--length {given['length']}: write two lengths with a comma between, as 20,500"
        )
    names = {row.name for row in read}
    suite = sweep.training_suite(
        f"Models trained on {name}",
        [file for file in files if file.name in names],
        models,
        (lengths[0], lengths[1]),
    ).for_budget(given["budget"])
    suite = suite.with_settings({key: given[key] for key in ("seeds", "steps") if given[key]})
    return suite.tested(samples=given["samples"] or None)


def _trained(
    suite: sweep.Suite,
    machines: Sequence[sweep.MachineRow],
    folder: Path,
    executor: sweep.Executor,
    *,
    finished: bool,
) -> tuple[list[sweep.TrainedRow], str]:
    """A row for each run, and how runs are trained and tested, in sentences.

    Runs that are finished are not trained again. Raises `typer.Exit` where it was interrupted.
    """
    every_point = sweep.points_of(suite, folder, {}, to_train=not finished)
    points = [each for each in every_point if not finished or runs.RunFolder(each.path).finished]
    every = run_points(suite, points, executor)
    results = [done for done in every if isinstance(done, sweep.PointResult)]
    settings = suite.settings
    rates = ", ".join(f"{rate:g}" for rate in settings["lrs"])
    how = (
        f"{settings['steps']:,} steps of {settings['batch_size']} words of lengths "
        f"{settings['train_length']}, {settings['seeds']} seeds, learning rate {rates}; the "
        f"replica is selected on words of these lengths. Tested on {suite.samples:,} words of each "
        f"kind, with 95 % Wilson intervals. {len(results)} of {len(every_point)} runs are finished."
    )
    return sweep.trained_rows(machines, results), how
