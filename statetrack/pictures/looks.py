"""How figures look: their size, resolution, letters and style.

Matplotlib is imported only where a style sheet of its own is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.errors import SettingsError, nearest

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
