"""Draw figures of runs, or of a suite, for papers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from statetrack.cli import options

Kind = Literal["length", "heat", "data", "ablation", "angles"]

PLACE = 3.9
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return plot


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
            help="Accuracy by length; a heat map of rows and columns; accuracy along a setting; "
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
    width: Annotated[
        str | None,
        typer.Option(metavar="WIDTH", help="column (3.25 in), page (6.75 in), or inches."),
    ] = None,
    height: Annotated[float | None, typer.Option(metavar="INCHES", help="The height.")] = None,
    dpi: Annotated[int, typer.Option(help="Dots per inch of a PNG.", min=30, max=1200)] = 200,
    font: Annotated[
        float | None, typer.Option(metavar="POINTS", help="Size of letters.", min=3, max=60)
    ] = None,
    style: Annotated[
        str,
        typer.Option(
            metavar="STYLE",
            help="plain, paper or slides; or a style sheet of matplotlib, by name or file.",
        ),
    ] = "plain",
    title: Annotated[str | None, typer.Option(help="The title, in place of the report's.")] = None,
    no_title: Annotated[bool, typer.Option("--no-title", help="No title.")] = False,
    no_legend: Annotated[bool, typer.Option("--no-legend", help="No legend.")] = False,
    folder: options.SuiteFolder = None,
    budget: options.SuiteBudget = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw figures of runs, or of a suite, for papers.

    Nothing is trained or evaluated: what is drawn are the scores that `eval`, `sweep` and
    `reproduce` keep. What a caption must say (words, seeds, lengths, what lines and bands are) is
    printed. The same scores give the same bytes.

    Examples:
        statetrack plot runs/mine --out accuracy.svg
        statetrack plot runs --kind heat --out table.pdf --width column --style paper

    """
    from statetrack.cli._files import require_writable
    from statetrack.cli._json import print_json
    from statetrack.errors import SettingsError
    from statetrack.pictures.looks import Look, width_of
    from statetrack.pictures.report_figures import Choice, draw_report, usual_kind
    from statetrack.pictures.saving import check_path
    from statetrack.report.gathering import make_report

    if title is not None and no_title:
        raise SettingsError("--title and --no-title: choose one")
    if axis is not None and kind not in (None, "data"):
        raise SettingsError(f"--axis belongs to --kind data, and --kind {kind} is asked for")
    look = Look(
        width=None if width is None else width_of(width),
        height=height,
        dpi=dpi,
        font=font,
        style=style,
        title="" if no_title else title,
        legend=not no_legend,
    )
    check_path(out)
    look.settings()
    require_writable(out, "--out")
    report = make_report(*runs, folder=folder, budget=budget)
    choice = Choice(of=of, length=length, axis=axis, measure=measure, published=published)
    chosen = kind or usual_kind(report, choice)
    caption = draw_report(report, chosen, out, choice, look)
    if as_json:
        print_json({"figure": str(out), "kind": chosen, "caption": list(caption)})
        return
    for line in caption:
        typer.echo(f"{line}.")
    typer.echo(f"figure: {out}")
