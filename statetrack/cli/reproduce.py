"""Train and evaluate a whole suite, and compare it with published numbers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.cli import _sweeping as sweeping
from statetrack.cli import _terminal as terminal
from statetrack.cli import options
from statetrack.cli._next import run_next
from statetrack.errors import SettingsError
from statetrack.sweep import BUDGETS, folder_of, load_suite
from statetrack.text import as_argument

PLACE = 10
"""Its place among the commands that `statetrack --help` lists."""

STRESS_SECONDS = 5.0
"""The work of the search for the worst word of each point, where no option says more or less."""

CHANGING = ("rows", "columns", "stress_seconds", "evidence", "evidence_seconds")
"""The options shared with `sweep` that change what a page shows."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command, with the options of the executor that its arguments name."""

    def reproduce(
        suite: Annotated[
            str,
            typer.Argument(
                metavar="SUITE",
                help="A suite's name, a .yaml file, or the folder of a sweep; with --next, all "
                "suites without it.",
                show_default=False,
            ),
        ] = "",
        *,
        next_seconds: Annotated[
            float,
            typer.Option(
                "--next",
                metavar="SECONDS",
                help="Run the points that were not run yet with the most published numbers a "
                "second, as long as they take so many seconds by estimate.",
                min=0.0,
                show_default=False,
            ),
        ] = 0.0,
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
                "another budget than minutes" + terminal.OR_A_FILE,
            ),
        ] = None,
        force: terminal.Force = False,
        seeds: Annotated[
            int, typer.Option(help="Seeds of each point; 0: the suite's own.", min=0)
        ] = 0,
        steps: Annotated[
            int, typer.Option(help="Steps of each point; 0: the suite's own.", min=0)
        ] = 0,
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
            statetrack reproduce --next 600

        """
        if next_seconds:
            sought = given["stress_seconds"] != STRESS_SECONDS
            own = {"out": out, "force": force, "seeds": seeds, "steps": steps}
            own["stress_seconds"] = sought
            run_next([suite] if suite else [], budget, next_seconds, given, own)
            return
        if not suite:
            raise SettingsError("reproduce: name a suite, or give --next SECONDS")
        chosen, name = load_suite(suite).for_budget(budget), Path(suite).stem
        runs, files = terminal.folder_and_files(out, force=force)
        own = {key: number for key, number in (("seeds", seeds), ("steps", steps)) if number}
        sweeping.run(
            given,
            suite=chosen.with_settings(own),
            name=name,
            folder=runs or folder_of(suite, budget),
            command=command_of(suite, {"budget": budget, **own}, given),
            files=files,
            budget=budget or (BUDGETS[0] if chosen.whole.budgets else None),
        )

    return sweeping.with_options(
        reproduce, argv, stress_seconds=STRESS_SECONDS, after_columns=("seeds", "steps")
    )


def command_of(suite: str, own: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    """The command that makes the same numbers: the suite with the options that change them.

    `own` are options of the command itself, `shared` those that `sweep` has as well.
    """
    usual = {name: sweeping.OPTIONS[name].default for name in CHANGING}
    usual["stress_seconds"] = STRESS_SECONDS
    said = {**own, **{name: shared[name] for name in CHANGING if shared[name] != usual[name]}}
    words = [f"statetrack reproduce {as_argument(suite)}"]
    for name, value in said.items():
        if value is not None:
            each = value if isinstance(value, list) else [value]
            words += (shlex.join(options.written(name, one).split(" ", 1)) for one in each)
    return " ".join(words)
