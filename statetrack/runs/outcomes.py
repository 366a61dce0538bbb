"""The outcome of training: of every replica, and which one is selected; so far, and at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.errors import RunError
from statetrack.runs.config import Experiment
from statetrack.runs.folder import RunFolder
from statetrack.runs.rows import Outcome, Summary
from statetrack.runs.tensors import best_of
from statetrack.training import Finish, Progress, Replica, Trainer

if TYPE_CHECKING:
    from torch import Tensor


def summary_of(trainer: Trainer, seconds: float) -> Summary:
    """The outcome of every replica of a training, and which one is selected: see `summary_at`."""
    return summary_at(trainer.step, seconds, trainer.everyone, trainer.progress, trainer.finishes)


def summary_at(
    step: int,
    seconds: float,
    replicas: Sequence[Replica],
    progress: Sequence[Progress],
    finishes: Mapping[int, Finish] | None = None,
) -> Summary:
    """The outcome of every replica, and which one is selected.

    The selected replica has the highest validation accuracy; among equals, those come first whose
    operators were made exact, then the lowest validation loss. A replica without any validation of
    finite loss has diverged, and is never selected.
    """
    finishes = finishes or {}
    outcomes = tuple(
        Outcome(
            replica=replica.index,
            seed=replica.seed,
            lr=replica.lr,
            validation_accuracy=own.best_accuracy if own.best_step else None,
            validation_loss=own.best_loss if own.best_step else None,
            best_step=own.best_step,
            stopped=own.stopped if own.best_step else "diverged",
            finish=finishes.get(replica.index),
        )
        for replica, own in zip(replicas, progress, strict=True)
    )

    def rank(row: int) -> tuple[float, bool, float]:
        finish = outcomes[row].finish
        exact = finish is not None and not finish.refused
        return progress[row].best_accuracy, exact, -progress[row].best_loss

    best = max(range(len(outcomes)), key=rank)
    selected = replicas[best].index if progress[best].best_step else None
    return Summary(step, round(seconds, 3), selected, outcomes)


@dataclass(frozen=True)
class Unfinished:
    """What an unfinished run would end with if it ended at its last checkpoint.

    `steps` are those of the whole training, `summary.steps` those done; the `weights` are the best
    ones so far, each tensor [R, ...].
    """

    steps: int
    summary: Summary
    weights: dict[str, Tensor]

    def __str__(self) -> str:
        return f"unfinished: step {self.summary.steps:,} of {self.steps:,}"

    @classmethod
    def of(cls, folder: RunFolder, experiment: Experiment) -> Unfinished | None:
        """What the last checkpoint holds; None where the run has finished.

        Raises `RunError` where there is no checkpoint, where none of its replicas was validated,
        and where it is damaged or of other settings.
        """
        steps, replicas = experiment.training.steps, experiment.replicas
        if folder.finished:
            return None
        checkpoint = folder.checkpoint()
        if checkpoint is None:
            if folder.finished:  # in the meantime
                return None
            raise RunError(
                f"{folder.path}: the run has not finished (it has no summary.json), and has no "
                "checkpoint yet, so there are no weights to read; "
                f"`statetrack train --resume {folder.path}` continues it"
            )
        try:
            best = best_of(checkpoint, len(replicas), steps)
        except ValueError as wrong:
            folder.refuse_checkpoint(str(wrong))
        if not any(progress.best_step for progress in best.progress):
            raise RunError(
                f"{folder.path}: the run has not finished, and at step {best.step:,} of {steps:,} "
                "no replica has a finite validation loss yet, so there are no best weights to read"
            )
        summary = summary_at(best.step, best.seconds, replicas, best.progress)
        return cls(steps, summary, best.weights)
