"""What a sweep would take, before it is run: a table of its points, and the total."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from statetrack.report.table import Column, Table

if TYPE_CHECKING:
    from statetrack.sweep import Estimate, Estimates


def estimates_table(estimates: Estimates) -> Table:
    """One line a point; seconds that were scaled from another point have a `~`."""

    def seconds(heading: str, key: str, about: str | None = None) -> Column:
        def said(point: Estimate) -> str:
            if point.finished:
                return "finished" if heading == "training" else ""
            before = ("" if point.measured else "~") if about is None else about
            return before + duration(getattr(point, key))

        return Column(heading, "number", of=said)

    searching = any(point.evidence_seconds for point in estimates.points)
    columns = [
        Column("model", "name", key="row"),
        Column("task", key="column"),
        Column("weights", "number"),
        Column("replicas", "number"),
        Column("all weights", "number", of=lambda point: point.weights * point.replicas),
        Column("steps", "number"),
        Column("words per step", "number", key="words_per_step"),
        seconds("training", "training_seconds"),
        seconds("testing", "evaluation_seconds"),
        *([seconds("evidence", "evidence_seconds", "≤ ")] if searching else []),
    ]
    left_out = ("all weights", "words per step", "replicas", "weights")
    return Table.of(columns, estimates.points, left_out=left_out)


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
