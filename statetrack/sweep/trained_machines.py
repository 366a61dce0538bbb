"""Models trained on machines: the suite of points, and what was predicted beside what was measured.

Every model is trained on every machine, on uniform words and, where the machine has a group, on
words that stay inside its largest. Each run is tested on both kinds, at a short and a long length.
torch is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from statetrack.errors import TaskError
from statetrack.runs import EvaluationRow, Judged, Measured, RunFacts, judged
from statetrack.spec import load_task
from statetrack.sweep.machines import AnswerRow, MachineFile, MachineRow
from statetrack.sweep.results import PointResult
from statetrack.sweep.suite import Budget, Suite
from statetrack.sweep.survey import Models

UNIFORM: Final = "uniform"
GROUP: Final = "group"
KINDS = (UNIFORM, GROUP)
"""The kinds of words: of training and of testing."""

SETTINGS: dict[str, Any] = {
    "train_length": "2-20",
    "steps": 800,
    "batch_size": 32,
    "lrs": [0.01],
    "seeds": 2,
}
"""How points are trained within minutes."""

SAMPLES = 500
"""The test words within minutes."""

HOURS = Budget(
    says="2,000 steps, batches of 64, two learning rates and three seeds",
    settings={"steps": 2000, "batch_size": 64, "lrs": [0.01, 0.003], "seeds": 3},
    samples=2000,
)
"""What the budget `hours` changes."""


def training_suite(
    title: str,
    files: Sequence[MachineFile],
    models: Models,
    lengths: tuple[int, int] = (20, 500),
) -> Suite:
    """The suite of all models on all machines, by each kind of words that a machine has.

    Raises `TaskError` for a file that cannot be read.
    """
    tasks: dict[str, Any] = {}
    for file in files:
        for words in kinds_of(file):
            tasks[column_of(file.name, words)] = {"task": str(file.path), "words": words}
    rows: dict[str, str | dict[str, Any]] = {
        text: {"model": text.split()[0], **own} for text, own in models.items()
    }
    return Suite(
        title=title,
        settings=SETTINGS,
        models=rows,
        tasks=tasks,
        length=max(lengths),
        curve_lengths=tuple(sorted({*lengths} - {max(lengths)})),
        samples=SAMPLES,
        test_words=KINDS,
        budgets={"hours": HOURS},
    )


def column_of(machine: str, words: str) -> str:
    """The column of a machine in the suite."""
    return f"{machine}, {words} words"


def kinds_of(file: MachineFile) -> tuple[str, ...]:
    """The kinds of words of a machine: without a group that labels show, only uniform ones."""
    task = load_task(str(file.path))
    try:
        task.with_words(GROUP)
    except TaskError:
        return (UNIFORM,)
    return KINDS


@dataclass(frozen=True, kw_only=True)
class TrainedRow:
    """One run, and what was predicted: `scores` of the selected replica by kind and length.

    `measured` is what the replica does that is best on words longer than those of training, of a
    run that was trained on words inside a group on such words only; None where there are none.
    `best` are the scores of the replica that is best on words inside a group (else on uniform ones)
    at the longest length. They are empty where all replicas diverged.
    """

    machine: str
    family: str
    model: str
    trained_on: str
    predicted: AnswerRow | None
    seeds: int
    seconds: float
    scores: tuple[EvaluationRow, ...]
    best: EvaluationRow | None
    measured: Measured | None

    def at(self, words: str, length: int) -> EvaluationRow | None:
        """The score on one kind of words at a length; None where there is none."""
        found = (row for row in self.scores if (row.words, row.length) == (words, length))
        return next(found, None)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths tested, in rising order."""
        return tuple(sorted({row.length for row in self.scores}))

    @property
    def tracks(self) -> bool:
        """Whether some replica is right at every position of all these words."""
        return self.measured is not None and self.measured.verdict == "tracks"

    @property
    def outcome(self) -> Judged:
        """What the measurement says of the prediction."""
        if not self.scores:
            return "diverged"
        if self.measured is None:
            return "not evaluated"
        can = None if self.predicted is None else self.predicted.can
        answer = None if self.predicted is None else self.predicted.as_set
        return judged(can, answer, tracks=self.tracks, tests=self.measured.tests)

    @property
    def at_some_size(self) -> bool:
        """Whether the class of models can, and it is not known whether this size is enough."""
        predicted = self.predicted
        return predicted is not None and (predicted.can, predicted.as_set) == ("yes", "unknown")

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return {
            "machine": self.machine,
            "family": self.family,
            "model": self.model,
            "trained_on": self.trained_on,
            "predicted": self.predicted and asdict(self.predicted),
            "outcome": self.outcome,
            "seeds": self.seeds,
            "seconds": self.seconds,
            "rows": [row.to_json() for row in self.scores],
            "best": self.best and self.best.to_json(),
        }


def trained_rows(
    machines: Sequence[MachineRow], results: Sequence[PointResult]
) -> list[TrainedRow]:
    """A row for each run, in the order of the machines and of the models."""
    by_place: Mapping[tuple[str, str], PointResult] = {
        (result.column, result.row): result for result in results
    }
    rows = []
    for machine in machines:
        for model, predicted in machine.answers.items():
            for words in KINDS:
                result = by_place.get((column_of(machine.name, words), model))
                if result is not None:
                    rows.append(_trained(machine, model, words, predicted, result))
    return rows


def _trained(
    machine: MachineRow, model: str, words: str, predicted: AnswerRow, result: PointResult
) -> TrainedRow:
    every = [*result.every_row, *result.others]
    kind = GROUP if any(row.words == GROUP for row in every) else UNIFORM
    longest = max((row.length for row in every), default=0)
    hardest = [row for row in every if (row.words, row.length) == (kind, longest)]
    scores = [row for row in every if row.selected]
    run = RunFacts.read(Path(result.run))
    measured = run.measured(run.brackets()).values()
    return TrainedRow(
        machine=machine.name,
        family=machine.family,
        model=model,
        trained_on=words,
        predicted=predicted,
        seeds=result.replicas,
        seconds=result.seconds,
        scores=tuple(sorted(scores, key=lambda row: (KINDS.index(row.words), row.length))),
        best=max(hardest, key=lambda row: row.accuracy, default=None),
        measured=max(measured, key=lambda one: (one.verdict == "tracks", one.tests), default=None),
    )
