"""A penalty on operators that expand: for linear models.

    loss + size * mean over symbols x of max(0, |A(x)| - 1)^2

with the spectral norm: where it is at most 1 for every symbol, no word makes a state longer, so
no word has an eigenvalue that outgrows the others. It is more than is needed: operators that only
expand in the coordinates that were learned are pushed as well.

Source: spectral regularisation, Yoshida & Miyato (2017), arXiv:1705.10941, there without a bound.

V symbols, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.errors import SettingsError, setting
from statetrack.models import LinearModel
from statetrack.training.losses import Loss
from statetrack.training.population import Population
from statetrack.training.robust import Robust
from statetrack.training.settings import ROBUST
from statetrack.training.words import Words


@ROBUST.register("spectral")
class Spectral(Robust):
    """The loss, and what the spectral norms of the operators are above 1."""

    default_size = 1.0

    def check(self, model: nn.Module) -> None:
        """The model has to have one operator for each symbol, which is trained."""
        if not isinstance(model, LinearModel):
            raise SettingsError(
                f"{setting('robust', 'spectral')} is for linear models with an operator for each "
                f"symbol, and {type(model).__name__} has none"
            )
        if self.settings.freeze == "recurrence":
            raise SettingsError(
                f"{setting('robust', 'spectral')} trains operators, which "
                f"{setting('freeze', 'recurrence')} leaves as they are: leave out one of them"
            )

    def train(
        self, population: Population, words: Words, loss: Loss, step: int
    ) -> tuple[Tensor, Tensor]:
        """The logits, and their loss with the penalty."""
        logits, losses = self.with_loss(population(words.symbols), words, loss)
        size = self.size_at(step)
        if size:
            excess = population.through(Excess(population.model), "model", True)
            losses = losses + size * excess
        return logits, losses


class Excess(nn.Module):
    """By how much a linear model's operators expand, as one number."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self) -> Tensor:
        """The mean over symbols of the square of what the spectral norm is above 1."""
        assert isinstance(self.model, LinearModel)
        norms: Tensor = torch.linalg.matrix_norm(self.model.operators().dense(), ord=2)
        return (norms - 1).clamp(min=0).square().mean()
