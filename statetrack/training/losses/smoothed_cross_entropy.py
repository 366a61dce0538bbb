"""Cross-entropy with label smoothing.

    loss = -sum_c ((1 - s) 1[c = label] + s / C) log softmax(z)[c],    s = label_smoothing

Unlike plain cross-entropy its minimum is attained, at finite logits.

Source: Szegedy et al. (2016), arXiv:1512.00567 (label smoothing).

C labels.
"""

from __future__ import annotations

from functools import partial

from statetrack.training.losses import Loss
from statetrack.training.losses.cross_entropy import cross_entropy
from statetrack.training.settings import LOSSES, TrainSettings


@LOSSES.register("smoothed-cross-entropy")
def of_settings(settings: TrainSettings) -> Loss:
    """The loss with the smoothing of the settings."""
    return partial(cross_entropy, smoothing=settings.label_smoothing)
