"""Accuracy over length, as a curve in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import plotext

from statetrack.runs.rows import EvaluationRow

WIDTH, HEIGHT = 78, 16
WIDE_RANGE = 30
"""The ratio of longest to shortest length from which the axis of lengths is logarithmic."""


def accuracy_curve(rows: Sequence[EvaluationRow], *, coloured: bool) -> str:
    """A plot of accuracy by length: one line per replica, and one for the floor."""
    figure = plotext.figure
    figure.clear()
    figure.theme("simple" if coloured else "colorless")
    figure.plot_size(WIDTH, HEIGHT)
    lengths = sorted({row.length for row in rows})
    for name, points in _lines(rows).items():
        line = figure.signal([length for length, _ in points], [value for _, value in points])
        line.lines()
        line.label(name)
        figure.draw(line)
    figure.ruler("y").lim(0, 1)
    if lengths[-1] / lengths[0] >= WIDE_RANGE:
        figure.ruler("x").scale("log")
    figure.label("length")
    figure.legend(x=lengths[0], y=0.75, relative=True)
    plot = str(figure.build())
    return (plot if coloured else str(plotext.uncolorize(plot))).rstrip()


def _lines(rows: Sequence[EvaluationRow]) -> dict[str, list[tuple[int, float]]]:
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        name = f"seed {row.seed}, lr {row.lr:g}"
        lines.setdefault(name, []).append((row.length, row.accuracy))
    first = rows[0].replica
    lines["floor"] = [(row.length, row.floor) for row in rows if row.replica == first]
    return lines
