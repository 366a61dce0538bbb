"""A run as its files have it, without torch: for what is only read, as comparisons are."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from statetrack.errors import RunError, setting
from statetrack.evidence import Evidence
from statetrack.runs.config import Experiment
from statetrack.runs.folder import RunFolder
from statetrack.runs.plugins import load_plugins
from statetrack.runs.rows import EvaluationRow, EvidenceRow, Outcome, Summary, latest_evidence
from statetrack.spec import Task, load_task
from statetrack.training import Record, TaskWords

if TYPE_CHECKING:
    from statetrack.runs.unfinished import Unfinished


class RecordedRun:
    """The settings, the task, the outcome, the scores and the evidence of a run.

    No model can be built of what `read` returns: `Run.open` reads a run for that.
    """

    def __init__(self, experiment: Experiment, task: Task, folder: RunFolder) -> None:
        self.experiment = experiment
        self.task = task
        self.folder = folder
        self.unfinished: Unfinished | None = None

    @classmethod
    def read(cls, path: Path | str) -> RecordedRun:
        """The run of an existing folder, with its own copy of the task.

        Raises `RunError` where the folder is not a run, and where the names that it needs are
        registered by its own plugin alone.
        """
        folder = RunFolder.open(Path(path))
        load_plugins(folder, trust=False)
        where = str(folder.config_file)
        experiment = Experiment.from_values(folder.config(), where, to_build=False)
        return RecordedRun(experiment, load_task(str(folder.task_file)), folder)

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.folder.path

    @property
    def finished(self) -> bool:
        """Whether training has finished."""
        return self.folder.finished

    @cached_property
    def words(self) -> TaskWords:
        """The words that the run is trained and validated on."""
        copy = self.folder.frequencies_file
        return TaskWords(self.task, self.experiment.data, self.experiment.training, copy)

    @property
    def records(self) -> list[Record]:
        """The records of training so far."""
        records, num_replicas = self.folder.records(), len(self.experiment.replicas)
        for number, record in enumerate(records, start=1):
            if record.replica >= num_replicas:
                raise RunError(
                    f"{self.path}: line {number} of metrics.jsonl does not belong to config.yaml: "
                    f"there is no replica {record.replica}"
                )
        return records

    @property
    def summary(self) -> Summary:
        """The outcome of the run.

        Raises `RunError` where training has not finished, and where it is that of another run.
        """
        if self.unfinished is not None:
            return self.unfinished.summary
        summary, replicas = self.folder.summary(), self.experiment.replicas
        if len(summary.replicas) != len(replicas):
            wrong = f"it has {len(summary.replicas)} replicas and not {len(replicas)}"
        elif summary.steps > self.experiment.training.steps:
            wrong = f"it has {summary.steps} steps of {self.experiment.training.steps}"
        elif (stranger := next(filter(self._is_foreign, summary.replicas), None)) is not None:
            wrong = f"it has {_named(stranger)}"
        else:
            return summary
        raise RunError(f"{self.path}: summary.json does not belong to config.yaml: {wrong}")

    @property
    def selected(self) -> Outcome:
        """The outcome of the replica that validation selected.

        Raises `RunError` where training has not finished, and where all replicas diverged.
        """
        chosen = self.summary.chosen
        if chosen is None:
            raise RunError(
                f"{self.path}: the run diverged: no replica has a finite validation loss, so none "
                f"is selected; train it again with lower {setting('lrs')}, or with gradients "
                f"clipped ({setting('clip', 1.0)})"
            )
        return chosen

    @property
    def rows(self) -> list[EvaluationRow]:
        """The rows of all evaluations so far.

        Raises `RunError` where one is not of this run.
        """
        rows = self.folder.evaluations()
        for number, row in enumerate(rows, start=1):
            if self._is_foreign(row):
                raise RunError(
                    f"{self.path}: line {number} of eval.jsonl does not belong to config.yaml: "
                    f"it has {_named(row)}"
                )
        return rows

    def evidence(self, kind: type[Evidence] | None = None) -> list[EvidenceRow]:
        """The evidence about the run's weights: the last of each replica, task and kind.

        With `kind`, only of that kind. Raises `RunError` where a row is not of this run, or names
        symbols or labels that the task has not.
        """
        rows = self.folder.evidence()
        if (stranger := next(filter(self._is_foreign, rows), None)) is not None:
            raise RunError(
                f"{self.path}: evidence.jsonl does not belong to config.yaml: it has "
                f"{_named(stranger)}"
            )
        source = self.task.source
        for row in rows:
            for failure in row.evidence.failures:
                word = (*failure.prefix, *failure.period, *failure.suffix)
                labels = (failure.label, failure.answer or 0)
                if not {*word} <= {*range(source.num_symbols)} or not {*labels} <= {
                    *range(source.num_labels)
                }:
                    raise RunError(
                        f"{self.path}: evidence.jsonl does not belong to task.yaml: a word of it "
                        "has other symbols or labels"
                    )
        return [
            row for row in latest_evidence(rows) if kind is None or isinstance(row.evidence, kind)
        ]

    def _is_foreign(self, one: Outcome | EvaluationRow | EvidenceRow) -> bool:
        """Whether no replica of this run has that number, seed and learning rate."""
        replicas = self.experiment.replicas
        return not (
            0 <= one.replica < len(replicas)
            and (one.seed, one.lr) == (replicas[one.replica].seed, replicas[one.replica].lr)
        )

    def has_own_words(self, row: EvaluationRow) -> bool:
        """Whether a row was measured on words of the run's own task, drawn as in training."""
        task, words = (None, self.task.name), self.experiment.data.words
        return row.task in task and row.words == words


def _named(one: Outcome | EvaluationRow | EvidenceRow) -> str:
    return f"replica {one.replica} with seed {one.seed} and learning rate {one.lr:g}"
