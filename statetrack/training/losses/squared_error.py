"""Squared error on centred one-hot labels.

    loss = sum_c (z_c - (1[c = label] - 1/C))^2

The minimum is attained, at finite logits, so that the gradient vanishes only where the operators
are exact. Plain cross-entropy becomes small as soon as the answers on short words are right, while
rotation angles are still inexact, an error that grows with length (docs/losses.md has
measurements).

Centring removes the constant component of the target, which a model would otherwise have to
represent by a separate mode of its state, and which can dominate on long words.

C labels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops import native, widened
from statetrack.training.losses import Loss, by_loop, loss_kind
from statetrack.training.settings import LOSSES, TrainSettings


@LOSSES.register("squared-error")
@loss_kind(height=lambda settings, num_labels: 1.0)
def of_settings(settings: TrainSettings) -> Loss:
    """The loss, which has no settings."""
    return squared_error


def squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss [...] of logits [..., C] and labels [...]."""
    if by_loop(logits):
        return native.squared_error(logits, labels)
    index = labels.unsqueeze(-1)
    centred = widened(logits) + 1.0 / logits.shape[-1]
    minus_one = torch.full_like(index, -1, dtype=centred.dtype)
    return centred.scatter_add(-1, index, minus_one).square().sum(-1)
