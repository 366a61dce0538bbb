"""RMSprop, with the defaults of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statetrack.training.optimisers import Groups, OptimiserKind
from statetrack.training.settings import OPTIMISERS, TrainSettings

if TYPE_CHECKING:
    import torch


@OPTIMISERS.register("rmsprop")
class RMSprop(OptimiserKind):
    """RMSprop, with L2 weight decay."""

    by_coordinate = True

    @staticmethod
    def make(groups: Groups, settings: TrainSettings) -> torch.optim.Optimizer:
        """RMSprop of some groups of parameters."""
        import torch

        return torch.optim.RMSprop(groups, weight_decay=settings.weight_decay)
