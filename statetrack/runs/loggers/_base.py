"""What every log does: it is begun with the records so far, and then told of every further one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """One run in one place.

    The constructor raises `SettingsError` where what it needs is not installed. It is called with
    the log's folder, in which whatever an earlier session wrote has been removed unless `keeps`.
    """

    def __init__(self, run: Logged, folder: Path) -> None:
        self.run = run
        self.folder = folder

    @classmethod
    @abstractmethod
    def require(cls) -> None:
        """Raise `SettingsError` where what the log needs is not installed."""

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
