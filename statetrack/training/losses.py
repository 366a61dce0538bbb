"""What is minimised, and the accuracy beside it: one number per replica.

Squared error and smoothed cross-entropy have an exact, non-degenerate optimum: their gradient
vanishes only when the operators are right, not as soon as the answers are. Plain
cross-entropy is content with answers that are right on the short words it sees, while angles
are still off, and that error grows with length.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from statetrack.training.settings import TrainSettings

Loss = Callable[[Tensor, Tensor], Tensor]
"""Logits [..., C] and labels [...] to one loss per position [...]."""


def loss_of(settings: TrainSettings) -> Loss:
    """The loss that the settings name."""
    if settings.loss == "squared-error":
        return squared_error
    smoothing = settings.label_smoothing if settings.loss == "smoothed-cross-entropy" else 0.0

    def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
        flat = functional.cross_entropy(
            widened(logits).flatten(0, -2),
            labels.flatten(),
            reduction="none",
            label_smoothing=smoothing,
        )
        return flat.view(labels.shape)

    return cross_entropy


def squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """sum_c (z_c - (1[c = label] - 1/C))^2: squared error on centred one-hot labels.

    Centring removes the constant direction, which a model would otherwise have to carry as a
    mode of its own, and which can come to dominate on long words.
    """
    index = labels.unsqueeze(-1)
    centred = widened(logits) + 1.0 / logits.shape[-1]
    minus_one = torch.full_like(index, -1, dtype=centred.dtype)
    return centred.scatter_add(-1, index, minus_one).square().sum(-1)


def widened(logits: Tensor) -> Tensor:
    """Logits in float32 where autocast has left them in bfloat16: losses need its digits."""
    return logits.float() if logits.dtype == torch.bfloat16 else logits


def mean_over_scored(values: Tensor, scored: Tensor) -> Tensor:
    """The mean of values [R, B, T] over the scored positions of each replica: [R]."""
    total = (values * scored).flatten(1).sum(1)
    return total / scored.flatten(1).sum(1).clamp(min=1)


def accuracy(logits: Tensor, labels: Tensor, scored: Tensor) -> Tensor:
    """The share of scored positions with the right answer, for each replica: [R]."""
    right = (logits.argmax(-1) == labels).float()
    return mean_over_scored(right, scored)
