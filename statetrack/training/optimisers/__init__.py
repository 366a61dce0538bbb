"""Optimisers, one file each: a file `adamw.py` registers the optimiser `adamw`.

Which settings an optimiser uses is known without torch, which `make` imports.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar

from statetrack.training.settings import TrainSettings

if TYPE_CHECKING:
    import torch

Groups = list[dict[str, Any]]
"""Parameters and learning rates, as `torch.optim` takes them: `params` and `lr` in each."""


class OptimiserKind(abc.ABC):
    """How to make an optimiser with the interface of `torch.optim`.

    `uses` names those of the settings `beta1`, `beta2` and `epsilon` that it has; others are
    refused with it. Every optimiser has `weight_decay`.
    """

    uses: ClassVar[frozenset[str]] = frozenset()

    @staticmethod
    @abc.abstractmethod
    def make(groups: Groups, settings: TrainSettings) -> torch.optim.Optimizer:
        """The optimiser of some groups of parameters, each with its own learning rate."""
