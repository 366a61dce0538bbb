"""Plain training: the loss of the logits, and nothing else."""

from __future__ import annotations

from torch import Tensor, nn

from statetrack.training.losses import Loss
from statetrack.training.population import Population
from statetrack.training.robust import Robust
from statetrack.training.settings import ROBUST
from statetrack.training.words import Words


@ROBUST.register("none")
class Plain(Robust):
    """The loss of the logits."""

    default_size = 0.0

    def check(self, model: nn.Module) -> None:
        """Every model can be trained."""

    def train(
        self, population: Population, words: Words, loss: Loss, step: int
    ) -> tuple[Tensor, Tensor]:
        """The logits and their loss."""
        return self.with_loss(population(words.symbols), words, loss)
