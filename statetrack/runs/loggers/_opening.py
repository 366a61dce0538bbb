"""The logs of a run, opened together; one that fails is left behind with a warning."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from statetrack.errors import StatetrackError, StatetrackWarning
from statetrack.runs import files
from statetrack.runs.facts import RunFacts
from statetrack.runs.loggers import LOGS, Log, Logged, Scalars
from statetrack.training import Record

if TYPE_CHECKING:
    from statetrack.runs.rows import EvaluationRow, Summary


def require_logs(names: Iterable[str]) -> None:
    """Raise `StatetrackError` for an unknown log, and for one whose package is not installed."""
    for name in names:
        LOGS[name].require()


@contextmanager
def logging(run: RunFacts, names: Sequence[str]) -> Iterator[Logs]:
    """The logs of a run, which are closed at the end."""
    logs = Logs(run, names)
    try:
        yield logs
    finally:
        logs.close()


class Logs:
    """Some logs of a run.

    They hold what metrics.jsonl holds: a session that goes on writes that again from the first
    step, into a log that is begun anew, so no step is there twice and none is missing.
    """

    def __init__(self, run: RunFacts, names: Sequence[str]) -> None:
        self._run = run
        self._names = names
        self._logs: dict[str, Log] = {}
        self._begun = False

    def begin(self) -> None:
        """Begin the logs with the records so far; what earlier sessions wrote is replaced."""
        if self._begun or not self._names:
            return
        self._begun = True
        run = self._run
        about = Logged(run.path, run.path.name, run.experiment.values(), run.experiment.replicas)
        records = run.folder.read(files.METRICS)
        for name in self._names:
            kind, folder = LOGS[name], run.path / name
            if not kind.keeps():
                shutil.rmtree(folder, ignore_errors=True)
            try:
                self._logs[name] = kind(about, folder)
            except StatetrackError:
                raise
            except Exception as problem:
                _warn(name, problem)
                continue
            if not kind.keeps():
                self._each(lambda log: log.write(self._scalars(records)), only=name)

    def write(self, records: Sequence[Record]) -> None:
        """Write further records."""
        if records and self._logs:
            scalars = self._scalars(records)
            self._each(lambda log: log.write(scalars))

    def end(self, summary: Summary) -> None:
        """Write the outcome of training."""
        self._each(lambda log: log.end(summary))

    def test(self, rows: Sequence[EvaluationRow]) -> None:
        """Write an evaluation, of a run that has finished."""
        if rows and not self._begun:
            self.begin()
            self.end(self._run.summary)
        self._each(lambda log: log.test(rows))

    def close(self) -> None:
        """Have everything written."""
        self._each(lambda log: log.close())
        self._logs = {}

    def _each(self, write: Callable[[Log], None], only: str = "") -> None:
        """Tell every log, and leave one behind that fails: training goes on without it."""
        for name, log in list(self._logs.items()):
            if only in ("", name):
                try:
                    write(log)
                except Exception as problem:
                    del self._logs[name]
                    _warn(name, problem)

    def _scalars(self, records: Iterable[Record]) -> list[Scalars]:
        """What is logged of each record: its numbers that are finite, and the learning rate."""
        from statetrack.training import schedule_factor

        experiment = self._run.experiment
        found = []
        for record in records:
            rate = experiment.replicas[record.replica].lr
            values = {
                "loss": record.loss,
                "accuracy": record.accuracy,
                "validation_loss": record.validation_loss,
                "validation_accuracy": record.validation_accuracy,
                "lr": rate * schedule_factor(record.step - 1, experiment.training),
            }
            known = {
                name: value
                for name, value in values.items()
                if value is not None and math.isfinite(value)
            }
            found.append(Scalars(record.step, record.replica, known))
        return found


def _warn(name: str, problem: Exception) -> None:
    warnings.warn(
        f"the log '{name}' is given up ({type(problem).__name__}: {problem}); training goes on, "
        "and metrics.jsonl has everything",
        StatetrackWarning,
        stacklevel=4,
    )
