"""Figures of what a probe found: eigenvalues, angles and harmonics, characters, growing errors.

Matplotlib is an optional dependency, imported when something is drawn. Shapes and shades differ as
well as colours, so that figures can be read in grey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from statetrack.errors import SettingsError
from statetrack.evidence import ErrorControl, LearnedGroup, Plane, Representation
from statetrack.pictures._canvas import INK, NOTE, PALETTE
from statetrack.pictures.saving import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN = PALETTE[:3]
PALE = "#bfbfbf"

TITLE, TEXT = 11.0, 9.0
"""Font sizes."""

MOST_PLANES = 40
"""The most planes in a figure: those that are read most."""

HARDLY = 1e-3
"""A share of the squared logits below which a plane is hardly read."""

MOST_NAMES = 16
"""The most classes or irreducibles that are named on an axis."""

FARTHER = 30
"""A predicted failure is drawn up to so many times the longest length that was read."""

FLOOR = 1e-9
"""Ratios up to this are rounding, and not drawn."""

MARKERS = "osD^vP*X"
"""Marks of symbols in the figure of angles."""

Drawing = tuple[str, Callable[[], "Figure"]]
"""The name of a figure, and what draws it."""


def draw_probe(
    folder: Path,
    ending: str,
    of: str,
    representation: Representation | None,
    error_control: ErrorControl | None,
) -> list[Path]:
    """Draw what there is into a folder, one file per figure; `of` ends the titles.

    `ending` is that of the files: .svg, .png or .pdf. Raises `SettingsError` for another, without
    matplotlib, and where the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SettingsError(f"{folder}: cannot be made: {problem.strerror}") from None
    written = []
    for name, draw in drawings(of, representation, error_control):
        path = folder / f"{name}{ending}"
        save_figure(draw, path)
        written.append(path)
    return written


def drawings(
    of: str, representation: Representation | None, error_control: ErrorControl | None
) -> Iterator[Drawing]:
    """The figures that can be drawn."""
    if representation is not None:
        found = representation
        if any(each.every or each.used for each in found.spectra):
            yield "eigenvalues", lambda: eigenvalue_figure(found, of)
        if found.planes:
            yield "harmonics" if found.modulus else "angles", lambda: plane_figure(found, of)
        if found.groups:
            yield "characters", lambda: character_figure(found.groups[0], of)
    if error_control is not None and len(error_control.spreads) > 1:
        growing = error_control
        yield "error-control", lambda: error_figure(growing, of)


def eigenvalue_figure(found: Representation, of: str) -> Figure:
    """The eigenvalues of all listed operators in the complex plane, beside the unit circle."""
    figure, (axes,) = _figure(5.0, 5.6, 1)
    turn = np.linspace(0, 2 * np.pi, 361)
    axes.plot(np.cos(turn), np.sin(turn), color=NOTE, linewidth=0.8, zorder=1)
    axes.axhline(0, color=PALE, linewidth=0.6, zorder=0)
    axes.axvline(0, color=PALE, linewidth=0.6, zorder=0)
    every = np.array([pair for each in found.spectra for pair in each.every]).reshape(-1, 2)
    used = np.array([pair for each in found.spectra for pair in each.used]).reshape(-1, 2)
    axes.plot(*every.T, "o", mfc="none", mec=NOTE, ms=4, mew=0.7, zorder=2, label="all")
    kept = "where the state is kept"
    axes.plot(*used.T, "D", mfc=BLUE, mec="white", mew=0.4, ms=5, zorder=3, label=kept)
    reach = max(1.1, 1.05 * float(np.abs([*every.ravel(), *used.ravel(), 1.0]).max()))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="real part", ylabel="imaginary")
    axes.set_aspect("equal")
    number = len(found.spectra)
    which = f"{number} symbols" if number == len(found.symbols) else f"the first {number} symbols"
    _title(figure, f"Eigenvalues of {of}", f"the operators of {which}; the circle has radius 1")
    _legend(figure, axes, 2)
    return figure


def plane_figure(found: Representation, of: str) -> Figure:
    """Harmonics, or angles, of the planes that are read most; and how much each is read."""
    planes = found.planes[:MOST_PLANES]
    if found.modulus is None or found.unit is None:
        planes = tuple(plane for plane in planes if plane.weight >= HARDLY) or planes[:1]
    figure, (above, below) = _figure(6.4, 5.2, 2, heights=(3, 1))
    places = np.arange(1, len(planes) + 1)
    modulus = found.modulus
    read = np.array([plane.weight for plane in planes])
    if modulus is not None and found.unit is not None:
        half = modulus // 2
        for harmonic in range(half + 1):
            above.axhline(harmonic, color=PALE, linewidth=0.6, zorder=0)
        _harmonics(above, planes, places)
        above.set(ylim=(-0.4, half + 0.6), ylabel=f"harmonic: angle of {_symbol(found)} / (2π/m)")
        step = max(1, -(-(half + 1) // 12))
        above.set_yticks(range(0, half + 1, step))
        what, about = "Harmonics", f"m = {modulus}; whole numbers are exact"
    else:
        symbols = list(range(min(len(found.symbols), len(MARKERS))))
        for symbol in symbols:
            angles = [plane.angles[symbol] for plane in planes]
            aside = 0.6 * ((symbol + 0.5) / len(symbols) - 0.5)  # so that no mark hides another
            pairs = zip(places, angles, strict=True)
            above.plot(
                [place + aside for place, angle in pairs if angle is not None],
                [angle for angle in angles if angle is not None],
                MARKERS[symbol],
                mfc=PALETTE[symbol % len(PALETTE)],
                mec=INK,
                mew=0.4,
                ms=6,
                label=found.symbols[symbol],
            )
        above.set(ylim=(-3.5, 3.5), ylabel="angle")
        above.set_yticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["-π", "-π/2", "0", "π/2", "π"])
        above.grid(axis="y", color=PALE, linewidth=0.6)
        what = "Angles"
        about = "no mark: the operator does not turn that plane as a rotation does"
    below.bar(places, read, color=NOTE, width=0.7)
    below.set(xlabel="plane or line, most read first", ylabel="share read")
    below.set_ylim(0, 1.15 * max(float(read.max()), 1e-9))
    for axes in (above, below):
        axes.set_xlim(0.3, len(planes) + 0.7)
        _whole_ticks(axes, len(planes))
    _title(figure, f"{what} of {of}", about)
    _legend(figure, above, 6)
    return figure


def _harmonics(axes: Axes, planes: Sequence[Plane], places: Any) -> None:
    """Filled where a plane is read, hollow where it hardly is."""
    for is_read, face, label in ((True, BLUE, "read"), (False, "none", "hardly read")):
        chosen = [
            (place, plane.harmonic)
            for place, plane in zip(places, planes, strict=True)
            if plane.harmonic is not None and (plane.weight >= HARDLY) == is_read
        ]
        if chosen:
            mark = "o" if is_read else "s"
            colour = BLUE if is_read else NOTE
            axes.plot(*zip(*chosen, strict=True), mark, mfc=face, mec=colour, ms=6, label=label)


def character_figure(group: LearnedGroup, of: str) -> Figure:
    """How often each irreducible was learned, and the character beside that of whole numbers."""
    figure, (left, right) = _figure(7.2, 4.0, 2, side_by_side=True)
    parts = group.irreducibles
    places = np.arange(len(parts))
    left.bar(places, [each.multiplicity for each in parts], color=BLUE, width=0.6)
    named = len(parts) <= MOST_NAMES
    names = [each.name.removeprefix("harmonic ") for each in parts]
    if named:
        left.set_xticks(places, names)
    most = max(1, round(max(each.multiplicity for each in parts)))
    left.set_yticks(range(0, most + 1, max(1, -(-most // 6))))
    left.grid(axis="y", color=PALE, linewidth=0.6)
    left.set_axisbelow(True)
    harmonics = any(each.name.startswith("harmonic") for each in parts)
    left.set(ylabel="multiplicity", xlabel="harmonic" if harmonics else "irreducible (dimension)")
    whole = np.sum([round(each.multiplicity) * np.array(each.character) for each in parts], axis=0)
    classes = np.arange(len(group.character))
    right.plot(classes, whole, "s", mfc="none", mec=ORANGE, ms=10, mew=1.4, label="whole parts")
    right.plot(classes, group.character, "o", color=INK, ms=4.5, label="learned")
    right.axhline(0, color=PALE, linewidth=0.6, zorder=0)
    if len(classes) <= MOST_NAMES:
        labels = [
            f"{size} of\norder {order}"
            for size, order in zip(group.class_sizes, group.class_orders, strict=True)
        ]
        crowded = len(classes) > 6
        labels = [str(order) for order in group.class_orders] if crowded else labels
        right.set_xticks(classes, labels)
        right.set_xlabel("conjugacy class: order of its elements" if crowded else "conjugacy class")
    else:
        right.set_xlabel("conjugacy class")
    right.set_ylabel("trace of the operator")
    right.set_xlim(-0.6, len(classes) - 0.4)
    _legend(figure, right, 2)
    dimensions = f"{group.dimension:.3f}".rstrip("0").rstrip(".")
    _title(
        figure,
        f"Irreducible representations of {group.name} in {of}",
        f"they add up to {group.accounted} of {dimensions} dimensions; residue {group.residue:.1e}",
    )
    return figure


def error_figure(found: ErrorControl, of: str) -> Figure:
    """The spread of hidden states along words, the threshold, predicted and observed failure."""
    figure, (axes,) = _figure(6.4, 4.6, 1)
    lines = (
        ("ratio", "R/M of states", "s", NOTE, ":"),
        ("output_ratio", "R/M of logits", "o", BLUE, "-"),
        ("displacement", "displacement", "D", ORANGE, "--"),
    )
    for field, label, mark, colour, style in lines:
        points = [
            (each.position, getattr(each, field))
            for each in found.spreads
            if getattr(each, field) is not None and getattr(each, field) > FLOOR
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                marker=mark,
                color=colour,
                linestyle=style,
                ms=4,
                linewidth=1.2,
                label=label,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    if found.threshold:
        axes.set_ylim(top=max(axes.get_ylim()[1], 3 * found.threshold))
        axes.axhline(found.threshold, color=INK, linewidth=1.0, linestyle="--")
        axes.annotate(
            f"threshold {found.threshold:.2f}",
            (found.spreads[0].position, found.threshold),
            xytext=(2, 3),
            textcoords="offset points",
            fontsize=TEXT - 1,
        )
    last = found.spreads[-1].position
    if found.predicted is not None and found.predicted <= FARTHER * last:
        axes.axvline(found.predicted, color=GREEN, ls=":", lw=1.6, label="predicted failure")
    failed = found.observed or found.first_error
    if failed is not None:
        axes.axvline(failed, color=GREEN, lw=1.2, label="observed failure")
    axes.set(xlabel="position in the word", ylabel="over the separation M")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    if found.first_error is None:
        errors = f"no error on {found.words:,} random words of {found.length:,} symbols"
    else:
        errors = f"first error at symbol {found.first_error:,} of {found.words:,} random words"
    _title(figure, f"Errors of the state of {of}", errors)
    _legend(figure, axes, 3)
    return figure


def _symbol(found: Representation) -> str:
    assert found.unit is not None
    return f"symbol {found.symbols[found.unit]}"


def _figure(
    width: float,
    height: float,
    parts: int,
    *,
    heights: Sequence[float] = (1,),
    side_by_side: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure of some inches with axes, one above the other or side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if side_by_side:
        grid = figure.subplots(1, parts, squeeze=False)
    else:
        ratios = list(heights) if len(heights) == parts else [1] * parts
        grid = figure.subplots(parts, 1, squeeze=False, height_ratios=ratios)
    every = list(grid.ravel())
    for axes in every:
        axes.tick_params(labelsize=TEXT, colors=INK)
        axes.xaxis.label.set_size(TEXT)
        axes.yaxis.label.set_size(TEXT)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure, every


def _title(figure: Figure, title: str, about: str) -> None:
    figure.suptitle(title, fontsize=TITLE, color=INK, x=0.01, horizontalalignment="left")
    figure.axes[0].set_title(about, fontsize=TEXT, color=NOTE, loc="left")


def _legend(figure: Figure, axes: Axes, columns: int) -> None:
    """The marks of some axes, beneath all of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        fontsize=TEXT - 1,
        frameon=False,
        ncols=columns,
        loc="outside lower center",
    )


def _whole_ticks(axes: Axes, most: int) -> None:
    axes.set_xticks(range(1, most + 1, max(1, -(-most // 20))))
