"""The time that a search may take, and where it says what it is doing."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """A number of seconds from now on, and a function that is told what is being done.

    A search looks at `spent` between two pieces of work, none of which takes long, and returns
    what it has found so far; its result says that the search is not complete. Where there is a
    function `stop`, no time is left once it returns True.
    """

    def __init__(
        self,
        seconds: float,
        report: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.seconds = seconds
        self._report = report
        self._stop = stop
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, at least 0."""
        if self._stop is not None and self._stop():
            return 0.0
        return max(0.0, self._end - time.monotonic())

    @property
    def spent(self) -> bool:
        """Whether no time is left."""
        return self.left == 0.0

    def say(self, what: str) -> None:
        """Report what is being done, in a few words."""
        if self._report is not None:
            self._report(what)

    def part(self, share: float) -> Budget:
        """A budget of a share of the seconds that are left, with the same reports."""
        return Budget(self.left * share, self._report, self._stop)
