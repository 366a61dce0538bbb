"""The work on one point of a sweep, which an executor does in whatever process it has."""

from __future__ import annotations

import errno
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace

from statetrack.errors import RunError, StatetrackError
from statetrack.plugins import explain_mistake
from statetrack.runs import drop_error, write_error
from statetrack.sweep.executors._base import Done, Failed, Stop
from statetrack.sweep.measuring import run_point
from statetrack.sweep.points import Point
from statetrack.sweep.searching import NO_SEARCH, Searching
from statetrack.sweep.suite import Suite

FULL = {errno.ENOSPC, errno.EDQUOT}
"""The errors of a disk without space, or beyond a quota."""


@dataclass(frozen=True)
class Work:
    """Trains and measures any point of a suite; it can be pickled.

    A killed process loses what was trained in the last `checkpoint_seconds`. `log` is that of
    `Run.train`.
    """

    suite: Suite
    searching: Searching = NO_SEARCH
    checkpoint_seconds: float = 60.0
    log: tuple[str, ...] = ()

    def __call__(self, point: Point, stop: Stop) -> Done | None:
        """What became of the point; None where `stop` returned True first, after a checkpoint.

        Whatever goes wrong is not raised but a `Failed`, which is kept in the point's folder, or
        beside it where there is none, until the point succeeds.
        """
        try:
            result = run_point(
                self.suite, point, stop, self.searching, self.checkpoint_seconds, self.log
            )
        except (Exception, SystemExit) as error:
            return self.failed(point, error)
        if result is not None:
            drop_error(point.path)
        return result

    def failed(self, point: Point, error: BaseException) -> Failed:
        """The failure of a point by an error, kept in its folder."""
        told = str(error) if isinstance(error, StatetrackError) else explain_mistake(error)
        told = told or f"{type(error).__name__}: {error}"
        text = "".join(traceback.format_exception(error))
        return _kept(point, Failed(*_place(point), told, text, full=_is_of_a_full_disk(error)))

    def lost(self, point: Point, why: str) -> Failed:
        """The failure of a point whose workers died; there is no traceback."""
        return _kept(point, Failed(*_place(point), why))


def _place(point: Point) -> tuple[str, str, str]:
    return point.row, point.column, str(point.path)


def _kept(point: Point, failed: Failed) -> Failed:
    """The failure with its error on one line, and the file that keeps it, if it can be written."""
    failed = replace(failed, error=" ".join(failed.error.split()))
    with suppress(RunError):
        return replace(failed, file=str(write_error(point.path, failed.to_json())))
    return failed


def _is_of_a_full_disk(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, says that there is no space."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__ or error.__context__
    return False
