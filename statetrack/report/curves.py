"""Accuracy over length, as a curve in the terminal.

Replicas are told apart by letters, not by colours alone; what they stand for is said below the
plot, where it covers nothing. Where a terminal has no Unicode, everything is drawn in ASCII.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from string import ascii_lowercase

import plotext

from statetrack.runs import EvaluationRow

WIDTH, HEIGHT = 78, 16
"""The size of a plot, in characters; a narrower terminal has a narrower one."""
NARROWEST = 40
"""The width below which a plot shows nothing."""
MOST_LINES = 8
"""The most replicas whose lines can be told apart; the selected one is among them."""
WIDE_RANGE = 30
"""The ratio of longest to shortest length from which the axis of lengths is logarithmic."""

_IN_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│·", "+++++++++-|.")


def accuracy_curve(
    rows: Sequence[EvaluationRow], *, width: int = WIDTH, coloured: bool, ascii_only: bool = False
) -> str:
    """A plot of accuracy by length: one line per replica, and one for the floor.

    It has at most `WIDTH` columns, and fewer in a terminal of fewer. Of several replicas each is
    drawn in a letter; at most `MOST_LINES` of them.
    """
    width = max(NARROWEST, min(width, WIDTH))
    figure = plotext.figure
    figure.clear()
    figure.theme("simple" if coloured else "colorless")
    figure.plot_size(width, HEIGHT)
    lengths = sorted({row.length for row in rows})
    wide = lengths[-1] / lengths[0] >= WIDE_RANGE

    def place(length: int) -> float:
        # the axis is linear in these: ticks of plotext's own are not at whole lengths
        return math.log10(length) if wide else float(length)

    replicas, left_out = _drawn(rows)
    alone = len(replicas) == 1
    legend = []
    first = next(iter(replicas))
    floor = [(row.length, row.floor) for row in rows if row.replica == first]
    lines = [(".", "the floor, the best constant answer", floor)]
    for letter, (replica, name) in zip(ascii_lowercase, replicas.items(), strict=False):
        points = [(row.length, row.accuracy) for row in rows if row.replica == replica]
        marker = ("*" if ascii_only else "hd") if alone else letter
        lines.append((marker, name, points))
    # what is drawn last covers the others: the selected replica, which is the first of all
    for marker, _, points in [lines[0], *reversed(lines[1:])]:
        scored = [(place(length), share) for length, share in points if not math.isnan(share)]
        if not scored:
            continue
        line = figure.signal(
            [at for at, _ in scored],
            [share for _, share in scored],
            marker="·" if marker == "." and not ascii_only else marker,
        )
        line.lines()
        figure.draw(line)
    for marker, name, _ in [*lines[1:], lines[0]]:
        shown = {".": "." if ascii_only else "·", "hd": "▄"}.get(marker, marker)
        legend.append(f"{shown} {name}")
    if left_out:
        legend.append(f"{left_out} more replicas are not drawn, and stand in the table")
    figure.ruler("y").lim(0, 1)
    ticks = _ticks(lengths, [place(length) for length in lengths], width)
    figure.ruler("x").ticks([place(tick) for tick in ticks], [f"{tick:,}" for tick in ticks])
    figure.label("length, on a logarithmic axis" if wide else "length")
    figure.legend(False)
    plot = str(figure.build())
    plot = plot if coloured else str(plotext.uncolorize(plot))
    kept = [line.rstrip() for line in plot.rstrip().splitlines()]
    text = "\n".join([*kept, *_wrapped(["accuracy at the last position:", *legend], width)])
    return text.translate(_IN_ASCII) if ascii_only else text


def _wrapped(entries: Sequence[str], width: int) -> list[str]:
    """Entries in lines of at most so many characters; none is broken unless it is longer."""
    lines = [""]
    for entry in entries:
        if lines[-1] and len(lines[-1]) + 2 + len(entry) > width:
            lines.append("")
        lines[-1] += f"  {entry}" if lines[-1] else entry
    return [part for line in lines for part in textwrap.wrap(line, width, drop_whitespace=False)]


def _drawn(rows: Sequence[EvaluationRow]) -> tuple[dict[int, str], int]:
    """The replicas that are drawn, the selected one first, with their names; how many are not."""
    names: dict[int, str] = {}
    for row in sorted(rows, key=lambda row: not row.selected):
        said = f"seed {row.seed}, lr {row.lr:g}"
        names.setdefault(row.replica, f"{said} (selected)" if row.selected else said)
    kept = dict(list(names.items())[:MOST_LINES])
    return kept, len(names) - len(kept)


def _ticks(lengths: Sequence[int], places: Sequence[float], width: int) -> list[int]:
    """Where the axis of lengths has numbers: its ends, and tested lengths far from each other."""
    spare = (places[-1] - places[0]) * len(f"{lengths[-1]:,}  ") / width
    ticks, reached = [lengths[0]], places[0]
    for length, place in zip(lengths, places, strict=True):
        if place - reached >= spare and (places[-1] - place >= spare or length == lengths[-1]):
            ticks.append(length)
            reached = place
    return ticks
