"""Figures of a report for papers: by length, heat map, along a setting, ablation, angles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from statetrack.errors import SettingsError
from statetrack.evidence import Evidence, Representation
from statetrack.pictures.heat_map import heat_figure
from statetrack.pictures.looks import Look, save_figure
from statetrack.pictures.plots import ablation_figure, axis_figure, length_figure
from statetrack.pictures.sketch import CaptionedFigure
from statetrack.pictures.sketch import Choice as Choice
from statetrack.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def angle_figure(report: Report, choice: Choice, look: Look) -> CaptionedFigure:
    """The angles, or harmonics, of the planes that a run turns, of which `probe` found some.

    Raises `SettingsError` for several runs, and where nothing was found.
    """
    if len(report.entries) != 1:
        raise SettingsError(
            f"angles are those of one run, and {len(report.entries)} are given: name one run folder"
        )
    entry = report.entries[0]
    found = next((each for each in entry.evidence if isinstance(each, Representation)), None)
    if found is None or not found.planes:
        raise SettingsError(
            f"{entry.run}: no angles of it are known: `statetrack probe {entry.run} --only "
            "representation` finds those of a linear model"
        )
    figure = found.plane_figure(f"{entry.model} on {entry.task}")
    if look.width or look.height:
        width, height = figure.get_size_inches()
        figure.set_size_inches(
            look.width or width, look.height or height * (look.width or width) / width
        )
    return CaptionedFigure(figure, (f"the planes that the selected replica of {entry.run} turns",))


KINDS: Mapping[str, Callable[[Report, Choice, Look], CaptionedFigure]] = {
    "length": length_figure,
    "heat": heat_figure,
    "data": axis_figure,
    "ablation": ablation_figure,
    "angles": angle_figure,
}
"""The kinds of figures, and what draws them."""


def usual_kind(report: Report, choice: Choice) -> str:
    """The kind that suits a report: along an axis if one is named, by length if there are several.

    The tables of runs that were evaluated at one length are heat maps.
    """
    if choice.axis is not None:
        return "data"
    return "length" if any(len(entry.lengths) > 1 for entry in report.entries) else "heat"


def draw_report(
    report: Report, kind: str, path: Path, choice: Choice, look: Look
) -> tuple[str, ...]:
    """Draw a figure of a report into a file; what its caption is to say.

    The same report gives the same bytes. Raises `SettingsError` where there is nothing to draw, for
    an ending that names no type of file, and without matplotlib.
    """
    caption: tuple[str, ...] = ()

    def draw() -> Figure:
        nonlocal caption
        figure, caption = KINDS[kind](report, choice, look)
        return figure

    save_figure(draw, path, look)
    return caption


def draw_evidence(found: Iterable[Evidence], folder: Path, ending: str, of: str) -> list[Path]:
    """Draw the figures of some evidence into a folder, one file each; `of` ends the titles.

    `ending` is that of the files: .svg, .png or .pdf. Raises `SettingsError` for another, without
    matplotlib, and where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SettingsError(f"{folder}: cannot be made: {problem.strerror}") from None
    written = []
    for name, draw in (drawing for each in found for drawing in each.figures(of)):
        path = folder / f"{name}{ending}"
        save_figure(draw, path)
        written.append(path)
    return written
