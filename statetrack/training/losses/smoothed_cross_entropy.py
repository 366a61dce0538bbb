"""Cross-entropy with label smoothing.

    loss = -sum_c ((1 - s) 1[c = label] + s / C) log softmax(z)[c],    s = label_smoothing

Unlike plain cross-entropy its minimum is attained, at finite logits.

Source: Szegedy et al. (2016), arXiv:1512.00567 (label smoothing).

C labels.
"""

from __future__ import annotations

import math
from functools import partial

from statetrack.training.losses import Loss, loss_kind
from statetrack.training.losses.cross_entropy import cross_entropy
from statetrack.training.settings import LOSSES, TrainSettings


def height(settings: TrainSettings, num_labels: int) -> float:
    """The lead of the right one of C logits at the minimum: log(1 + C (1 - s) / s)."""
    smoothing = settings.label_smoothing
    return math.log1p(num_labels * (1 - smoothing) / smoothing)


@LOSSES.register("smoothed-cross-entropy")
@loss_kind(uses=["label_smoothing"], height=height)
def of_settings(settings: TrainSettings) -> Loss:
    """The loss with the smoothing of the settings."""
    return partial(cross_entropy, smoothing=settings.label_smoothing)
