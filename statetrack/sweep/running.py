"""Running a suite: every cell trained and evaluated, several at a time.

Each cell has a run folder that is kept, so an interrupted suite continues from there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import filelock
import torch

from statetrack.errors import RunError, setting
from statetrack.sweep.measuring import Stop, kept_result, run_point
from statetrack.sweep.points import Point
from statetrack.sweep.results import PointResult
from statetrack.sweep.searching import NO_SEARCH, Searching
from statetrack.sweep.suite import Suite

POLL = 0.2
"""Seconds between two questions whether to stop."""

GRACE = 20.0
"""Seconds in which a worker can finish its step and write a checkpoint, before it is killed."""


def run_suite(
    suite: Suite,
    cells: Sequence[Point],
    jobs: int,
    stop: Stop = lambda: False,
    searching: Searching = NO_SEARCH,
) -> Iterator[PointResult]:
    """Train and evaluate every cell, `jobs` at a time with one thread each; yield each result.

    Finished cells come first and are not run again; those that were measured otherwise than the
    suite says are evaluated again, and those that lack only evidence are searched for it. Once
    `stop`, which is called all the time, returns True, the cells in training write a checkpoint,
    and the iterator ends before all results are yielded.

    Raises `StatetrackError` where a cell cannot be trained or evaluated, `RunError` where its
    folder holds another run, where another process runs a suite in the same folder, and where a
    worker process was killed. No process is left behind, even where this one is killed.
    """
    found = [(cell, kept_result(suite, cell)) for cell in cells]
    kept_results = [kept for _, kept in found if kept is not None and not searching.missing(kept)]
    waiting = [cell for cell, kept in found if kept is None or searching.missing(kept)]
    if not waiting:
        yield from kept_results
        return
    with _alone_in(waiting[0].path.parents[1]):
        yield from kept_results
        if jobs == 1:
            yield from _one_by_one(suite, waiting, stop, searching)
        else:
            yield from _in_parallel(suite, waiting, min(jobs, len(waiting)), stop, searching)


def _one_by_one(
    suite: Suite, waiting: Sequence[Point], stop: Stop, searching: Searching
) -> Iterator[PointResult]:
    for cell in waiting:
        result = run_point(suite, cell, stop, searching)
        if result is None:
            return
        yield result


def _in_parallel(
    suite: Suite, waiting: Sequence[Point], jobs: int, stop: Stop, searching: Searching
) -> Iterator[PointResult]:
    context = multiprocessing.get_context("spawn")
    stopping = context.RawValue("b", 0)
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(stopping,))
    try:
        with _deaf_to_the_terminal():
            pending = {pool.submit(_work, suite, cell, searching) for cell in waiting}
        while pending and not stop():
            done, pending = wait(pending, POLL, FIRST_COMPLETED)
            for future in done:
                result = future.result()
                if result is None:
                    return
                yield result
    except BrokenProcessPool:
        if stop():  # the signal was for the whole group of processes
            return
        raise RunError(
            "a worker process was killed (the system may have run out of memory); finished cells "
            "are kept: run the command again"
        ) from None
    finally:
        stopping.value = 1
        pool.shutdown(wait=False, cancel_futures=True)
        _end({*multiprocessing.active_children()} - others)


def _end(workers: set[BaseProcess]) -> None:
    """Wait for workers that were asked to stop, and kill those that take too long."""
    deadline = time.monotonic() + GRACE
    try:
        while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline:
            time.sleep(POLL / 10)
    finally:
        for worker in workers:
            worker.kill()


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """A lock on the folder of a suite, where a second process would train the same cells.

    Raises `RunError` where another process has it, and where the folder cannot be written.
    """
    lock = filelock.FileLock(folder / ".suite.lock", thread_local=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise RunError(
            f"{folder}: another process runs a suite in this folder: wait for its end, or choose "
            f"another {setting('out')}"
        ) from None
    except OSError as problem:
        raise RunError(
            f"{folder}: cannot be written: {problem.strerror or problem}: choose another "
            f"{setting('out')}"
        ) from None
    except NotImplementedError:
        pass  # a file system without locks: the runs say so themselves
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _deaf_to_the_terminal() -> Iterator[None]:
    """Signals of the terminal are held back here, and never reach the processes begun meanwhile.

    Ctrl-C goes to all processes of a terminal; it is this one that tells the workers to stop.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in a worker process ---

_stopping: Any = None
"""Shared with the process that began this worker: 1 once the worker is to stop."""


def _begin(stopping: Any) -> None:
    global _stopping
    _stopping = stopping
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(suite: Suite, cell: Point, searching: Searching) -> PointResult | None:
    return run_point(suite, cell, lambda: bool(_stopping.value), searching)
