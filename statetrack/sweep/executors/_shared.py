"""What workers elsewhere share with the process that sends them points: the folder of the sweep.

    runs of the sweep/
        .workers/            exists while an executor runs, and after an end that was not clean
            here             a token by which a worker knows the folder, and the version
            stop             exists once the workers are to stop
            locks/           one a point: two workers never run the same point at once

A worker works in the same directory as that process, so relative paths mean the same files.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import statetrack
from statetrack.errors import RunError
from statetrack.runs import cannot_be_written, locking, write_file
from statetrack.sweep.executors import D, P, PointWork, Stop

WORKERS = ".workers"
"""The name of the folder; run folders are not looked for in it."""

LOOK_EVERY = 0.5
"""Seconds between two looks for the stop file."""


@dataclass(frozen=True)
class Shared:
    """The folder through which workers and the process that began them meet; it can be pickled."""

    directory: Path
    folder: Path
    token: str
    version: str = statetrack.__version__

    @classmethod
    def begin(cls, points: Sequence[P]) -> Shared:
        """The folder made ready for the workers of some points.

        Raises `RunError` where it cannot be written.
        """
        above = os.path.commonpath([point.path.absolute().parent for point in points])
        folder = Path(above) / WORKERS
        token = _token_in(folder) or secrets.token_hex(16)  # workers may be there already
        shared = cls(Path.cwd(), folder, token)
        try:
            shared.locks.mkdir(parents=True, exist_ok=True)
            shared.stop_file.unlink(missing_ok=True)
        except OSError as problem:
            raise RunError(f"{shared.folder}: cannot be written: {problem.strerror}") from None
        write_file(shared.folder / "here", shared.token.encode())
        return shared

    @property
    def stop_file(self) -> Path:
        """The file whose existence tells the workers to stop."""
        return self.folder / "stop"

    @property
    def locks(self) -> Path:
        """The folder of the points' locks."""
        return self.folder / "locks"

    def key(self, point: P) -> str:
        """A name for a point that can be a file's, and that no other point of the sweep has."""
        place = point.path.absolute().relative_to(self.folder.parent)
        return hashlib.sha256(place.as_posix().encode()).hexdigest()[:24]

    def ask_to_stop(self) -> None:
        """Tell all workers to write a checkpoint and to stop."""
        with suppress(OSError):
            self.stop_file.touch()

    def end(self) -> None:
        """Remove the folder, once there are no workers any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- in a worker ---

    def enter(self) -> None:
        """Work in the directory of the process that sent the points.

        Raises `RunError` where this machine does not show the folder of the sweep, and where
        another version of statetrack is installed on it.
        """
        host = socket.gethostname()
        try:
            os.chdir(self.directory)
            os.listdir(self.folder)  # a network file system looks anew
        except OSError:
            pass
        if _token_in(self.folder) != self.token:
            raise RunError(
                f"{self.folder.parent}: is not visible from the worker on {host}: put the runs "
                "into a folder that all machines share, and begin the sweep in such a directory"
            )
        if statetrack.__version__ != self.version:
            raise RunError(
                f"the worker on {host} has statetrack {statetrack.__version__}, and the sweep "
                f"was begun with {self.version}: install the same version on every machine"
            )

    def run(self, work: PointWork[P, D], point: P, stop: Stop) -> D | None:
        """Run a point while no other worker does; None where it was stopped.

        After the death of a machine, its worker may go on for a moment while another begins. What
        one has finished is not done again: the work finds it in the folder.
        """
        stopping = Watched(self.stop_file, stop)
        while not stopping():
            try:
                with locking.held(
                    self.locks / self.key(point),
                    wait=LOOK_EVERY,
                    busy=_BusyError,
                    failed=lambda problem: cannot_be_written(self.locks, problem),
                ):
                    return work(point, stopping)
            except _BusyError:
                continue
            except RunError as problem:
                return work.failed(point, problem)
        return None


class _BusyError(RunError):
    """Another worker runs the point."""


@dataclass
class Watched:
    """Says whether to stop: where `stop` says so, and once the stop file exists."""

    stop_file: Path
    stop: Stop
    looked: float = -1.0
    found: bool = False

    def __call__(self) -> bool:
        """Whether to stop; the file is looked for every now and then, since that takes time."""
        if self.found or self.stop():
            return True
        if (now := time.monotonic()) - self.looked >= LOOK_EVERY or self.looked < 0:
            self.looked = now
            self.found = os.path.lexists(self.stop_file)
        return self.found


@contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads of torch, where a worker has loaded it with the work."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _token_in(folder: Path) -> str:
    """The token of a folder; empty where there is none."""
    try:
        return (folder / "here").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
