"""Report on runs, or on a suite: one table, for a terminal, a paper or another program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from statetrack.cli import options
from statetrack.cli._files import require_writable
from statetrack.errors import SettingsError, StatetrackError
from statetrack.report import PIPED_WIDTH, text_of
from statetrack.report import console as standard_output

if TYPE_CHECKING:
    from statetrack.report import Report, Wanted

Format = Literal["rich", "markdown", "latex", "csv", "parquet", "json", "html"]
Measure = Literal["accuracy", "scaled", "success", "prefix", "horizon", "worst"]
Of = Literal["selected", "best", "median", "mean"]
Over = Literal["all", "seeds"]

SUFFIXES: dict[str, Format] = {
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".html": "html",
    ".txt": "rich",
}
"""The format of a file by the end of its name, where none is given."""

PLACE = 9.5
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return report


def report(
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
            "--format", help="By default that of the name of --out, and rich without one."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file; - or none: standard output.")
    ] = None,
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
        int | None,
        typer.Option(
            help="The length; by default the suite's, and else the longest that all runs share.",
            min=1,
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
    best: Annotated[
        bool, typer.Option("--best", help="Print the best of each task in bold.")
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
        statetrack report hierarchy --published
        statetrack report runs --format latex --out table.tex

    """
    from statetrack.report import Wanted, make_report

    if as_json:
        if form not in (None, "json") or out is not None:
            given = f"--format {form}" if form not in (None, "json") else f"--out {out}"
            raise SettingsError(f"--json: prints JSON: leave it out, or {given}")
        form = "json"
    to_file = out is not None and str(out) != "-"
    wanted = Wanted(
        form=form or _format_of(out),
        measure=measure,
        of=of,
        over=over,
        length=length,
        long=long,
        columns=columns,
        best=best,
        caption=caption,
        label=label,
        published=published,
        transpose=transpose,
    )
    if wanted.form == "parquet" and not to_file:
        raise SettingsError("--format parquet: is not text: name a file with --out")
    if to_file:
        assert out is not None
        require_writable(out, "--out")
    found = make_report(*(runs or []), folder=folder, budget=budget)
    if not to_file:
        _print(wanted, found)
    else:
        assert out is not None
        _write(out, _content(wanted, found))
        typer.echo(f"report: {out}")


def _format_of(out: Path | None) -> Format:
    """The format that the name of a file ends in; that of a terminal where there is none.

    Raises `SettingsError` for an ending that says nothing.
    """
    if out is None or str(out) == "-":
        return "rich"
    if out.suffix not in SUFFIXES:
        raise SettingsError(
            f"--out {out}: its name does not say the format: give --format, or a name that ends in "
            + ", ".join(SUFFIXES)
        )
    return SUFFIXES[out.suffix]


def _print(wanted: Wanted, found: Report) -> None:
    if wanted.form == "rich":
        to = standard_output()
        to.print(wanted.view(found, to.width))
    else:
        content = wanted.of_report(found)
        assert isinstance(content, str)
        sys.stdout.write(content)


def _content(wanted: Wanted, found: Report) -> bytes:
    """The content of a file; of a table for a terminal the text alone."""
    if wanted.form == "rich":
        content: str | bytes = text_of(wanted.view(found, PIPED_WIDTH), PIPED_WIDTH)
    else:
        content = wanted.of_report(found)
    return content.encode() if isinstance(content, str) else content


def _write(out: Path, content: bytes) -> None:
    try:
        out.write_bytes(content)
    except OSError as problem:
        raise StatetrackError(f"--out {out}: cannot be written: {problem.strerror}") from None
