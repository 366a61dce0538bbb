"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statetrack.training.optimisers import Groups, OptimiserKind, fuses
from statetrack.training.settings import OPTIMISERS, TrainSettings

if TYPE_CHECKING:
    import torch

MOMENTUM = 0.9


@OPTIMISERS.register("sgd")
class SGD(OptimiserKind):
    """Stochastic gradient descent with momentum 0.9 and L2 weight decay."""

    by_coordinate = True

    @staticmethod
    def make(groups: Groups, settings: TrainSettings) -> torch.optim.Optimizer:
        """SGD of some groups of parameters."""
        import torch

        return torch.optim.SGD(
            groups, weight_decay=settings.weight_decay, momentum=MOMENTUM, fused=fuses(groups)
        )
