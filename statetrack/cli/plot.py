"""Draw figures of runs, or of a suite, for papers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from statetrack.cli import options

Kind = Literal["length", "heat", "map", "data", "ablation", "angles"]

PLACE = 3.9
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return options.with_settings(plot, options.LOOK, after="published")


def plot(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN ... | SUITE",
            help="Run folders, or folders of them; or a suite's name or .yaml file.",
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The figure: its name ends in .svg, .pdf or .png.")
    ],
    kind: Annotated[
        Kind | None,
        typer.Option(
            help="Accuracy by length; a heat map of rows and columns; a map of what each row can "
            "do by theory and what it has learned; accuracy along a setting; "
            "bars with seeds as points; the angles that one run turns. By default length, or heat "
            "where one length was tested."
        ),
    ] = None,
    axis: Annotated[
        str | None,
        typer.Option(
            metavar="SETTING",
            help="The setting along which --kind data is drawn: train_samples, hidden, steps, "
            "words, ...",
        ),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            metavar="NAMES",
            help="Only these rows, in this order, with commas between, or models; repeatable.",
        ),
    ] = None,
    of: Annotated[
        Literal["selected", "median"],
        typer.Option(help="The replica that validation selected, or the median over its seeds."),
    ] = "selected",
    measure: Annotated[
        Literal["accuracy", "scaled", "prefix", "success"] | None,
        typer.Option(help="What heat and data show; by default what the suite does."),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(help="The length of heat, data and ablation; by default the report's.", min=1),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Write published numbers into a heat map.")
    ] = False,
    no_legend: Annotated[bool, typer.Option("--no-legend", help="No legend.")] = False,
    folder: options.SuiteFolder = None,
    budget: options.SuiteBudget = None,
    as_json: options.AsJson = False,
    **given: Any,
) -> None:
    """Draw figures of runs, or of a suite, for papers.

    Nothing is trained or evaluated: what is drawn are the scores that `eval`, `sweep` and
    `reproduce` keep. What a caption must say (words, seeds, lengths, what lines and bands are) is
    printed. The same scores give the same bytes.

    Examples:
        statetrack plot runs/mine --out accuracy.svg
        statetrack plot runs --kind heat --out table.pdf --width column --style paper
        statetrack plot sweeps/mine --rows mamba,lstm --out curves.pdf

    """
    from statetrack.cli._terminal import print_json, require_writable
    from statetrack.errors import SettingsError
    from statetrack.pictures import Choice, check_path, draw_report, usual_kind
    from statetrack.report import console, make_report

    if axis is not None and kind not in (None, "data"):
        raise SettingsError(f"--axis belongs to --kind data, and --kind {kind} is asked for")
    look = options.look_of(**given, legend=not no_legend)
    check_path(out)
    look.settings()
    require_writable(out, "--out")
    report = make_report(*runs, folder=folder, budget=budget)
    if rows:
        names = options.by_beginning(report.row_names)
        report = report.with_rows(options.names_among(rows, names, "--rows"))
    choice = Choice(of=of, length=length, axis=axis, measure=measure, published=published)
    chosen = kind or usual_kind(report, choice)
    caption = draw_report(report, chosen, out, choice, look)
    if as_json:
        print_json({"figure": str(out), "kind": chosen, "caption": list(caption)})
        return
    to = console()
    for line in caption:
        to.print(f"{line}.")
    typer.echo(f"figure: {out}")
