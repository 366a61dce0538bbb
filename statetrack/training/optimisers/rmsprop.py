"""RMSprop, with the defaults of torch."""

from __future__ import annotations

import torch

from statetrack.training.optimisers import Groups, OptimiserKind
from statetrack.training.registries import OPTIMISERS
from statetrack.training.settings import TrainSettings


@OPTIMISERS.register("rmsprop")
class RMSprop(OptimiserKind):
    """RMSprop, with L2 weight decay."""

    @staticmethod
    def make(groups: Groups, settings: TrainSettings) -> torch.optim.Optimizer:
        """RMSprop of some groups of parameters."""
        return torch.optim.RMSprop(groups, weight_decay=settings.weight_decay)
