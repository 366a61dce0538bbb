"""What a machine file says, whatever its format, and what all readers and writers share.

Text that anybody may have written is read within bounds.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.text import shortened, visible

MOST_EDGES: Final = 200_000
"""The most transitions of a file, with those that a row stands for written out."""

LONGEST_LINE: Final = 100_000
"""The most characters of a line in a format whose lines are rows."""

MOST_ENTRIES: Final = 10_000
"""How many names of a folder are compared with one that is not there."""

ACCEPTED, REJECTED = "yes", "no"
"""The outputs of an acceptor's states."""


class Edge(NamedTuple):
    """A transition; in a Mealy machine it says an output."""

    source: str
    symbol: str
    target: str
    output: str | None
    line: int


@dataclass(frozen=True)
class MachineText:
    """A machine as a file says it.

    A Mealy machine where `outputs` is None; else a Moore machine, or an acceptor where all outputs
    are `ACCEPTED` or `REJECTED`, whose states have the outputs. `first` is the label of a Mealy
    machine's start before anything enters it, of a file that says so.
    """

    start: str
    edges: Sequence[Edge]
    outputs: Mapping[str, str] | None
    first: str | None = None

    @property
    def noun(self) -> str:
        """What messages call the machine."""
        if self.outputs is None:
            return "Mealy machine"
        accepts = set(self.outputs.values()) <= {ACCEPTED, REJECTED}
        return "acceptor" if accepts else "Moore machine"


def problem(line: int, what: str) -> TaskError:
    """An error that says in which line what is wrong; 0 where that has no line."""
    return TaskError(f"line {line}: {what}" if line else what)


def shown(text: str) -> str:
    """A piece of a file as an error quotes it."""
    return f"'{visible(shortened(text))}'"


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


def without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The keys and values of an object in JSON; raises `TaskError` for a key that stands twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise TaskError(f"the key {shown(twice)} appears twice in an object")
    return content


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


def first_label(automaton: Automaton) -> str | None:
    """The label of the start, where transitions that say the labels would leave it open.

    It is open where nothing enters the start, or where another state goes on like it.
    """
    delta, start = automaton.delta, automaton.start
    alike = int((delta == delta[start]).all(axis=1).sum()) > 1
    if alike or not (delta == start).any():
        return automaton.labels[int(automaton.output[start])]
    return None


def steps(automaton: Automaton) -> list[tuple[int, int, int]]:
    """The transitions, as state, symbol and target, state by state."""
    return [
        (state, symbol, target)
        for state, row in enumerate(automaton.delta.tolist())
        for symbol, target in enumerate(row)
    ]


def read_text(path: Path, most_bytes: int) -> str:
    """The text of a file.

    Raises `TaskError` for one that is missing, larger than `most_bytes`, or no UTF-8 text.
    """
    written = read_bytes(path, most_bytes)
    if len(written) > most_bytes:
        raise TaskError(f"{path}: is larger than {most_bytes // 2**20} MiB, the most that is read")
    try:
        return written.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = written.count(b"\n", 0, wrong.start) + 1
        raise TaskError(f"{path}, line {line}: cannot be read: it is not UTF-8 text") from None


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The content of a file; of one larger than `most_bytes`, so many and one more.

    Raises `TaskError` for one that is missing, or a pipe.
    """
    try:
        if path.is_fifo():  # reading it would wait for a writer, who may never come
            raise TaskError(f"{path}: cannot be read: it is a pipe, not a file")
        with path.open("rb") as file:  # of a device that never ends, no more than the bound is read
            return file.read(most_bytes + 1)
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or "this is no name of a file"
        raise TaskError(f"{path}: cannot be read: {reason}{nearest_file(path)}") from None


def nearest_file(path: Path) -> str:
    """What to do about a file that does not exist, `. Did you mean 'folder/broker.dot'?`.

    Empty for one that does, and for what is no name of a file.
    """
    try:
        if path.exists():
            return ""
        if not path.parent.is_dir():
            return f". There is no folder '{path.parent}'"
        known = {entry.name: entry for entry in islice(path.parent.iterdir(), MOST_ENTRIES)}
    except (OSError, ValueError):
        return ""
    alike = [name for name, entry in known.items() if entry.suffix.startswith(path.suffix)]
    close = get_close_matches(path.name, alike, n=1, cutoff=0.5)
    if close:
        return f". Did you mean '{known[close[0]]}'?"
    return ". Name a file that is there, or one of `statetrack list tasks`"


def placed(path: Path, wrong: TaskError) -> TaskError:
    """The same error with the file before its line."""
    message = str(wrong)
    return TaskError(f"{path}, {message}" if message.startswith("line ") else f"{path}: {message}")
