"""How figures look and are saved: their size, letters and style; the same drawing, the same bytes.

Matplotlib is an optional dependency, which `pip install '.[plot]'` installs; it is
imported only where something is drawn.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from statetrack.errors import RunError, SettingsError, nearest
from statetrack.runs import write_named_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Manner = Literal["diagram", "mealy", "cayley", "panels", "table", "matrix"]
"""How a task can be drawn."""
MANNERS: tuple[Manner, ...] = get_args(Manner)


WIDTHS: Mapping[str, float] = {"column": 3.25, "page": 6.75}
"""Widths that papers ask for, in inches: one column of two, and the whole page."""

NARROWEST, WIDEST = 1.5, 40.0
"""The least and the greatest width and height of a figure, in inches."""

_COMMON: Mapping[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.labelsize": "medium",
    "xtick.labelsize": "small",
    "ytick.labelsize": "small",
    "legend.fontsize": "small",
    "legend.frameon": False,
    "figure.titlesize": "large",
}

STYLES: Mapping[str, Mapping[str, Any]] = {
    "plain": {**_COMMON, "font.size": 9.0, "lines.linewidth": 1.4, "lines.markersize": 4.5},
    "paper": {
        **_COMMON,
        "font.size": 8.0,
        "lines.linewidth": 1.1,
        "lines.markersize": 3.6,
        "axes.linewidth": 0.6,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
    },
    "slides": {
        **_COMMON,
        "font.size": 15.0,
        "lines.linewidth": 2.4,
        "lines.markersize": 8.0,
        "axes.linewidth": 1.2,
    },
}
"""Styles of our own, by name; those of matplotlib can be named too."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a figure looks; what is None is chosen for what is drawn.

    `width` and `height` are in inches, `font` is the size of letters in points, `style` the name of
    one of `STYLES`, of a style sheet of matplotlib, or a file that holds one. `title` replaces that
    of the report; an empty one leaves it out.
    """

    width: float | None = None
    height: float | None = None
    dpi: int = 200
    font: float | None = None
    style: str = "plain"
    title: str | None = None
    legend: bool = True

    def __post_init__(self) -> None:
        for name, value in (("width", self.width), ("height", self.height)):
            if value is not None and not NARROWEST <= value <= WIDEST:
                raise SettingsError(
                    f"a figure's {name} of {value:g} inches: must be from {NARROWEST:g} to "
                    f"{WIDEST:g}"
                )

    def settings(self) -> dict[str, Any]:
        """The settings of matplotlib for this look.

        Raises `SettingsError` for a style that there is not.
        """
        found = dict(STYLES[self.style]) if self.style in STYLES else _sheet(self.style)
        return found | ({} if self.font is None else {"font.size": self.font})

    def titled(self, usual: str) -> str:
        """The title to draw; empty for none."""
        return usual if self.title is None else self.title


def width_of(text: str) -> float:
    """The width that `column`, `page` or a number of inches names.

    Raises `SettingsError` for anything else.
    """
    if text in WIDTHS:
        return WIDTHS[text]
    try:
        return float(text)
    except ValueError:
        known = ", ".join(WIDTHS)
        raise SettingsError(
            f"width '{text}': write {known} or a number of inches, such as 5.5"
        ) from None


def _sheet(name: str) -> dict[str, Any]:
    """The settings of a style sheet of matplotlib."""
    import matplotlib
    from matplotlib import style

    try:
        if name.endswith(".mplstyle"):
            path = Path(name)
            if not path.is_file():
                raise SettingsError(f"style '{name}': there is no such file")
            return _plain(matplotlib.rc_params_from_file(path, use_default_template=False))
        return _plain(style.library[name])
    except KeyError:
        known = [*STYLES, *style.available]
        raise SettingsError(
            f"style '{name}': there is none of that name.{nearest(name, known)} Known are "
            f"{', '.join(STYLES)}, those of matplotlib, and files that end in .mplstyle"
        ) from None


def _plain(settings: Any) -> dict[str, Any]:
    return {str(name): settings[name] for name in settings}


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
            "matplotlib is not installed: `pip install '.[plot]'` in statetrack's checkout "
            "installs it"
        ) from None


def save_figure(draw: Callable[[], Figure], path: Path, look: Look | None = None) -> None:
    """Draw a figure in the style of all figures, or in a look of its own, and write it to a file.

    Raises `SettingsError` as `check_path`, and where the file cannot be written.
    """
    check_path(path)
    try:
        write_named_file(path, _content(draw, path.suffix.lower(), path, look))
    except RunError as problem:
        raise SettingsError(str(problem)) from None


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
