"""Points in processes of this machine, one thread each."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from statetrack.errors import StatetrackWarning, TaskWarning
from statetrack.settings import option
from statetrack.sweep.executors import (
    EXECUTORS,
    D,
    Executor,
    P,
    PointWork,
    Stop,
    available_cores,
)
from statetrack.sweep.forking import begin_server, forked_after

if TYPE_CHECKING:  # Windows has only one of them
    from multiprocessing.context import ForkServerContext, SpawnContext

READY = "statetrack.sweep.executors._ready"
"""The module that workers begin with."""

POLL = 0.2
"""Seconds between two questions whether to stop."""

GRACE = 20.0
"""Seconds in which a worker can finish its step and write a checkpoint, before it is killed."""

TRIES = 2
"""How often a point is run whose worker process is killed."""

KILLED = (
    "its process was killed twice (the system may have run out of memory); the same command tries "
    "it again"
)


@EXECUTORS.register("local")
class Local(Executor):
    """Processes of this machine: several points at a time, one thread each.

    With one job, points are run in this process.
    """

    jobs: int = option(
        0,
        "Points trained at once, one thread each; 0: one for each core that the process may use.",
        min=0,
    )

    @property
    def num_at_once(self) -> int:
        """The number of processes."""
        return self.jobs or available_cores()

    def prepare(self) -> None:
        """Begin the process that workers are forked from, whose imports take seconds."""
        if self.num_at_once > 1 and sys.platform == "linux":
            with _deaf_to_signals():
                begin_server(READY)

    def map(self, work: PointWork[P, D], points: Sequence[P], stop: Stop) -> Iterator[D]:
        """What became of each point. No process is left behind, even where this one is killed."""
        jobs = self.num_at_once
        if jobs == 1:
            return _one_by_one(work, points, stop)
        return _in_parallel(work, points, min(jobs, len(points)), stop)


def _one_by_one(work: PointWork[P, D], points: Sequence[P], stop: Stop) -> Iterator[D]:
    for point in points:
        done = work(point, stop)
        if done is None:
            return
        yield done


def _in_parallel(work: PointWork[P, D], points: Sequence[P], jobs: int, stop: Stop) -> Iterator[D]:
    """Every process is a pool of its own: one that is killed takes no other with it."""
    context = _context()
    stopping, told = context.RawValue("b", 0), context.Value("b", 0)
    others = set(multiprocessing.active_children())

    def new() -> ProcessPoolExecutor:
        given = stopping, told, gc.get_threshold()
        return ProcessPoolExecutor(1, context, initializer=_begin, initargs=given)

    waiting = deque((point, TRIES) for point in points)
    idle = [new() for _ in range(jobs)]
    running: dict[Future[Any], tuple[ProcessPoolExecutor, P, int]] = {}
    try:
        while (waiting or running) and not stop():
            with _deaf_to_signals():
                while waiting and idle:
                    (point, tries), pool = waiting.popleft(), idle.pop()
                    running[pool.submit(_work, work, point)] = pool, point, tries
            for future in wait(running, POLL, FIRST_COMPLETED).done:
                pool, point, tries = running.pop(future)
                try:
                    done, said = future.result()
                except BrokenProcessPool:
                    if stop():  # the signal was for the whole group of processes
                        return
                    pool.shutdown(wait=False)
                    idle.append(new())
                    if tries > 1:  # last, when fewer points may need the memory
                        waiting.append((point, tries - 1))
                    else:
                        yield work.lost(point, KILLED)
                    continue
                except Exception as problem:  # what cannot be sent from one process to another
                    done, said = work.failed(point, problem), []
                for each in said:  # here, where whoever sweeps hears it
                    warnings.warn(each, stacklevel=2)
                idle.append(pool)
                if done is None:
                    return
                yield done
    finally:
        stopping.value = 1
        for pool in (*idle, *(pool for pool, _, _ in running.values())):
            pool.shutdown(wait=False, cancel_futures=True)
        _end({*multiprocessing.active_children()} - others)


def _context() -> ForkServerContext | SpawnContext:
    """How workers begin: forked with all imports; macOS cannot fork a process with torch."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    return forked_after(READY)


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
def _deaf_to_signals() -> Iterator[None]:
    """Signals that ask to stop are held back, and never reach the processes begun meanwhile.

    Ctrl-C, and the end of a service or of a cluster's job, go to all processes of a group; it is
    this one that tells the workers to stop.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which, begun later, would let the signals through again
    held = {signal.SIGINT, signal.SIGHUP, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in a worker process ---

_stopping: Any = None
"""Shared with the process that began this worker: 1 once the worker is to stop."""


def _begin(stopping: Any, told: Any, collections: tuple[int, int, int]) -> None:
    global _stopping
    _stopping = stopping
    gc.set_threshold(*collections)  # as in the process that began this one
    logging.getLogger("statetrack").addFilter(SaidOnce(told))
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:  # imported with the program of whoever sweeps
        sys.modules["torch"].set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


class SaidOnce(logging.Filter):
    """Of what every process would say for itself, lets the first one pass.

    `told` is a number that the processes share: 1 once one of them said it.
    """

    def __init__(self, told: Any) -> None:
        super().__init__()
        self._told = told

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is to be said."""
        if not getattr(record, "once", False):
            return True
        with self._told.get_lock():
            before, self._told.value = self._told.value, 1
        return not before


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(work: PointWork[P, D], point: P) -> tuple[D | None, list[StatetrackWarning]]:
    """What became of a point, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StatetrackWarning)
        warnings.simplefilter("ignore", TaskWarning)  # the parent, which loads every task, says it
        done = work(point, lambda: bool(_stopping.value))
    said = (each.message for each in caught)
    return done, [
        each if isinstance(each, StatetrackWarning) else StatetrackWarning(str(each))
        for each in said
    ]
