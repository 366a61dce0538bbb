"""Locks of a run folder: one process trains it at a time, and rows are appended one by one.

They are locks of the operating system on the files below, so the end of a process releases
them, however it ends; that such a file exists means nothing. They may be deleted or copied while no
process uses the run.

Where the file system has no such locks (some network file systems), `filelock` takes the existence
of the file as the lock and warns, and there a killed process may leave a file that has to be
deleted by hand; or, where it cannot do that either, a `StatetrackWarning` says so and there is no
lock.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from statetrack.errors import RunError, StatetrackWarning, setting
from statetrack.runs.disk import cannot_be_written, is_file, reason_of

if TYPE_CHECKING:
    from filelock import BaseFileLock

TRAINING = ".training.lock"
APPENDING = ".append.lock"
POINT = ".point.lock"

WAIT_FOR_POINT = 30.0
"""Seconds for which a point of a sweep waits for a process that was told to leave it."""

LONGEST_WAIT = 60.0
"""Seconds for which an append waits for those of other processes."""

_POLL = 0.005
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}
_HOLDER = re.compile(r"process \d+ on [\w.-]+")


@contextmanager
def training(folder: Path) -> Iterator[None]:
    """The right to train a run, which one process at a time has.

    Raises `RunError` at once where another process, or another `Run` of this one, has it.
    """
    path = folder / TRAINING
    with held(
        path,
        busy=lambda: RunError(
            f"{folder}: another process is training this run{_holder(path)}: wait for its end"
        ),
        failed=lambda problem: RunError(f"{folder}: cannot be locked: {reason_of(problem)}"),
    ):
        yield


def point(folder: Path) -> AbstractContextManager[None]:
    """The right to train and measure a point of a sweep, which one process at a time has.

    Raises `RunError` where another process has it for another half a minute.
    """
    path = folder / POINT
    return held(
        path,
        wait=WAIT_FOR_POINT,
        busy=lambda: RunError(
            f"{folder}: another process runs this point{_holder(path)}: wait for its end"
        ),
        failed=lambda problem: RunError(f"{folder}: cannot be locked: {reason_of(problem)}"),
    )


@contextmanager
def output_folder(folder: Path, lock: str, does: str) -> Iterator[None]:
    """The right to work in a folder, which one process at a time has; it is made where needed.

    `lock` is the name of a file in it, and `does` what another process may be doing there.
    Raises `RunError` at once where another process has it, and where the folder cannot be written.
    """

    def failed(problem: Exception) -> RunError:
        return RunError(f"{cannot_be_written(folder, problem)}: choose another {setting('out')}")

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise failed(problem) from None
    with held(
        folder / lock,
        busy=lambda: RunError(
            f"{folder}: another process {does} in this folder: wait for its end, or choose "
            f"another {setting('out')}"
        ),
        failed=failed,
    ):
        yield


@contextmanager
def appending(file: Path) -> Iterator[None]:
    """The right to append to a file of a run; waits for others that are appending.

    Raises `RunError` after a minute.
    """
    with held(
        file.parent / APPENDING,
        wait=LONGEST_WAIT,
        busy=lambda: RunError(
            f"{file}: cannot be written: another process has been writing to it for "
            f"{LONGEST_WAIT:g} s"
        ),
        failed=lambda problem: cannot_be_written(file, problem),
    ):
        yield


@contextmanager
def held(
    path: Path,
    *,
    wait: float = 0,
    busy: Callable[[], RunError],
    failed: Callable[[Exception], RunError],
) -> Iterator[None]:
    """The lock on a file, which names its holder; `wait` is in seconds.

    Raises what `busy` makes where another process has it, and what `failed` makes where there can
    be none.
    """
    lock = _acquire(path, wait=wait, busy=busy, failed=failed)
    try:
        if lock is not None:
            _name_holder(lock, path)
        yield
    finally:
        if lock is not None:
            lock.release()


def remove_training_lock(folder: Path) -> None:
    """Delete the file of the training lock, once the run has finished, by who holds the lock.

    Who acquires it later, on a deleted file or a new one, finds that the run has finished.
    """
    with suppress(OSError):
        (folder / TRAINING).unlink(missing_ok=True)


def time_of_point(folder: Path) -> float:
    """When the lock of a point was last acquired; 0 where there is none."""
    try:
        return (folder / POINT).stat().st_mtime
    except OSError:
        return 0.0


def remove_point_lock(folder: Path) -> None:
    """The same for the lock of a point, once its result is complete."""
    with suppress(OSError):
        (folder / POINT).unlink(missing_ok=True)


def _acquire(
    path: Path,
    *,
    wait: float,
    busy: Callable[[], RunError],
    failed: Callable[[Exception], RunError],
) -> BaseFileLock | None:
    """The lock, held; None where the file system has none."""
    import filelock  # takes a while, and only those who write need it

    if path.is_symlink():  # the file that it names is not ours to open for writing
        raise failed(OSError(errno.ELOOP, f"{path.name} is a symbolic link"))
    # a generator may be closed by another thread than the one that began it
    lock = filelock.FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=wait, poll_interval=_POLL)
    except filelock.Timeout:
        raise busy() from None
    except (OSError, NotImplementedError) as problem:
        if isinstance(problem, OSError) and problem.errno not in _NO_LOCKS:
            raise failed(problem) from None
        warnings.warn(
            StatetrackWarning(
                "this file system has no locks, so nothing keeps two processes from writing to "
                "this run at once",
                path.parent,
            ),
            stacklevel=3,
        )
        return None
    return lock


def _name_holder(lock: BaseFileLock, path: Path) -> None:
    """Write which process holds the lock, where that file belongs to an OS lock.

    It is for the error of others only.
    """
    import filelock

    # a file whose existence is the lock holds what filelock keeps there
    if not isinstance(lock, filelock.SoftFileLock) and is_file(path):
        with suppress(OSError):
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")


def _holder(path: Path) -> str:
    """` (process 71 on host)`, or nothing where that is not known."""
    if is_file(path):
        with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as file:
            if found := _HOLDER.fullmatch(file.read(300).strip()):
                return f" ({found[0]})"
    return ""
