"""Cross-entropy.

    loss = -log softmax(z)[label]

It has no minimum: once all answers are right, it tends to 0 as the logits grow.

C labels.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from statetrack.ops import native, widened
from statetrack.training.losses import Loss, by_loop
from statetrack.training.settings import LOSSES, TrainSettings


@LOSSES.register("cross-entropy")
def of_settings(settings: TrainSettings) -> Loss:
    """The loss, which has no settings."""
    return cross_entropy


def cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """The loss [...] of logits [..., C] and labels [...], which may be smoothed."""
    if by_loop(logits):
        return native.cross_entropy(logits, labels, smoothing)
    flat = functional.cross_entropy(
        widened(logits).flatten(0, -2),
        labels.flatten(),
        reduction="none",
        label_smoothing=smoothing,
    )
    return flat.view(labels.shape)
