"""Saving figures: the same drawing gives the same bytes.

Matplotlib is an optional dependency, which `pip install 'statetrack[plot]'` installs.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statetrack.errors import SettingsError
from statetrack.evidence import Evidence
from statetrack.pictures.looks import Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAVED_AS: Mapping[str, Mapping[str, Any]] = {
    ".svg": {"Date": None},
    ".png": {},
    ".pdf": {"CreationDate": None},
}
"""File types, and the metadata to remove so that the bytes are reproducible."""

STYLE: Mapping[Any, Any] = {
    "font.family": "DejaVu Sans",
}
"""Overrides the user's matplotlib settings."""

FONT, FONTS = b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif"
"""The font of an SVG, and those with letters of about the same width, for readers without it."""

REPRODUCIBLE: Mapping[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "statetrack",
    "pdf.fonttype": 42,
}
"""Whatever the style, text is stored as text, and ids are not random."""

MOST_DOTS = 6000
"""The most dots in the width and height of a PNG."""


def check_path(path: Path) -> None:
    """Raise `SettingsError` for an ending that is not in `SAVED_AS`, and without matplotlib."""
    if path.suffix.lower() not in SAVED_AS:
        known = ", ".join(SAVED_AS)
        raise SettingsError(f"{path}: the file's name must end in one of {known}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SettingsError(
            "matplotlib is not installed: `pip install 'statetrack[plot]'` installs it"
        ) from None


def save_figure(draw: Callable[[], Figure], path: Path, look: Look | None = None) -> None:
    """Draw a figure in the style of all figures, or in a look of its own, and write it to a file.

    Raises `SettingsError` as `check_path`, and where the file cannot be written.
    """
    check_path(path)
    content = _content(draw, path.suffix.lower(), path, look)
    try:
        path.write_bytes(content)
    except OSError as problem:
        raise SettingsError(f"{path}: cannot be written: {problem.strerror}") from None


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


def _content(draw: Callable[[], Figure], ending: str, path: Path, look: Look | None) -> bytes:
    """The bytes of a file."""
    import matplotlib

    buffer = io.BytesIO()
    settings: dict[Any, Any] = {} if look is None else look.settings()
    sharp = Look.dpi if look is None else look.dpi
    with matplotlib.rc_context(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, **settings, **REPRODUCIBLE})
        figure = draw()
        figure.savefig(
            buffer,
            format=ending[1:],
            dpi=min(sharp, int(MOST_DOTS / max(figure.get_size_inches()))),
            metadata=dict(SAVED_AS[ending]),
        )
    missing = [str(one.message) for one in caught if "missing from" in str(one.message)]
    if missing and ending != ".svg":
        raise SettingsError(
            f"{path}: a name has a letter that is missing from the font: take a file that "
            "ends in .svg, whose text stays text"
        )
    content = buffer.getvalue()
    return content.replace(FONT, FONTS) if ending == ".svg" else content
