"""What files hold as tensors, checked against the model or the training that is to take it.

And the outcome of training, of every replica, and which one is selected: at the end, and as a
checkpoint has it. R replicas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from statetrack.errors import RunError
from statetrack.runs import files
from statetrack.runs.config import Experiment
from statetrack.runs.folder import RunFolder
from statetrack.runs.rows import Outcome, Summary
from statetrack.text import as_argument
from statetrack.training import (
    OPTIMISERS,
    Finish,
    Progress,
    Replica,
    Trainer,
    step_of,
    without_compiler,
)

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Stored:
    """The weights of R replicas, each [R, ...], and the model that takes those of one."""

    weights: Mapping[str, Tensor]
    model: nn.Module

    @property
    def _parts(self) -> dict[str, Tensor]:
        """The model's own parameters and buffers, which the population has under these names."""
        return dict(self.model.named_parameters()) | dict(self.model.named_buffers())

    def difference(self, num_replicas: int) -> str | None:
        """The first tensor that is not as the model has it; None where there is none."""
        like = {name: (value.dtype, value.shape) for name, value in self._parts.items()}
        return _difference(self.weights, like, num_replicas)

    def not_finite(self, replica: int) -> str | None:
        """The first parameter of a replica with a value that is not finite.

        A replica is kept for a finite loss in validation, which such a parameter does not give; a
        buffer may hold infinity, in a mask.
        """
        for name, _ in self.model.named_parameters():
            if not self.weights[name][replica].isfinite().all():
                return name
        return None

    def load(self, replica: int) -> None:
        """Give the model the weights of a replica."""
        with torch.no_grad():
            for name, value in self._parts.items():
                value.copy_(self.weights[name][replica])


Like = Mapping[str, tuple[torch.dtype, torch.Size]]
"""What each tensor of one replica is to be."""


def _difference(tensors: Mapping[Any, Any], like: Like, num_replicas: int) -> str | None:
    """The first of the tensors [R, ...] that is missing, unknown, or not as it is to be."""
    for name in [*like, *tensors]:
        if name not in tensors:
            return f"there is no tensor '{name}'"
        if name not in like:
            return f"the model has no tensor '{name}'"
    for name, (dtype, shape) in like.items():
        if (wrong := _other(tensors[name], dtype, (num_replicas, *shape))) is not None:
            return f"tensor '{name}' {wrong}"
    return None


def _other(value: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> str | None:
    if not isinstance(value, Tensor) or value.layout is not torch.strided:
        return "is not a dense tensor"
    if value.dtype != dtype:
        return f"is {value.dtype} and not {dtype}".replace("torch.", "")
    if value.shape != shape:
        return f"has the shape {[*value.shape]} and not {[*shape]}"
    return None


def check_state(checkpoint: Mapping[str, Any], trainer: Trainer) -> float:
    """Check the state of training that a checkpoint holds; the seconds that it took so far.

    `trainer` is at the start of training. Raises `ValueError` for a state that it cannot continue
    from.
    """
    seconds, state = checkpoint.get("seconds"), checkpoint.get("trainer")
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ValueError("its seconds are no number")
    if not isinstance(state, dict) or set(state) != set(trainer.state()):
        raise ValueError("it does not hold what training needs")
    step, counted, replicas = state["step"], state["counted"], state["replicas"]
    if type(step) is not int or not 0 <= step <= trainer.settings.steps:
        raise ValueError(f"step {step} is none of {trainer.settings.steps}")
    if type(counted) is not int or not 0 <= counted <= step:
        raise ValueError("its averages are of more steps than there were")
    everyone = range(len(trainer.everyone))
    stopped = [progress.stopped for progress in _progress(state["progress"], step, len(everyone))]
    going = [index for index in everyone if not stopped[index]]
    if replicas != going or not (going or trainer.settings.finish != "none"):
        raise ValueError("its replicas are not those that have not stopped")
    parts = trainer.population.parameters | trainer.population.buffers
    like = {name: (value.dtype, value.shape[1:]) for name, value in parts.items()}
    for name, num_replicas in (("weights", len(going)), ("best", len(everyone))):
        tensors = state[name]
        if not isinstance(tensors, dict):
            raise ValueError(f"its {name} are no tensors")
        if (wrong := _difference(tensors, like, num_replicas)) is not None:
            raise ValueError(wrong)
    totals = trainer.totals
    if (wrong := _other(state["totals"], totals.dtype, (len(totals), len(going)))) is not None:
        raise ValueError(f"the sum of losses {wrong}")
    _check_rng(state["rng"])
    _check_moments(state["moments"], trainer, going)
    return float(seconds)


class Best(NamedTuple):
    """The best weights so far, each [R, ...], the step and seconds at which they were kept."""

    step: int
    seconds: float
    progress: list[Progress]
    weights: dict[str, Tensor]


def best_of(checkpoint: Mapping[str, Any], num_replicas: int, steps: int) -> Best:
    """The best weights that a checkpoint holds; whether a model takes them `Stored` says.

    Raises `ValueError` for what is no state of a training of so many steps.
    """
    seconds, state = checkpoint.get("seconds"), checkpoint.get("trainer")
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ValueError("its seconds are no number")
    if not isinstance(state, dict) or not {"step", "progress", "best"} <= set(state):
        raise ValueError("it does not hold what training needs")
    step, best = state["step"], state["best"]
    if type(step) is not int or not 0 <= step <= steps:
        raise ValueError(f"step {step} is none of {steps}")
    if not isinstance(best, dict) or not all(isinstance(name, str) for name in best):
        raise ValueError("its best are no tensors")
    return Best(step, float(seconds), _progress(state["progress"], step, num_replicas), best)


def _progress(content: Any, step: int, num_replicas: int) -> list[Progress]:
    if not isinstance(content, list) or len(content) != num_replicas:
        raise ValueError(f"it does not hold the progress of {num_replicas} replicas")
    types = {field.name: type(field.default) for field in fields(Progress)}
    kept = []
    for each in content:
        if not isinstance(each, dict):
            raise ValueError("the progress of a replica is incomplete")
        # what earlier versions did not write
        each = {"best_prefix_accuracy": -1.0, "diverged_at": 0, **each}
        if {key: type(each[key]) for key in each} != types:
            raise ValueError("the progress of a replica is incomplete")
        progress = Progress(**each)
        if not 0 <= progress.diverged_at <= step:
            raise ValueError(f"a replica diverged at step {progress.diverged_at} of {step}")
        if not 0 <= progress.best_step <= step or progress.since_best < 0:
            raise ValueError(f"a replica is best at step {progress.best_step} of {step}")
        shares = progress.best_accuracy, progress.best_prefix_accuracy
        if not all(-1 <= share <= 1 for share in shares) or math.isnan(progress.best_loss):
            raise ValueError(f"a replica's best accuracy is {progress.best_accuracy:g}")
        kept.append(progress)
    return kept


def _check_rng(state: Any) -> None:
    usual = torch.get_rng_state()
    if (wrong := _other(state, usual.dtype, tuple(usual.shape))) is not None:
        raise ValueError(f"the state of the random numbers {wrong}")
    try:
        torch.Generator().set_state(state)
    except RuntimeError:
        raise ValueError("the state of the random numbers is none") from None


def _check_moments(moments: Any, trainer: Trainer, going: list[int]) -> None:
    """Check the optimiser's state against that of the same optimiser after one step."""
    likes = {name: value[0] for name, value in trainer.population.trained.items()}
    wanted = {(name, index) for name in likes for index in going}
    if not isinstance(moments, dict) or set(moments) != wanted:
        raise ValueError("the optimiser's state is not that of its replicas")
    for (name, _), given in moments.items():
        if not isinstance(given, dict):
            raise ValueError(f"the optimiser's state of '{name}' is incomplete")
    for name, expected in _after_one_step(likes, trainer).items():
        for index in going:
            given = moments[name, index]
            for key, value in expected.items():
                if key not in given:
                    raise ValueError(f"the optimiser's state of '{name}' has no '{key}'")
                if isinstance(value, Tensor):
                    wrong = _other(given[key], value.dtype, tuple(value.shape))
                else:
                    wrong = None if type(given[key]) is type(value) else "is of another type"
                if wrong is not None:
                    raise ValueError(f"'{key}' of the optimiser's state of '{name}' {wrong}")


def _after_one_step(likes: Mapping[str, Tensor], trainer: Trainer) -> dict[str, dict[str, Any]]:
    """The optimiser's state of one replica after a step without gradients."""
    weights = {name: torch.zeros_like(value).requires_grad_() for name, value in likes.items()}
    groups = [{"params": list(weights.values()), "lr": trainer.settings.lrs[0]}]
    with without_compiler():
        optimiser = OPTIMISERS[trainer.settings.optimizer].make(groups, trainer.settings)
    for value in weights.values():
        value.grad = torch.zeros_like(value)
    step_of(optimiser)()
    return {name: dict(optimiser.state[value]) for name, value in weights.items()}


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
            validation_prefix_accuracy=(
                own.best_prefix_accuracy
                if own.best_step and own.best_prefix_accuracy >= 0
                else None
            ),
            validation_loss=own.best_loss if own.best_step else None,
            best_step=own.best_step,
            stopped=own.stopped if own.best_step else "diverged",
            finish=finishes.get(replica.index),
            diverged_at=own.diverged_at or None,
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
        checkpoint = folder.read(files.CHECKPOINT)
        if checkpoint is None:
            if folder.finished:  # in the meantime
                return None
            raise RunError(
                f"{folder.path}: the run has not finished (it has no summary.json), and has no "
                "checkpoint yet, so there are no weights to read; "
                f"`statetrack train --resume {as_argument(folder.path)}` continues it"
            )
        try:
            best = best_of(checkpoint, len(replicas), steps)
        except ValueError as wrong:
            files.CHECKPOINT.refuse(folder.path, str(wrong))
        if not any(progress.best_step for progress in best.progress):
            raise RunError(
                f"{folder.path}: the run has not finished, and at step {best.step:,} of {steps:,} "
                "no replica has a finite validation loss yet, so there are no best weights to read"
            )
        summary = summary_at(best.step, best.seconds, replicas, best.progress)
        return cls(steps, summary, best.weights)
