"""Contraction: one symbol brings all states near those of a word nearer to one another.

    loss + worst + size / robust_size * WEIGHT * mean of max(0, radius' / radius - RATE)
         + WEIGHT * mean of max(0, argument of a gate that keeps)

At points of a step, which are a state of a word and the symbol that it reads there, the box of all
states that are off by at most `size` in every number is taken through the symbol by interval
bounds. `worst` is the loss of the worst logits of the image, and radius' / radius the factor by
which the box grows in each number. Where every factor is below 1 and answers are right, boxes as
large as the error of the certificate's own steps are mapped into each other (`statetrack certify`).

A gate that keeps (z of a GRU, f of an LSTM) near 1 carries an error along for ever; as a number
that it keeps is then right on every word of training, and as its gradient is close to 0, the other
terms do not undo it once it is learned. So from the first step on it is held at one half or below,
where the network learns to restore what it keeps.

Unlike `interval`, which takes bounds through whole words, it carries no bound on to the next one:
with the length of words grows only what it costs to read them once more (docs/robust-training.md).

Source: the largest factor is a bound on the norm of the step's Jacobian matrix for the largest
coordinate, as is asked of contractive maps in general (Lohmiller & Slotine 1998, Automatica 34,
doi:10.1016/S0005-1098(98)00019-3); here over boxes of a stated size, by interval bounds (Gowal et
al. 2018, arXiv:1810.12715).

R replicas, B batch, T time, C labels, D numbers of a state, N points.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from statetrack.models import RecurrentModel, WithBoxes
from statetrack.ops import Box, in_full_precision
from statetrack.training.losses import Loss, mean_over_scored
from statetrack.training.population import Population
from statetrack.training.robust import Robust, require_boxes
from statetrack.training.settings import ROBUST
from statetrack.training.words import Words

RATE: Final = 0.5
"""The factor of a number's error below which nothing is asked."""

WEIGHT: Final = 3.0
"""The weight of what factors are above that, at the whole size, and of gates that keep."""

POINTS: Final = 128
"""The most points of a training step."""

STRIDE: Final = 31
"""Between two points, if their number is not a multiple of it: neighbours share a word."""


@ROBUST.register("contraction")
class Contraction(Robust):
    """The loss, that of worst logits, and what boxes and gates are too large by."""

    default_size = 0.1

    def check(self, model: nn.Module) -> None:
        """The model has to take boxes of states to boxes."""
        require_boxes(model, "contraction", such_as="gru")

    def train(
        self, population: Population, words: Words, loss: Loss, step: int
    ) -> tuple[Tensor, Tensor]:
        """The logits, and their loss with what is asked at some points."""
        logits, losses = self.with_loss(population(words.symbols), words, loss)
        return logits, losses + self._asked(population, words, loss, self.size_at(step), step)

    def validate(self, population: Population, words: Words, logits: Tensor, loss: Loss) -> Tensor:
        """The same at the whole size."""
        plain = self.with_loss(logits, words, loss)[1]
        return plain + self._asked(population, words, loss, self.size, 0)

    def _asked(
        self, population: Population, words: Words, loss: Loss, size: float, step: int
    ) -> Tensor:
        model = population.model
        assert isinstance(model, RecurrentModel)
        asked = Asked(model, size)
        with torch.no_grad():
            reached = States(model)
            states = population.through(reached, "model", population.vectorises, words.symbols)
        symbols, labels, scored = (
            part.flatten(1) for part in (words.symbols, words.labels, words.scored)
        )
        number = symbols.shape[1]
        chosen = (step * POINTS + torch.arange(min(POINTS, number))) * STRIDE % number
        chosen = chosen.to(symbols.device)
        symbols, labels, scored, states = (
            part[:, chosen] for part in (symbols, labels, scored, states.flatten(1, 2))
        )
        found = population.through(asked, "model", True, states, symbols, labels)
        excess, kept, logits = found[..., 0], found[..., 1], found[..., 2:]
        losses = WEIGHT * kept.mean(-1)
        if size:
            worst = mean_over_scored(
                loss(logits.unsqueeze(1), labels.unsqueeze(1)), scored.unsqueeze(1)
            )
            losses = losses + worst + size / self.size * WEIGHT * excess.mean(-1)
        return losses


class States(nn.Module):
    """A model that gives its state before every symbol."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, symbols: Tensor) -> Tensor:
        """States [B, T, D] of words [B, T]."""
        model = self.model
        assert isinstance(model, WithBoxes) and isinstance(model, RecurrentModel)
        found: list[Tensor] = []
        state = model.initial_state(symbols.shape[0])
        for symbol in symbols.unbind(1):
            found.append(model.flat(state))
            state = model.step(symbol, state)[1]
        return torch.stack(found, 1)


class Asked(nn.Module):
    """A model that says of boxes around states how they grow, what is kept, and its worst logits.

    With a size of 0 it says only what is kept.
    """

    def __init__(self, model: nn.Module, size: float) -> None:
        super().__init__()
        self.model = model
        self.size = size

    @in_full_precision
    def forward(self, states: Tensor, symbols: Tensor, labels: Tensor) -> Tensor:
        """Three things in a row, [N, 2 + C], of states [N, D], symbols and labels [N].

        The mean of what factors are above `RATE`, that of the arguments of gates that keep where
        they are above 0, and logits with a mean of 0, each as far above the label's as it can be.
        """
        model = self.model
        assert isinstance(model, WithBoxes)
        kept = model.keeping(symbols, states).clamp(min=0)
        kept = kept.mean(-1) if kept.shape[-1] else states.new_zeros(len(states))
        if not self.size:
            return kept.unsqueeze(-1).expand(-1, 2)
        image = model.box_step(symbols, Box(states, states).grown(self.size))
        excess = (image.radius / self.size - RATE).clamp(min=0).mean(-1)
        leads = model.box_leads(image, labels)
        logits = leads - leads.mean(-1, keepdim=True)
        return torch.cat([excess.unsqueeze(-1), kept.unsqueeze(-1), logits], -1)
