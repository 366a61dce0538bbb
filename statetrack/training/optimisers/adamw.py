"""AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2017, arXiv:1711.05101), fused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statetrack.training.optimisers import Groups, OptimiserKind, fuses
from statetrack.training.settings import OPTIMISERS, TrainSettings

if TYPE_CHECKING:
    import torch


@OPTIMISERS.register("adamw")
class AdamW(OptimiserKind):
    """Adam with decoupled weight decay."""

    uses = frozenset({"beta1", "beta2", "epsilon"})
    by_coordinate = True

    @staticmethod
    def make(groups: Groups, settings: TrainSettings) -> torch.optim.Optimizer:
        """AdamW of some groups of parameters."""
        import torch

        return torch.optim.AdamW(
            groups,
            betas=(settings.beta1, settings.beta2),
            eps=settings.epsilon,
            weight_decay=settings.weight_decay,
            fused=fuses(groups),
        )
