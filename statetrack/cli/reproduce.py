"""Train and evaluate a whole suite, and compare it with published numbers."""

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
from statetrack.sweep import BUDGETS, folder_of, load_suite

PLACE = 10
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command, with the options of the executor that its arguments name."""

    def reproduce(
        suite: Annotated[
            str, typer.Argument(metavar="SUITE", help="A suite's name, or a .yaml file.")
        ],
        *,
        budget: Annotated[
            str | None,
            typer.Option(
                metavar="BUDGET",
                help="minutes, hours or paper, where the suite has them; by default minutes.",
            ),
        ] = None,
        out: Annotated[
            list[Path] | None,
            typer.Option(
                metavar="FOLDER|FILE",
                help="The suite's runs; by default suites/SUITE, and suites/SUITE-BUDGET within "
                "another budget than minutes" + tables.OR_A_FILE,
            ),
        ] = None,
        force: tables.Force = False,
        rows: sweeping.RowNames = None,
        columns: sweeping.ColumnNames = None,
        seeds: Annotated[
            int, typer.Option(help="Seeds of each point; 0: the suite's own.", min=0)
        ] = 0,
        steps: Annotated[
            int, typer.Option(help="Steps of each point; 0: the suite's own.", min=0)
        ] = 0,
        finished: sweeping.OnlyFinished = False,
        markdown: options.MarkdownFile = None,
        html: sweeping.HtmlFile = None,
        stress_seconds: sweeping.StressSeconds = 5.0,
        evidence: sweeping.WithEvidence = False,
        evidence_seconds: sweeping.EvidenceSeconds = 12.0,
        log: options.Logs = None,
        dry_run: sweeping.DryRun = False,
        as_json: sweeping.AsJson = False,
        executor: sweeping.ExecutorName = "local",
        **given: Any,
    ) -> None:
        """Train and evaluate a whole suite: models x tasks, one table.

        Below each accuracy stands the worst-case horizon: the length up to which every word is
        right that was tried against the selected replica. A second table compares every published
        number with what was measured: it agrees, differs, or is not comparable, and why.

        An interrupted suite continues where it was: finished points are not run again, and others
        continue from their last checkpoint. A point that fails does not end the suite.

        Examples:
            statetrack reproduce hierarchy
            statetrack reproduce groups --dry-run
            statetrack reproduce length-generalisation --jobs 2 --markdown table.md

        """
        chosen, name = load_suite(suite).for_budget(budget), Path(suite).stem
        runs, files = tables.folder_and_files(out, force=force)
        for option, page in (("--markdown", markdown), ("--html", html)):
            if page is not None:
                require_writable(page, option)
        own = {key: number for key, number in (("seeds", seeds), ("steps", steps)) if number}
        said: dict[str, Any] = {"budget": budget, **own}
        command = ["statetrack", "reproduce", shlex.quote(suite)]
        command += [f"--{key} {value}" for key, value in said.items() if value]
        asked = sweeping.Sweep(
            chosen.with_settings(own),
            name,
            runs or folder_of(suite, budget),
            sweeping.executor_of(executor, given),
            " ".join(command),
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
            budget=budget or (BUDGETS[0] if chosen.whole.budgets else None),
        )
        sweeping.run(asked)

    return options.with_settings(reproduce, sweeping.executor_parameters(argv))
