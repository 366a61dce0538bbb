"""An unfinished run, as its last checkpoint has it: the best weights so far, and their outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.errors import RunError
from statetrack.runs.folder import RunFolder
from statetrack.runs.outcomes import summary_at
from statetrack.runs.rows import Summary
from statetrack.runs.tensors import best_of

if TYPE_CHECKING:
    from torch import Tensor

    from statetrack.runs.config import Experiment


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
