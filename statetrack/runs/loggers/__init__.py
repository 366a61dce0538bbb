"""Where training is logged besides the run's own files: each is one file, found by its name.

The file `tensorboard.py` registers the log `tensorboard`. What a log needs, such as wandb, is
imported when it is opened. A log is no setting of a run: it changes nothing of what is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from statetrack.registry import Registry, import_extra, modules_in

if TYPE_CHECKING:
    from statetrack.runs.rows import EvaluationRow, Summary
    from statetrack.training import Replica


@dataclass(frozen=True)
class Logged:
    """The run that is logged: its folder, name, settings and replicas."""

    path: Path
    name: str
    settings: Mapping[str, Any]
    replicas: Sequence[Replica]


@dataclass(frozen=True)
class Scalars:
    """The numbers of one replica at one step; `validation_*` and `lr` where there are any."""

    step: int
    replica: int
    values: Mapping[str, float]


class Log(ABC):
    """One run in one place, written by the package `needs`, which the extra `extra` installs.

    The constructor raises `SettingsError` where what it needs is not installed. It is called with
    the log's folder, in which whatever an earlier session wrote has been removed unless `keeps`.
    A log that needs no package overrides `require`.
    """

    needs: ClassVar[str]
    extra: ClassVar[str]

    def __init__(self, run: Logged, folder: Path) -> None:
        self.run = run
        self.folder = folder

    @classmethod
    def require(cls) -> Any:
        """The package that the log needs; raises `SettingsError` where it is not installed."""
        return import_extra(cls.needs, cls.extra, f"the log '{cls.extra}'")

    @classmethod
    def keeps(cls) -> bool:
        """Whether earlier sessions are kept, since they are elsewhere and cannot be removed."""
        return False

    @abstractmethod
    def write(self, scalars: Sequence[Scalars]) -> None:
        """Write the numbers of some replicas, in the order of their steps."""

    @abstractmethod
    def end(self, summary: Summary) -> None:
        """Write the outcome of training."""

    @abstractmethod
    def test(self, rows: Sequence[EvaluationRow]) -> None:
        """Write an evaluation."""

    @abstractmethod
    def close(self) -> None:
        """Have everything written."""


def name_of(replica: Replica) -> str:
    """A replica as logs name it."""
    return f"replica-{replica.index}_seed-{replica.seed}_lr-{replica.lr:g}"


LOGS: Registry[type[Log]] = Registry(
    "log",
    find=lambda: modules_in("statetrack.runs.loggers"),
    listing="statetrack train --help",
)
"""Every kind of log by its name, which is also that of its folder in the run folder."""
