"""Where the points of a sweep are run: each executor is one file, found by its name.

The file `local.py` registers the executor `local`; torch is not imported here, so that the options
of an executor can be shown without it, and what one needs besides, such as ray, is imported when it
runs points.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from statetrack.registry import Registry, modules_in
from statetrack.settings import Settings

P = TypeVar("P", bound="PointLike")
P_contra = TypeVar("P_contra", bound="PointLike", contravariant=True)
D = TypeVar("D")
D_co = TypeVar("D_co", covariant=True)

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


class PointLike(Protocol):
    """What an executor knows of a point: its name, and the place of its run."""

    @property
    def name(self) -> str:
        """Its name, as messages have it."""

    @property
    def path(self) -> Path:
        """The folder of its run."""


class PointWork(Protocol[P_contra, D_co]):
    """The function that an executor maps over points, and its failures; it can be pickled."""

    def __call__(self, point: P_contra, stop: Stop) -> D_co | None:
        """What became of the point; None where `stop` returned True first."""

    def failed(self, point: P_contra, error: BaseException) -> D_co:
        """The failure of a point by an error."""

    def lost(self, point: P_contra, why: str) -> D_co:
        """The failure of a point whose workers died."""


class Executor(Settings, ABC):
    """Runs points: in this machine's processes, on a Ray cluster, under SLURM.

    Its fields are its options on the command line. A point may be run again where its worker died:
    the work goes on from what is in its folder. All workers see the same folders.
    """

    @property
    def num_at_once(self) -> int:
        """How many points run at the same time, as far as that is known before they do."""
        return 1

    def prepare(self) -> None:
        """Begin what takes seconds before the first point runs, beside what the caller does."""

    @abstractmethod
    def map(self, work: PointWork[P, D], points: Sequence[P], stop: Stop) -> Iterator[D]:
        """What became of each point, in the order in which they end.

        Once `stop` returns True, no further point begins, those that run are told to stop, and the
        iterator ends when they have. No worker outlives it. A point whose worker died twice has
        failed: see `PointWork.lost`.
        """


EXECUTORS: Registry[type[Executor]] = Registry(
    "executor",
    find=lambda: modules_in("statetrack.sweep.executors"),
    listing="statetrack sweep --help",
)
"""Every executor by its name."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of groups of processes, such as those of a container."""


def available_cores() -> int:
    """The cores that this process may run on, or fewer where a quota gives it less time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, math.ceil(min(cores or 1, _quota(CONTROL_GROUPS))))


def _quota(groups: Path) -> float:
    """The processor time per time that the control group has; infinite without a limit."""
    for files in (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]):
        try:
            limit, period = " ".join((groups / file).read_text() for file in files).split()
            if float(limit) > 0:
                return float(limit) / float(period)
        except (OSError, ValueError, ZeroDivisionError):  # no such file, or `max`: no limit
            continue
    return math.inf
