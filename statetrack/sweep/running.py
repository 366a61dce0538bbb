"""Running a sweep: every point trained and measured by an executor.

Each point has a run folder that is kept, so an interrupted sweep continues from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statetrack.errors import StatetrackError
from statetrack.runs import RunFolder, locking, write_file
from statetrack.sweep.executors._base import Done, Executor, Failed, Stop
from statetrack.sweep.kept import AnotherRunError, kept_result
from statetrack.sweep.points import Point
from statetrack.sweep.results import PointResult
from statetrack.sweep.searching import NO_SEARCH, Searching
from statetrack.sweep.suite import SWEEP_FILE, Suite


def run_suite(
    suite: Suite,
    points: Sequence[Point],
    executor: Executor,
    stop: Stop = lambda: False,
    searching: Searching = NO_SEARCH,
    log: tuple[str, ...] = (),
) -> Iterator[Done]:
    """Train and measure every point; yield what became of each.

    The suite, as it is run, is kept in the folder of the points, which may be some of it.

    Finished points come first and are not run again; those that were measured otherwise than the
    suite says are evaluated again, and those that lack only evidence are searched for it. A point
    that fails is yielded as `Failed`, and the others go on; but where the disk is full, no further
    point begins. Once `stop`, which is called all the time, returns True, the points in training
    write a checkpoint, and the iterator ends before all are yielded. `log` is that of `Run.train`.

    Raises `RunError`, before any point begins, where a point's folder holds another run, where
    another process runs a sweep in the same folder, and where that folder cannot be written.
    """
    found = [(point, _kept(suite, point)) for point in points]
    kept_results = [kept for _, kept in found if kept is not None and not searching.missing(kept)]
    waiting = [point for point, kept in found if kept is None or searching.missing(kept)]
    if not waiting:
        yield from kept_results
        return
    from statetrack.sweep.work import Work  # torch

    full: list[Failed] = []
    folder = waiting[0].path.parents[1]
    with locking.output_folder(folder, ".suite.lock", "runs a suite"):
        write_file(folder / SWEEP_FILE, suite.document().encode())
        yield from kept_results
        for done in executor.map(
            Work(suite, searching, log=log), waiting, lambda: bool(full) or stop()
        ):
            if isinstance(done, Failed) and done.full:
                full.append(done)
            yield done


def _kept(suite: Suite, point: Point) -> PointResult | None:
    """The result of a finished point; None also for a damaged one, which fails when it is run."""
    try:
        result = kept_result(suite, point)
        if result is not None:  # a process may have been killed just before it did this
            RunFolder(point.path).drop_measurement()
        return result
    except AnotherRunError:
        raise
    except StatetrackError:
        return None
