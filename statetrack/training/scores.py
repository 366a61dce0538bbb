"""Means over scored positions, one for each replica.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

from torch import Tensor


def mean_over_scored(values: Tensor, scored: Tensor) -> Tensor:
    """The mean of values [R, B, T] over the scored positions of each replica: [R]."""
    total = (values * scored).flatten(1).sum(1)
    return total / scored.flatten(1).sum(1).clamp(min=1)


def accuracy(logits: Tensor, labels: Tensor, scored: Tensor) -> Tensor:
    """The fraction of scored positions with the right answer, for each replica: [R]."""
    right = (logits.argmax(-1) == labels).float()
    return mean_over_scored(right, scored)
