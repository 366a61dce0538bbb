"""What tests start from that need no run folder: an experiment, a suite's cell, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from statetrack.constructions import Construction, registry
from statetrack.evidence import Certificate, Exhaustive, Failure, WorstCase
from statetrack.models import SequenceModel
from statetrack.ops import choose_device
from statetrack.report import Entry
from statetrack.runs import EvaluationRow, Experiment, Outcome, Run, files, make_replica
from statetrack.scoring import rescale, wilson
from statetrack.spec import Task, load_task
from statetrack.sweep import Measurement, PointResult
from statetrack.sweep.results import num_right
from statetrack.training import SeedStreams, TaskWords, Words
from tests.run_files import write_weights


@dataclass(frozen=True)
class Setup:
    """What `Run` joins, before there is a folder."""

    experiment: Experiment
    task: Task

    @classmethod
    def of(cls, experiment: Experiment) -> Setup:
        return cls(experiment, load_task(experiment.data.task))

    @property
    def device(self) -> torch.device:
        return choose_device(self.experiment.training.device)

    @property
    def task_words(self) -> TaskWords:
        return TaskWords(self.task, self.experiment.data, self.experiment.training)

    def words(self) -> tuple[SeedStreams, Words]:
        return self.task_words.on(self.device)

    def make_model(self) -> SequenceModel:
        return make_replica(self.experiment, self.task)


def row_of(length: int, right: float = 1.0, **changed: Any) -> EvaluationRow:
    """The score of a replica at a length: by default right on all of 100 words, and selected."""
    words, chance = changed.get("sequences", 100), changed.get("chance", 0.25)
    low, high = wilson(round(right * words), words)
    given: dict[str, Any] = {
        "length": length,
        "sequences": words,
        "accuracy": right,
        "low": low,
        "high": high,
        "symbol_accuracy": right,
        "prefix_accuracy": right,
        "floor": 0.3,
        "chance": chance,
        "scaled": rescale(right, chance),
        "scaled_to_floor": rescale(right, 0.3),
        "first_error": None if right == 1 else length,
        "replica": 0,
        "seed": 0,
        "lr": 0.01,
        "selected": changed.get("replica", 0) == 0,
        "task": "parity",
        "evaluation_seed": 0,
    }
    return EvaluationRow(**given | changed)


def outcome_of(replica: int = 0, *, seed: int = 0, lr: float = 0.01, best_step: int = 9) -> Outcome:
    """The outcome of a replica; with best step 0 one that diverged."""
    known = None if best_step == 0 else 1.0
    return Outcome(replica, seed, lr, known, known, best_step, "" if best_step else "diverged")


def entry_of(row: str = "bilinear", column: str = "parity", **changed: Any) -> Entry:
    """A finished run of a report, whose first replica is selected; `rows` are its scores."""
    rows = tuple(changed.pop("rows", ()))
    seen = {each.replica: (each.seed, each.lr) for each in rows} or {0: (0, 0.01)}
    outcomes = changed.pop("outcomes", None) or tuple(
        outcome_of(replica, seed=seed, lr=lr) for replica, (seed, lr) in sorted(seen.items())
    )
    given: dict[str, Any] = {
        "row": row,
        "column": column,
        "run": Path("runs") / f"{row}_{column}",
        "state": "finished",
        "model": "bilinear",
        "task": "parity",
        "settings": {"model": "bilinear", "task": "parity", "hidden": 2},
        "settings_hash": "0123456789ab",
        "task_version": 1,
        "task_hash": "ab" * 32,
        "command": "statetrack train --model bilinear --task parity --hidden 2",
        "version": "0.1.0",
        "machine": "a processor",
        "device": "cpu",
        "started": "2026-01-01T00:00:00+00:00",
        "replicas": len(outcomes),
        "diverged": sum(each.diverged for each in outcomes),
        "steps": 1000,
        "seconds": 12.5,
        "words": 64_000,
        "parameters": 14,
        "dimensions": 2,
        "trained_to": 10,
        "outcomes": outcomes,
        "selected": None if outcomes[0].diverged else 0,
        "rows": rows,
    }
    return Entry(**given | changed)


def cell_of(row: str, column: str, rows: tuple[EvaluationRow, ...]) -> PointResult:
    """A suite's cell with these rows, all of one length, of which the first is selected."""
    return PointResult(
        row=row,
        column=column,
        run="run",
        replicas=len(rows),
        rows=rows,
        curves=rows,
        selected=rows[0],
        success=num_right(rows) / len(rows),
        horizon=0,
        steps=1,
        seconds=0.1,
        measured=Measurement("0", 1, rows[0].length, 9, 0, (rows[0].length,), (), 9, 1),
    )


def exhaustive_of(**changed: Any) -> Exhaustive:
    """All words of up to 5 symbols are right, and one of 6 is not."""
    given: dict[str, Any] = {
        "length": 5,
        "words": 62,
        "forbids": False,
        "closed": False,
        "states": 9,
        "tolerance": 0.0,
        "failure": Failure((0, 1, 0, 0, 1, 1), (), 6, 1, 0),
        "reason": "failure",
        "complete": True,
        "seconds": 0.1,
    }
    return Exhaustive(**given | changed)


def certificate_of(length: int | None) -> Certificate:
    """A proof to a length; None: to every length."""
    verdict: Any = "all lengths" if length is None else "to length"
    return Certificate(
        verdict=verdict,
        length=length,
        verdict_real=verdict,
        length_real=length,
        method="of a test",
        margin=0.5,
        residual=0.0,
        growth=1.0,
        reason="",
        complete=True,
        seconds=0.1,
    )


def worst_case_of(failure: Failure | None = None, **changed: Any) -> WorstCase:
    """A search of words of up to 900 symbols, and the failure that it found."""
    given: dict[str, Any] = {
        "horizon": 900 if failure is None else failure.position - 1,
        "tested": 900,
        "longest": 900,
        "failure": failure,
        "family": None,
        "predicted": None,
        "position_float64": None,
        "families": (),
        "drawable_only": False,
        "seed": 0,
        "complete": True,
        "seconds": 0.1,
    }
    return WorstCase(**given | changed)


def parity_run(path: Path) -> Path:
    """A run on parity: replica 0 swaps its two numbers on a 1, replica 1 forgets them on a 0."""
    settings = {"model": "bilinear", "task": "parity", "hidden": 2, "steps": 1, "seeds": 2}
    quick = {"validation_words": 4, "batch_size": 2, "validate_every": 1, "device": "cpu"}
    run = Run.start(out=path, **settings, **quick)  # type: ignore[arg-type]
    for _ in run.train():
        pass
    swap, keep = torch.eye(2).flip(0), torch.eye(2)
    forget = torch.tensor([[1.0, 1.0], [0.0, 0.0]])
    weights = run.folder.read(files.WEIGHTS)
    hand_built = {
        "weight": torch.stack([torch.stack([keep, swap]), torch.stack([forget, swap])]),
        "first": torch.tensor([[1.0, 0.0]] * 2),
        "readout.weight": torch.stack([keep, keep]),
    }
    for name, value in weights.items():
        weights[name] = hand_built.pop(name).reshape(value.shape)
    assert not hand_built
    write_weights(run.folder, weights)
    return path


def all_constructions() -> list[tuple[type, Construction]]:
    """Every construction that is known, with the class that it is for, in the order of files."""
    registry._load_classes()
    return [(kind, each) for kind, found in registry._KNOWN.items() for each in found]
