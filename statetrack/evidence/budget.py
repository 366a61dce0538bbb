"""The budget of a search: work, counted at a fixed speed, so that no clock decides what is found.

A search that looked at a clock would find less on a busy machine. So its budget is a number of
*seconds of work*: reading words costs what `reading` says, from the number of symbols and the sizes
of the model alone, and other work what its constants say. On one idle core of 2026 a second of work
takes between a third of a second and three. The clock ends a search only where a model is so much
slower that `LIMIT` times as many seconds of CPU time have gone by; what was found then says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from numbers import Real

from statetrack.errors import SettingsError
from statetrack.settings import require_seed, shown

LIMIT = 6.0
"""The CPU time that a budget may take at most, in seconds for each second of work."""

CALL, STEP = 5e-4, 2e-5
"""Seconds of work for each call of a model, and for each symbol of the longest word in it."""

SYMBOL, WEIGHT, NUMBER = 1e-6, 6e-11, 5e-9
"""Seconds for each symbol, for each weight of the model, and for each number of its state."""

MULTIPLICATION = 1e-9
"""Seconds for a multiplication of numbers outside of the model, in products of matrices."""

ROUND, OF_POINTS = 2e-5, 2e-10
"""Seconds for a round in which all matrices are applied to all points, and for a multiplication."""

EXACT_STEP = 1e-4
"""Seconds for a step whose sums are looked at bit by bit."""

BOX = 15e-6
"""Seconds for the image of a box of states."""


def reading(words: int, length: int, weights: int, numbers: int) -> float:
    """The seconds of work of reading words, by the weights of a model and numbers of its state."""
    one = SYMBOL + WEIGHT * weights + NUMBER * numbers
    return CALL + STEP * length + one * words * length


class _Meter:
    """What the parts of one budget share: work that was done, and the end of the CPU time."""

    def __init__(self, limit: float, stop: Callable[[], bool] | None) -> None:
        self.work = 0.0
        self.symbols = 0
        self.limited = False
        self._stop = stop
        self._end = time.thread_time() + limit

    @property
    def ended(self) -> bool:
        """Whether the search is to end whatever work is left."""
        if time.thread_time() >= self._end:
            self.limited = True
        return self.limited or (self._stop is not None and self._stop())


class SearchBudget:
    """So many seconds of work, and a function that is told what is being done.

    A search looks at `spent` between two pieces of work, none of which takes long, and returns
    what it has found so far; its result says that the search is not complete. What is read counts
    after `Reader.counts_for`, other work by `use`. Where there is a function `stop`, nothing is
    left once it returns True, and nothing once `LIMIT` times as many seconds of CPU time have gone
    by (`limited`).
    """

    def __init__(
        self,
        seconds: float,
        report: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
        *,
        meter: _Meter | None = None,
        always: bool = False,
    ) -> None:
        self.seconds = seconds
        self._report = report
        self._meter = _Meter(LIMIT * seconds, stop) if meter is None else meter
        self._end = self._meter.work + seconds
        self._always = always
        self.told: Callable[[str], None] | None = None

    @classmethod
    def asked(
        cls,
        where: str,
        seconds: float,
        seed: int = 0,
        report: Callable[[str], None] | None = None,
    ) -> SearchBudget:
        """The budget that a function was given, together with the seed of its search.

        Raises `SettingsError`, which begins with `where`, for what is no time or no seed.
        """
        number = isinstance(seconds, Real) and not isinstance(seconds, bool)
        if not number or not 0 < seconds < math.inf:
            raise SettingsError(f"{where}: seconds {shown(seconds)}: give a number above 0")
        require_seed(seed, where)
        return cls(float(seconds), report)

    @property
    def work(self) -> float:
        """The seconds of work that were done in this budget and those that it is a part of."""
        return self._meter.work

    @property
    def symbols(self) -> int:
        """The symbols that were read, likewise."""
        return self._meter.symbols

    @property
    def limited(self) -> bool:
        """Whether CPU time has ended it, so that a faster machine may find more."""
        return self._meter.limited

    @property
    def left(self) -> float:
        """The seconds of work that are left, at least 0."""
        ended = self._meter.ended and not self._always
        return 0.0 if ended else max(0.0, self._end - self._meter.work)

    @property
    def spent(self) -> bool:
        """Whether no work is left."""
        return self.left == 0.0

    def use(self, seconds: float, symbols: int = 0) -> None:
        """Count work that is done, and the symbols that were read by it."""
        self._meter.work += seconds
        self._meter.symbols += symbols

    def say(self, what: str) -> None:
        """Report what is being done, in a few words."""
        if self._report is not None:
            self._report(what)

    def tell(self, what: str) -> None:
        """Print what was found, where that is done as it comes."""
        if self.told is not None:
            self.told(what)

    def part(self, share: float) -> SearchBudget:
        """A budget of a share of the work that is left, with the same reports."""
        return SearchBudget(self.left * share, self._report, meter=self._meter)

    def at_least(self, seconds: float) -> SearchBudget:
        """A budget of what is left, or of so many seconds where less is, whatever has ended it."""
        left = max(self.left, seconds)
        return SearchBudget(left, self._report, meter=self._meter, always=True)
