"""The outcome of training: of every replica, and which one is selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statetrack.runs.rows import Outcome, Summary
from statetrack.training import Finish, Progress, Replica, Trainer


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
