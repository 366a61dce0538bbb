"""What the readers of all formats share: bounds, and problems that name their line."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from statetrack.errors import TaskError
from statetrack.sources.formats._machine import Edge
from statetrack.text import shortened

MOST_EDGES: Final = 200_000
"""The most transitions of a file, with those that a row stands for written out."""

LONGEST_LINE: Final = 100_000
"""The most characters of a line in a format whose lines are rows."""


def problem(line: int, what: str) -> TaskError:
    """An error that says in which line what is wrong; 0 where that has no line."""
    return TaskError(f"line {line}: {what}" if line else what)


def shown(text: str) -> str:
    """A piece of a file as an error quotes it."""
    return f"'{shortened(text)}'"


def rows(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that are not empty, without spaces around them, and their numbers.

    Raises `TaskError` for a line of more than `LONGEST_LINE` characters.
    """
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        row = line.strip()
        if len(row) > LONGEST_LINE:
            raise problem(number, f"has {len(row):,} characters, and {LONGEST_LINE:,} are the most")
        if row:
            yield number, row


def number_in(text: str, line: int, what: str, most: int = 10**9) -> int:
    """A whole number of a file; raises `TaskError` for anything else, and for one above `most`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) <= most):
        raise problem(line, f"{what} is {shown(text)}: it must be a whole number up to {most:,}")
    return int(text)


def add(edges: list[Edge], edge: Edge) -> None:
    """Add a transition; raises `TaskError` for more than `MOST_EDGES`."""
    if len(edges) == MOST_EDGES:
        raise problem(edge.line, f"more than {MOST_EDGES:,} transitions are too many")
    edges.append(edge)


def start_mark(edges: Sequence[Edge], start: str, is_one: Callable[[Edge], bool]) -> Edge | None:
    """The transition that says the label of the start, None without one.

    It leads to the start, from a state with no other transition that nothing enters.
    """
    marks = [edge for edge in edges if is_one(edge)]
    if len(marks) != 1 or marks[0].target != start or marks[0].source == start:
        return None
    mark = marks[0]
    beside = any(mark.source in (edge.source, edge.target) for edge in edges if edge is not mark)
    return None if beside else mark
