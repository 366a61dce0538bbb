"""The records that training yields for each replica, and the state of selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Replica:
    """One copy of the model: one seed at one learning rate."""

    index: int
    seed: int
    lr: float


def replicas_of(seeds: Sequence[int], lrs: Sequence[float]) -> tuple[Replica, ...]:
    """Every seed at every learning rate, learning rates outermost."""
    pairs = [(seed, lr) for lr in lrs for seed in seeds]
    return tuple(Replica(index, seed, lr) for index, (seed, lr) in enumerate(pairs))


@dataclass(frozen=True)
class Record:
    """Loss and accuracy of one replica at one step; `validation_*` only where it was validated.

    `validation_prefix_accuracy` is the share of validation words with every answer right.
    """

    step: int
    replica: int
    loss: float
    accuracy: float
    validation_loss: float | None = None
    validation_accuracy: float | None = None
    validation_prefix_accuracy: float | None = None


@dataclass(frozen=True)
class Finish:
    """What the end of training did to a replica.

    `kept` of `hidden` coordinates of its states are used; the rest is zero. The losses are mean
    squared errors per scored position of training words, in float64. Where the weights stayed
    as they were, `refused` says why, and only what was found out is there.
    """

    kept: int | None = None
    hidden: int | None = None
    loss_before: float | None = None
    loss_after: float | None = None
    refused: str = ""


@dataclass
class Progress:
    """The state of selection and early stopping for one replica.

    `best_prefix_accuracy` is -1 after a checkpoint of an earlier version, until weights improve.
    `diverged_at` is the first step, from 1, whose training loss was NaN or infinite; 0 where none
    was.
    """

    best_accuracy: float = -1.0
    best_prefix_accuracy: float = -1.0
    best_loss: float = float("inf")
    best_step: int = 0
    since_best: int = 0
    stopped: str = ""
    diverged_at: int = 0
