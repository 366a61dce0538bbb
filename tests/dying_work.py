"""Work for an executor, some points of which kill their process; it imports nothing heavy."""

from __future__ import annotations

import os
import signal
from pathlib import Path


class DyingWork:
    """The point `dies 2 times` kills the process that it is run in two times; others are done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, point: str, stop: object) -> str:
        deaths = int(point.split()[1]) if point.startswith("dies") else 0
        died = len(list(self.folder.glob(f"{point}*")))
        if died < deaths:
            (self.folder / f"{point} {died}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return point

    def lost(self, point: str, why: str) -> str:
        """What became of a point whose processes were killed."""
        return f"{point}: {why}"
