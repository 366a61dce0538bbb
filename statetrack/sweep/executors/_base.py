"""What every executor does: it runs points somewhere, and yields what became of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from statetrack.sweep.points import Point
from statetrack.sweep.results import PointResult

Stop = Callable[[], bool]
"""Says whether to stop; a point asks it before it begins, and after every step and every row."""


@dataclass(frozen=True)
class Failed:
    """A point that could not be trained or measured: the error in one line, and its traceback.

    It has plain values only, since it comes from a worker process, and the point's folder keeps it.
    """

    row: str
    column: str
    run: str
    error: str
    traceback: str = ""

    def to_json(self) -> dict[str, Any]:
        """The failure as plain values."""
        return dict(vars(self))


Done = PointResult | Failed
"""What became of a point."""

Work = Callable[[Point, Stop], Done | None]
"""Runs a point, which may be in another process: it can be pickled, and raises nothing.

None where `stop` returned True first; the point's run then has a checkpoint.
"""


class Executor(ABC):
    """Runs points: in this machine's processes, on a Ray cluster, under SLURM.

    A point may be run again where its worker died: `Work` goes on from what is in its folder. All
    workers see the same folders.
    """

    @abstractmethod
    def map(self, work: Work, points: Sequence[Point], stop: Stop) -> Iterator[Done]:
        """What became of each point, in the order in which they end.

        Once `stop` returns True, no further point begins, those that run are told to stop, and the
        iterator ends when they have. No worker outlives it.
        """
