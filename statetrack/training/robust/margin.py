"""A margin: the right logit is asked to be ahead of every other by at least `robust_size`.

    loss + mean of max(0, size - (z_label - max of the other z))^2

Its gradient ends where the margin is reached, so a loss that is already small does not stop the
logits of rare states from coming apart.

C labels.
"""

from __future__ import annotations

from torch import Tensor, nn

from statetrack.errors import SettingsError, setting
from statetrack.models import SequenceModel
from statetrack.training.losses import Loss, lead, mean_over_scored
from statetrack.training.population import Population
from statetrack.training.robust import Robust
from statetrack.training.settings import ROBUST
from statetrack.training.words import Words


@ROBUST.register("margin")
class Margin(Robust):
    """The loss, and the square of what the right logit's lead lacks."""

    default_size = 1.0

    def check(self, model: nn.Module) -> None:
        """There have to be two labels."""
        if isinstance(model, SequenceModel) and model.num_labels < 2:
            raise SettingsError(f"{setting('robust', 'margin')} needs a task with two labels")

    def train(
        self, population: Population, words: Words, loss: Loss, step: int
    ) -> tuple[Tensor, Tensor]:
        """The logits, and their loss with what is lacking."""
        logits = population(words.symbols)
        lacking = (self.size_at(step) - lead(logits, words.labels)).clamp(min=0).square()
        losses = loss(logits, words.labels) + lacking
        return logits, mean_over_scored(losses, words.scored)
