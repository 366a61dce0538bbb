"""Stochastic gradient descent with momentum."""

from __future__ import annotations

import torch

from statetrack.training.optimisers import Groups, OptimiserKind
from statetrack.training.registries import OPTIMISERS
from statetrack.training.settings import TrainSettings

MOMENTUM = 0.9


@OPTIMISERS.register("sgd")
class SGD(OptimiserKind):
    """Stochastic gradient descent with momentum 0.9 and L2 weight decay."""

    @staticmethod
    def make(groups: Groups, settings: TrainSettings) -> torch.optim.Optimizer:
        """SGD of some groups of parameters."""
        return torch.optim.SGD(
            groups, weight_decay=settings.weight_decay, momentum=MOMENTUM, fused=True
        )
