"""Files that a command writes at its end, looked at before it begins."""

from __future__ import annotations

import os
from pathlib import Path

from statetrack.errors import SettingsError


def require_writable(file: Path, option: str) -> None:
    """Raise `SettingsError`, which names the option, for a file that could not be written."""
    if file.is_dir():
        raise SettingsError(f"{option} {file}: is a folder: name a file")
    if not file.parent.is_dir():
        raise SettingsError(f"{option} {file}: there is no folder {file.parent}: make it first")
    is_new = not os.path.lexists(file)
    try:
        with open(file, "ab", opener=_without_waiting):
            pass
        if is_new:
            file.unlink()
    except OSError as problem:
        raise SettingsError(
            f"{option} {file}: cannot be written: {problem.strerror}: name another file"
        ) from None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody reads is an error, and not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
