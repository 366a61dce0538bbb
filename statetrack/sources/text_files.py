"""Text files that anybody may have written, read within bounds."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final

from statetrack.errors import TaskError

MOST_ENTRIES: Final = 10_000
"""How many names of a folder are compared with one that is not there."""


def read_text(path: Path, most_bytes: int) -> str:
    """The text of a file.

    Raises `TaskError` for one that is missing, larger than `most_bytes`, or no UTF-8 text.
    """
    written = read_bytes(path, most_bytes)
    if len(written) > most_bytes:
        raise TaskError(f"{path}: is larger than {most_bytes // 2**20} MiB, the most that is read")
    try:
        return written.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = written.count(b"\n", 0, problem.start) + 1
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
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "this is no name of a file"
        raise TaskError(f"{path}: cannot be read: {reason}{nearest_file(path)}") from None


def nearest_file(path: Path) -> str:
    """`. Did you mean 'folder/broker.dot'?` for a file that does not exist, or nothing."""
    try:
        if path.exists():
            return ""
        known = {entry.name: entry for entry in islice(path.parent.iterdir(), MOST_ENTRIES)}
    except (OSError, ValueError):
        return ""
    alike = [name for name, entry in known.items() if entry.suffix == path.suffix]
    close = get_close_matches(path.name, alike, n=1, cutoff=0.5)
    return f". Did you mean '{known[close[0]]}'?" if close else ""


def placed(path: Path, wrong: TaskError) -> TaskError:
    """The same error with the file before its line."""
    message = str(wrong)
    return TaskError(f"{path}, {message}" if message.startswith("line ") else f"{path}: {message}")
