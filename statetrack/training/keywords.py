"""The settings of training as keyword arguments with types, which editors complete.

Each is explained in `DataSettings` or `TrainSettings`, which check them and hold the defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class TrainingKeywords(TypedDict, total=False):
    """What `statetrack.fit` and `statetrack.train` take besides a module and a task."""

    train_length: str
    curriculum: float
    words: str
    supervision: Literal["task", "every", "last"]
    train_samples: int
    steps: int
    extended_at: Sequence[int]
    batch_size: int
    lrs: float | Sequence[float]
    seeds: int
    seed: int
    loss: str
    label_smoothing: float
    optimizer: str
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    schedule: Literal["constant", "cosine", "linear"]
    warmup: float
    clip: float
    robust: str
    robust_size: float
    robust_start: float
    freeze: Literal["none", "recurrence"]
    finish: Literal["none", "exact"]
    validate_every: int
    validation_words: int
    patience: int
    stop_loss: float
    device: str
    threads: int
    precision: Literal["float32", "bfloat16"]
