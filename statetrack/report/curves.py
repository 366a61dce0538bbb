"""Accuracy over length, as a curve in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotext

from statetrack.runs.rows import EvaluationRow

WIDTH, HEIGHT = 78, 16
WIDE_RANGE = 30
"""The ratio of longest to shortest length from which the axis of lengths is logarithmic."""


def accuracy_curve(rows: Sequence[EvaluationRow], *, coloured: bool) -> str:
    """A plot of accuracy by length: one line per replica, and one for the floor.

    Lines are named where colours tell several replicas apart.
    """
    figure = plotext.figure
    figure.clear()
    figure.theme("simple" if coloured else "colorless")
    figure.plot_size(WIDTH, HEIGHT)
    lengths = sorted({row.length for row in rows})
    wide = lengths[-1] / lengths[0] >= WIDE_RANGE

    def place(length: int) -> float:
        # the axis is linear in these: ticks of plotext's own are not at whole lengths
        return math.log10(length) if wide else float(length)

    for name, points in _lines(rows).items():
        line = figure.signal([place(length) for length, _ in points], [v for _, v in points])
        line.lines()
        line.label(name)
        figure.draw(line)
    figure.ruler("y").lim(0, 1)
    ticks = _ticks(lengths, [place(length) for length in lengths])
    figure.ruler("x").ticks([place(tick) for tick in ticks], [f"{tick:,}" for tick in ticks])
    several = len({row.replica for row in rows}) > 1
    figure.label("length")
    figure.legend(coloured and several, x=place(lengths[0]), y=0.75, relative=True)
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


def _ticks(lengths: Sequence[int], places: Sequence[float]) -> list[int]:
    """Where the axis of lengths has numbers: its ends, and tested lengths far from each other."""
    spare = (places[-1] - places[0]) * len(f"{lengths[-1]:,}  ") / WIDTH
    ticks, reached = [lengths[0]], places[0]
    for length, place in zip(lengths, places, strict=True):
        if place - reached >= spare and (places[-1] - place >= spare or length == lengths[-1]):
            ticks.append(length)
            reached = place
    return ticks
