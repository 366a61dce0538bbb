"""Train and evaluate models x tasks, and any settings, in one table.

The models, tasks and settings are options, or those of a suite's file.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.cli import _sweeping as sweeping
from statetrack.cli import _tables as tables
from statetrack.cli import options
from statetrack.cli._terminal import require_writable
from statetrack.errors import SettingsError
from statetrack.sweep import SWEEP_FILE, load_suite
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
            int | None, typer.Option(help="The length that the table reports.", min=1)
        ] = None,
        samples: Annotated[int | None, typer.Option(help="Test words.", min=1)] = None,
        out: Annotated[
            list[Path] | None,
            typer.Option(
                metavar="FOLDER|FILE",
                help="The sweep's runs; by default sweeps/NAME, after its points"
                + tables.OR_A_FILE,
            ),
        ] = None,
        force: tables.Force = False,
        rows: sweeping.RowNames = None,
        columns: sweeping.ColumnNames = None,
        finished: sweeping.OnlyFinished = False,
        markdown: options.MarkdownFile = None,
        html: sweeping.HtmlFile = None,
        stress_seconds: sweeping.StressSeconds = 0.0,
        evidence: sweeping.WithEvidence = False,
        evidence_seconds: sweeping.EvidenceSeconds = 12.0,
        log: options.Logs = None,
        dry_run: sweeping.DryRun = False,
        as_json: sweeping.AsJson = False,
        executor: sweeping.ExecutorName = "local",
        **given: Any,
    ) -> None:
        """Train and evaluate models x tasks, and any settings, in one table.

        Every learning rate and seed of a point is trained at once. All points are checked before
        the first is trained. Each has a run folder of its own: an interrupted sweep continues with
        the same command, finished points are not run again, and one that fails does not end the
        sweep.

        Examples:
            statetrack sweep --model 'bilinear-cp,lstm' --task s3,s5 --lrs 1e-3,3e-3 --seeds 3
            statetrack sweep --model lstm --task s5 --set hidden=32,64 --dry-run
            statetrack sweep mine.yaml --steps 500

        """
        # what follows imports NumPy, which `--help` does not need
        from statetrack.cli._made_suites import made_suite, settings_and_axes
        from statetrack.spec import folder_name

        own = {name: given[name] for name in (*WORDS, *SETTINGS) if given[name] is not None}
        settings, axes = settings_and_axes(set_ or (), own)
        if file is None:
            suite = made_suite(model or (), task or (), settings, axes)
            name = folder_name("_".join("-".join(names) for names in (suite.models, suite.tasks)))
            folder = Path("sweeps") / name
        else:
            if model or task:
                raise SettingsError(
                    f"sweep: {file} names models and tasks: give it, or --model and --task"
                )
            suite = load_suite(file).with_settings(settings, axes)
            name = Path(file).stem
            kept = (Path(file) / SWEEP_FILE).is_file()
            folder = Path(file) if kept else Path("sweeps") / name
        tested = {"length": length, "samples": samples}
        suite = suite.tested({key: value for key, value in tested.items() if value is not None})
        runs, files = tables.folder_and_files(out, force=force)
        for option, page in (("--markdown", markdown), ("--html", html)):
            if page is not None:
                require_writable(page, option)
        asked = sweeping.Sweep(
            suite,
            name,
            runs or folder,
            sweeping.executor_of(executor, given),
            shlex.join(["statetrack", "sweep", *argv]),
            stress_seconds=stress_seconds,
            evidence_seconds=evidence_seconds if evidence else 0.0,
            rows=rows or (),
            columns=columns or (),
            markdown=markdown,
            html=html,
            files=files,
            finished=finished,
            log=log or (),
            dry_run=dry_run,
            as_json=as_json,
        )
        sweeping.run(asked)

    return options.with_settings(
        sweep,
        [
            *options.optional(TrainSettings, SETTINGS, "Training"),
            *options.optional(DataSettings, WORDS, "Training"),
            *sweeping.executor_parameters(argv),
        ],
    )
