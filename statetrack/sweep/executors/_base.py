"""What every executor does: it runs points somewhere, and yields what became of each.

torch is not imported here, so that the options of an executor can be shown without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from statetrack.settings import Settings

if TYPE_CHECKING:
    from statetrack.sweep.points import Point
    from statetrack.sweep.results import PointResult
    from statetrack.sweep.work import Work

Stop = Callable[[], bool]
"""Says whether to stop; a point asks it before it begins, and after every step and every row."""


@dataclass(frozen=True)
class Failed:
    """A point that could not be trained or measured: the error in one line, and its traceback.

    It has plain values only, since it comes from a worker process. `file` is the file that keeps
    it, empty where none could be written. Where the disk is `full`, other points fail likewise.
    """

    row: str
    column: str
    run: str
    error: str
    traceback: str = ""
    file: str = ""
    full: bool = False

    def to_json(self) -> dict[str, Any]:
        """What is kept of the failure, as plain values."""
        return {name: getattr(self, name) for name in ("row", "column", "error", "traceback")}


Done: TypeAlias = "PointResult | Failed"
"""What became of a point."""


class Executor(Settings, ABC):
    """Runs points: in this machine's processes, on a Ray cluster, under SLURM.

    Its fields are its options on the command line. A point may be run again where its worker died:
    `Work` goes on from what is in its folder. All workers see the same folders.
    """

    @property
    def num_at_once(self) -> int:
        """How many points run at the same time, as far as that is known before they do."""
        return 1

    @abstractmethod
    def map(self, work: Work, points: Sequence[Point], stop: Stop) -> Iterator[Done]:
        """What became of each point, in the order in which they end.

        Once `stop` returns True, no further point begins, those that run are told to stop, and the
        iterator ends when they have. No worker outlives it. A point whose worker died twice has
        failed: see `Work.lost`.
        """
