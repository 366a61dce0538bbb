"""Accuracy by length as small drawings: where the lines, bands and words of each panel stand.

All panels of a report have the same axes, so that they can be compared by eye. They are drawn by
the template as SVG: the selected replica is a thick line with marks and a band for its 95 %
interval, others are thin lines, the floor is dashed, the training lengths are shaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from statetrack.report.entries import Entry
from statetrack.report.table import share
from statetrack.runs import EvaluationRow

WIDTH, HEIGHT = 232, 140
"""The size of a panel."""

LEFT, RIGHT, TOP, BOTTOM = 24, 190, 10, 108
"""The edges of its axes: the space on the right is for the last accuracy."""

LABEL_WIDTH = 26
"""The room that a length needs below the axis."""


@dataclass(frozen=True)
class Axis:
    """The logarithmic axis of lengths, which all panels share."""

    first: float
    last: float

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Axis:
        """The axis on which all lengths of the entries have room, and some of those of training."""
        drawn = [entry for entry in entries if entry.rows]
        lengths = [length for entry in drawn for length in entry.lengths] or [1]
        trained = [max(1, entry.trained_to // 5) for entry in drawn if entry.trained_to is not None]
        first, last = float(min(lengths + trained)), float(max(lengths))
        return cls(first / 1.1, last * 1.1) if first < last else cls(first / 2, last * 2)

    def at(self, length: float) -> float:
        """Where a length stands."""
        share = math.log(length / self.first) / math.log(self.last / self.first)
        return round(LEFT + (RIGHT - LEFT) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> list[tuple[int, str]]:
        """Powers of ten; with these alone where fewer than two are seen, 2 and 5 times them too."""
        for steps in ((1,), (1, 2, 5)):
            powers = range(math.floor(math.log10(self.first)), math.ceil(math.log10(self.last)) + 1)
            found = [
                tick
                for power in powers
                for step in steps
                if self.first <= (tick := step * 10**power) <= self.last and tick >= 1
            ]
            if len(found) > 1:
                break
        kept: list[int] = []
        for tick in found:
            if not kept or self.at(tick) - self.at(kept[-1]) >= LABEL_WIDTH:
                kept.append(int(tick))
        return [(tick, _short(tick)) for tick in kept]


def _short(number: int) -> str:
    """`500`, `2k`, `1M`."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return str(number)


@dataclass(frozen=True)
class CurvePanel:
    """One entry's drawing: `lines` of the other replicas, and all that is said of the selected."""

    shaded_to: float | None
    lines: tuple[str, ...]
    band: str
    line: str
    marks: tuple[tuple[float, float, str], ...]
    floor: str
    floor_y: float | None
    last: str
    last_y: float
    sentence: str


def panel_of(entry: Entry, axis: Axis) -> CurvePanel | None:
    """The drawing of an entry; None where no accuracy is known."""
    replicas: dict[int, list[EvaluationRow]] = {}
    for row in sorted(entry.rows, key=lambda row: row.length):
        if math.isfinite(row.accuracy):
            replicas.setdefault(row.replica, []).append(row)
    if not replicas:
        return None
    chosen = [rows for rows in replicas.values() if rows[0].selected]
    others = [rows for rows in replicas.values() if not rows[0].selected]
    selected = chosen[0] if chosen else []
    shown = selected or others[0]
    floors = [row for row in shown if math.isfinite(row.floor)]
    return CurvePanel(
        shaded_to=None if entry.trained_to is None else axis.at(entry.trained_to),
        lines=tuple(
            _line([(row.length, row.accuracy) for row in rows], axis)
            for rows in others
            if len(rows) > 1
        ),
        band=_band(selected, axis),
        line=_line([(row.length, row.accuracy) for row in selected], axis),
        marks=tuple((axis.at(row.length), _height(row.accuracy), _said(row)) for row in shown),
        floor=_line([(row.length, row.floor) for row in floors], axis),
        floor_y=_height(floors[0].floor) if floors else None,
        last=share(shown[-1].accuracy),
        last_y=_height(shown[-1].accuracy),
        sentence=f"{entry.row} on {entry.column}: " + ", ".join(map(_said, shown)),
    )


KINDS = 8
"""The lines of several runs that colours, dashes and marks tell apart: as many stand together."""

SIGNS = (
    "M-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0 -5.2 0Z",
    "M-2.4 -2.4H2.4V2.4H-2.4Z",
    "M0 -3.1L3 2.4H-3Z",
    "M0 -3.4L3.4 0L0 3.4L-3.4 0Z",
)
"""The marks of lines, each about the point where it stands."""


@dataclass(frozen=True)
class CombinedLine:
    """One of several lines in a panel: its kind, its points and its marks."""

    entry: Entry
    kind: int
    line: str
    marks: tuple[tuple[float, float, str], ...]
    sign: str


@dataclass(frozen=True)
class CombinedPanel:
    """The selected replicas of several runs on one task."""

    shaded_to: float | None
    floor: str
    lines: tuple[CombinedLine, ...]
    sentence: str


def combined_panels(entries: Sequence[Entry], axis: Axis) -> list[CombinedPanel]:
    """The panels that have several runs on a task each: as many lines in one as can be told apart.

    None where there is one run, or none was tested at two lengths.
    """
    rows = {
        entry.run: sorted(
            (row for row in entry.rows if row.selected and math.isfinite(row.accuracy)),
            key=lambda row: row.length,
        )
        for entry in entries
    }
    drawn = [entry for entry in entries if rows[entry.run]]
    if len(drawn) < 2 or all(len(rows[entry.run]) < 2 for entry in drawn):
        return []
    found = []
    for begin in range(0, len(drawn), KINDS):
        some = drawn[begin : begin + KINDS]
        lines = tuple(
            CombinedLine(
                entry,
                kind,
                _line([(row.length, row.accuracy) for row in rows[entry.run]], axis),
                tuple(
                    (axis.at(row.length), _height(row.accuracy), f"{entry.row}: {_said(row)}")
                    for row in rows[entry.run]
                ),
                SIGNS[kind % len(SIGNS)],
            )
            for kind, entry in enumerate(some)
        )
        floors = {row.length: row.floor for e in some for row in rows[e.run]}
        known = [(n, floor) for n, floor in sorted(floors.items()) if math.isfinite(floor)]
        trained = [entry.trained_to for entry in some if entry.trained_to is not None]
        said = "; ".join(f"{e.row}: {', '.join(map(_said, rows[e.run]))}" for e in some)
        found.append(
            CombinedPanel(
                axis.at(min(trained)) if trained else None,
                _line(known, axis),
                lines,
                f"{some[0].column}: {said}",
            )
        )
    return found


def _height(accuracy: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * accuracy, 1)


def _line(points: Sequence[tuple[float, float]], axis: Axis) -> str:
    """Points of a line as SVG has them."""
    return " ".join(f"{axis.at(length):g},{_height(value):g}" for length, value in points)


def _band(rows: Sequence[EvaluationRow], axis: Axis) -> str:
    """The outline of the intervals, there and back."""
    known = [row for row in rows if math.isfinite(row.low + row.high)]
    there = [(row.length, row.high) for row in known]
    back = [(row.length, row.low) for row in reversed(known)]
    return _line(there + back, axis)


def _said(row: EvaluationRow) -> str:
    return f"{share(row.accuracy)} at {row.length:,}"
