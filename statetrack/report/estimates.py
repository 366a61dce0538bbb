"""What a sweep would take, before it is run: a table of its points, and the total."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from statetrack.report.drawing import plain_table
from statetrack.report.formats.rich import FittedTable

if TYPE_CHECKING:
    from statetrack.sweep import Estimate, Estimates

NUMBERS = ("weights", "replicas", "all weights", "steps", "words per step", "training", "testing")


LEFT_OUT = ("all weights", "words per step", "replicas", "weights")
"""The columns that a narrow terminal does without, in this order."""


def estimates_table(estimates: Estimates) -> FittedTable:
    """One line a point; seconds that were scaled from another point have a `~`."""
    searching = any(point.evidence_seconds for point in estimates.points)
    headings = ("model", "task", *NUMBERS, *(["evidence"] if searching else []))
    table = plain_table(*headings, right=headings[2:], left_out=LEFT_OUT)
    for point in estimates.points:
        table.add_row(
            point.row,
            point.column,
            f"{point.weights:,}",
            f"{point.replicas:,}",
            f"{point.weights * point.replicas:,}",
            f"{point.steps:,}",
            f"{point.words_per_step:,}",
            *_seconds_of(point, searching),
        )
    return table


def _seconds_of(point: Estimate, searching: bool) -> Iterator[str]:
    if point.finished:
        yield from ("finished", *[""] * (1 + searching))
        return
    about = "" if point.measured else "~"
    yield about + duration(point.training_seconds)
    yield about + duration(point.evaluation_seconds)
    if searching:
        yield f"≤ {duration(point.evidence_seconds)}"


def estimates_lines(estimates: Estimates) -> Iterator[str]:
    """The total, and what the numbers mean and leave out."""
    points = estimates.points
    finished = sum(point.finished for point in points)
    yield (
        f"{len(points)} points, {finished} finished; "
        f"{duration(estimates.processor_seconds)} of computing, about "
        f"{duration(estimates.seconds)} with {estimates.jobs} at a time on idle cores"
    )
    if any(not point.measured for point in points):
        yield "~: scaled from the nearest point that was timed, by weights and words"
    yield (
        "from a few timed steps and tests of untrained models; not counted: replicas that stop "
        "early, and most of what solves for operators at the end of training"
    )


def duration(seconds: float) -> str:
    """`0.3 s`, `12 s`, `4 min 10 s`, `3 h 05 min`, `2 d 4 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"
