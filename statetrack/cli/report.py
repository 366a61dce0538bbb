"""Report on runs, or on a suite: one table, for a terminal, a paper or another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from statetrack.cli import _terminal as terminal
from statetrack.cli import options
from statetrack.cli._warnings import warn_of_unreadable
from statetrack.errors import SettingsError
from statetrack.report import FORMATS, format_of

if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[tuple(FORMATS)]  # found by their files
Measure = Literal["accuracy", "scaled", "success", "prefix", "horizon", "worst"]
Of = Literal["selected", "best", "median", "mean"]
Over = Literal["all", "seeds"]

PLACE = 9.5
"""Its place among the commands that `statetrack --help` lists."""


def command(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUNS ... | SUITE]",
            help="Run folders, or folders that hold some; or a suite's name. By default runs.",
        ),
    ] = None,
    *,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="By default that of the name of --out, and rich without one.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file; - or none: standard output.")
    ] = None,
    force: terminal.Force = False,
    measure: Annotated[
        Measure | None,
        typer.Option(help="What the table shows; by default the suite's, and else accuracy."),
    ] = None,
    of: Annotated[
        Of | None,
        typer.Option(help="Of which replicas; by default the one that validation selected."),
    ] = None,
    over: Annotated[
        Over | None,
        typer.Option(
            help="Over which replicas k/n, best, median and mean are: by default all of them, or "
            "the seeds at the selected learning rate."
        ),
    ] = None,
    length: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LENGTHS",
            help="The length, or several with a column for each, as 50,200; by default the "
            "suite's, and else what was evaluated last of all runs.",
        ),
    ] = None,
    long: Annotated[
        bool, typer.Option("--long", help="One line for each run and length, in place of a table.")
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="The columns of the long form, of CSV and Parquet."),
    ] = None,
    transpose: Annotated[
        bool, typer.Option("--transpose", help="Tasks as rows, and models as columns.")
    ] = False,
    also: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Columns beside the accuracies: weights, state, seconds and interval, some of "
            "them, or none; by default those that the terminal has room for.",
        ),
    ] = None,
    best: Annotated[
        bool,
        typer.Option(
            "--best", help="In bold, where a test tells it from others: the best of a task."
        ),
    ] = False,
    published: Annotated[
        bool,
        typer.Option("--published", help="Also every published number of a suite, with verdict."),
    ] = False,
    caption: Annotated[str | None, typer.Option(help="The caption in LaTeX.")] = None,
    label: Annotated[str | None, typer.Option(help="The label in LaTeX.")] = None,
    folder: options.SuiteFolder = None,
    budget: options.SuiteBudget = None,
    as_json: options.PrintJson = False,
) -> None:
    """Report on runs, or on a suite: one table, for a terminal, a paper or another program.

    The table has a row for each model and a column for each task. CSV, Parquet and JSON hold
    everything about every run, and HTML is one page with all of it; nothing is trained or
    evaluated.

    Examples:
        statetrack report runs
        statetrack report flip-flop-mamba --published
        statetrack report runs --format latex --out table.tex

    """
    from statetrack.report import Wanted, make_report
    from statetrack.sources import parse_lengths

    if as_json:
        if form not in (None, "json") or out is not None:
            given = f"--format {form}" if form not in (None, "json") else f"--out {out}"
            raise SettingsError(f"--json: prints JSON: leave it out, or {given}")
        form = "json"
    file = terminal.named_file(out, force=force)
    if form is None:
        form = "rich" if file is None else format_of(file, "--format, or ")
    wanted = Wanted(
        form=form,
        measure=measure,
        of=of,
        over=over,
        length=parse_lengths(length) if length else None,
        long=long,
        columns=columns,
        best=best,
        caption=caption,
        label=label,
        published=published,
        transpose=transpose,
        also=None if also is None else _also(also),
    )
    if form == "parquet" and file is None:
        raise SettingsError("--format parquet: is not text: name a file with --out")
    if file is not None:
        terminal.require_replaceable(file, force=force)
    made = make_report(*(runs or []), folder=folder, budget=budget)
    unread = {str(each.run): each.error for each in made.entries if each.state == "failed"}
    if made.suite is None:
        warn_of_unreadable(unread, len(made.entries))
    found = wanted.document(made)
    if file is None:
        terminal.show_document(found, form)
    else:
        terminal.write_document(found, file, form, called="report")


def _also(text: str) -> Any:
    """The names of columns, which `Wanted` checks."""
    names = [each.strip() for each in text.split(",") if each.strip()]
    return () if names == ["none"] else tuple(names)
