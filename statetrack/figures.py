"""The look of figures: colours, axes, titles and legends.

Colour-blind readers can distinguish the colours (Okabe and Ito 2008), and shapes and shades differ
as well, so that figures can be read in grey. Matplotlib is an optional dependency, imported when
something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, NOTE, PALE, FILL = "#1a1a1a", "#595959", "#bfbfbf", "#f2f2f2"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
BLUE, ORANGE, GREEN = PALETTE[:3]

TITLE, TEXT = 11.0, 9.0
"""Font sizes."""


def new_figure(
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


def entitled(figure: Figure, title: str, about: str) -> None:
    """Write a title above a figure, and what it shows beneath the title."""
    figure.suptitle(title, fontsize=TITLE, color=INK, x=0.01, horizontalalignment="left")
    figure.axes[0].set_title(about, fontsize=TEXT, color=NOTE, loc="left")


def with_legend(figure: Figure, axes: Axes, columns: int) -> None:
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
