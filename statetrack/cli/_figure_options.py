"""How a figure looks, as options of every command that draws one for a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.errors import SettingsError

if TYPE_CHECKING:
    from statetrack.pictures import Look

Width = Annotated[
    str | None,
    typer.Option(metavar="WIDTH", help="column (3.25 in), page (6.75 in), or inches."),
]
Height = Annotated[float | None, typer.Option(metavar="INCHES", help="The height.")]
Dpi = Annotated[int, typer.Option(help="Dots per inch of a PNG.", min=30, max=1200)]
Font = Annotated[
    float | None, typer.Option(metavar="POINTS", help="Size of letters.", min=3, max=60)
]
Style = Annotated[
    str,
    typer.Option(
        metavar="STYLE",
        help="plain, paper or slides; or a style sheet of matplotlib, by name or file.",
    ),
]
Title = Annotated[str | None, typer.Option(help="The title, in place of the usual one.")]
NoTitle = Annotated[bool, typer.Option("--no-title", help="No title.")]

DPI, STYLE = 200, "plain"
"""The defaults of `--dpi` and `--style`."""


def look_of(
    *,
    width: str | None,
    height: float | None,
    dpi: int,
    font: float | None,
    style: str,
    title: str | None,
    no_title: bool,
    legend: bool = True,
) -> Look:
    """The look that options ask for.

    Raises `SettingsError` for a size, style or title that cannot be had.
    """
    from statetrack.pictures import Look, width_of

    if title is not None and no_title:
        raise SettingsError("--title and --no-title: choose one")
    return Look(
        width=None if width is None else width_of(width),
        height=height,
        dpi=dpi,
        font=font,
        style=style,
        title="" if no_title else title,
        legend=legend,
    )
