"""Which code in run folders is the user's own: that of runs which were begun on this machine.

Whoever begins a run with a file of theirs (`--plugin`) has executed it. The run keeps a copy, and
what that copy consists of is remembered by its SHA-256 in the user's state folder,
`$XDG_STATE_HOME/statetrack/own-code`. A run folder with exactly these Python files holds nothing
that was not executed here before, so it is opened without asking; one with any other is not.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def remember_code(folder: Path, code: Iterable[Path]) -> None:
    """Remember the Python files of a run that this process begins.

    Where the state folder cannot be written nothing is remembered, and the run asks as any other.
    """
    with suppress(OSError):
        entry = _entry(folder, code)
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_text(f"{folder.resolve()}\n", encoding="utf-8")


def is_own_code(folder: Path, code: Iterable[Path]) -> bool:
    """Whether a run that was begun on this machine had exactly these Python files."""
    try:
        return _entry(folder, code).is_file()
    except OSError:
        return False


def _entry(folder: Path, code: Iterable[Path]) -> Path:
    """The file that is there once the code of a folder is remembered."""
    digest = hashlib.sha256()
    for file in code:
        for part in (file.relative_to(folder).as_posix().encode(), file.read_bytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "statetrack", "own-code", digest.hexdigest())
