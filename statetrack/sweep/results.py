"""The result of a suite's cell, which the table shows; torch is not imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statetrack.errors import RunError
from statetrack.evidence import Bracket, Evidence
from statetrack.runs import EvaluationRow, evidence_to_json, read_evidence, read_row
from statetrack.spec import Task, golden_hash
from statetrack.sweep.suite import Suite

SEED, HORIZON_SEED = 0, 1
"""The seeds of the test words: at the suite's lengths, and at those of the horizon."""

POSITIONS = "every"
"""Of which positions of a word the answers count in `success` and `horizon`."""


@dataclass(frozen=True)
class Measurement:
    """What the numbers of a cell depend on besides the trained weights.

    `task_hash` is that of the words and labels, see `golden_hash`; the other names are those of
    suite files.
    """

    task_hash: str
    task_version: int
    length: int
    samples: int
    seed: int
    curve_lengths: tuple[int, ...]
    horizon_lengths: tuple[int, ...]
    horizon_samples: int
    horizon_seed: int
    positions: str = "last"
    """Which answers count as right or wrong in `success` and `horizon`: earlier versions counted
    the last one of a word, and did not say so."""
    test_words: tuple[str, ...] = ()

    @classmethod
    def of(cls, suite: Suite, task: Task) -> Measurement:
        """How a suite measures a model on a task."""
        return cls(
            task_hash=golden_hash(task),
            task_version=task.spec.version,
            length=suite.length,
            samples=suite.samples,
            seed=SEED,
            curve_lengths=suite.curve_lengths,
            horizon_lengths=suite.horizon_lengths,
            horizon_samples=suite.horizon_samples,
            horizon_seed=HORIZON_SEED,
            positions=POSITIONS,
            test_words=suite.test_words,
        )

    def is_of_the_same_words(self, other: Measurement) -> bool:
        """Whether the tasks have the same words and labels."""
        return (self.task_hash, self.task_version) == (other.task_hash, other.task_version)


@dataclass(frozen=True)
class PointResult:
    """The result of a cell: the content of cell.json.

    `replicas` is their number, `rows` are those of every replica that did not diverge, at the
    suite's length; `curves` are also those at `curve_lengths`, and `others` those on words that are
    drawn in other ways than in training (`test_words`), at all these lengths. `selected` is None
    where all replicas diverged. `success` is the fraction of all replicas with every answer right,
    `horizon` the horizon of the selected one, and `first_error` the earliest position at which any
    of its random words, of whatever length, is answered wrongly. `measured` says how. `evidence` is
    about the selected one, each kind once; `searched` has the seconds that were given to each kind
    looked for.
    """

    row: str
    column: str
    run: str
    replicas: int
    rows: tuple[EvaluationRow, ...]
    curves: tuple[EvaluationRow, ...]
    selected: EvaluationRow | None
    success: float
    horizon: int
    steps: int
    seconds: float
    measured: Measurement
    first_error: int | None = None
    others: tuple[EvaluationRow, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    searched: Mapping[str, float] = field(default_factory=dict)

    @property
    def bracket(self) -> Bracket:
        """What is proven of the selected replica, and where it fails."""
        return Bracket.of(self.evidence, wrong_at=self.first_error)

    @property
    def num_right(self) -> int:
        """The number of replicas with every answer right."""
        return num_right(self.rows)

    def to_json(self) -> dict[str, Any]:
        """The result as plain values."""
        return vars(self) | {
            "rows": [row.to_json() for row in self.rows],
            "curves": [row.to_json() for row in self.curves],
            "others": [row.to_json() for row in self.others],
            "selected": None if self.selected is None else self.selected.to_json(),
            "measured": vars(self.measured),
            "evidence": [evidence_to_json(each) for each in self.evidence],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> PointResult:
        """The result of plain values.

        Raises `RunError`, whose message begins with `where`, for values of another form.
        """
        rows = {
            name: _rows(content.get(name, []), f"{where}, {name}")
            for name in ("rows", "curves", "others")
        }
        selected = content.get("selected")
        if selected is not None:
            selected = read_row(EvaluationRow, selected, f"{where}, selected")
        read = {**rows, "selected": selected, "evidence": _evidence(content, where)}
        return read_row(cls, {**content, **read}, where)


def _rows(content: object, where: str) -> list[EvaluationRow]:
    if not isinstance(content, list):
        raise RunError(f"{where}: is damaged: it is no list")
    return [read_row(EvaluationRow, row, where) for row in content]


def _evidence(content: Mapping[str, Any], where: str) -> list[Evidence]:
    """The evidence of a cell; an earlier version wrote none."""
    rows = content.get("evidence", [])
    if not isinstance(rows, list):
        raise RunError(f"{where}, evidence: is damaged: it is no list")
    found = (read_evidence(row, f"{where}, evidence") for row in rows)
    return [each for each in found if each is not None]


def num_right(rows: tuple[EvaluationRow, ...]) -> int:
    """The number of rows in which every answer at every scored position is right."""
    return sum(row.all_right for row in rows)
