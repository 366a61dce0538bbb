"""Work and points for executors that need no torch, so that a worker begins at once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from statetrack.sweep import Failed


@dataclass(frozen=True)
class ScriptedPoint:
    """A point that has a row, a column and a path, and no experiment."""

    row: str
    path: Path
    column: str = "column"

    @property
    def name(self) -> str:
        return self.row


@dataclass(frozen=True)
class Scripted:
    """Does what the name of a point's row says, and writes down that it was called.

    The result of a point that ends is a `Failed` whose error is `ended`.
    """

    folder: Path

    def __call__(self, point: ScriptedPoint, stop: Callable[[], bool]) -> Failed | None:
        with (self.folder / "calls.txt").open("a") as file:
            file.write(f"{point.row}\n")
        calls = self.calls(point.row)
        if point.row.startswith("dies always") or (
            point.row.startswith("dies once") and calls == 1
        ):
            os._exit(9)
        if point.row.startswith("says"):
            said = f"{os.getppid()} {'torch' in sys.modules} {os.environ.get('OMP_NUM_THREADS')}"
            return Failed(point.row, point.column, str(point.path), said)
        if point.row.startswith("raises"):
            raise LookupError("no such thing")
        if point.row.startswith("waits") and calls == 1:
            while not stop():
                time.sleep(0.02)
            (self.folder / f"{point.row}.checkpoint").touch()
            return None
        if point.row.startswith("sleeps"):
            time.sleep(3)
        with (self.folder / "ended.txt").open("a") as file:
            file.write(f"{point.row}\n")
        return Failed(point.row, point.column, str(point.path), "ended")

    def calls(self, row: str) -> int:
        """How often a point was begun."""
        return (self.folder / "calls.txt").read_text().splitlines().count(row)

    def failed(self, point: ScriptedPoint, error: BaseException) -> Failed:
        return Failed(point.row, point.column, str(point.path), f"{type(error).__name__}: {error}")

    def lost(self, point: ScriptedPoint, why: str) -> Failed:
        return Failed(point.row, point.column, str(point.path), why)


def points_named(folder: Path, *rows: str) -> list[ScriptedPoint]:
    """A point for each row."""
    return [ScriptedPoint(row, folder / "runs" / "column" / row.replace(" ", "-")) for row in rows]
