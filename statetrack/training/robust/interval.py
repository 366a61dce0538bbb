"""Training through interval bounds: the loss of the worst states near those of a word.

Before every symbol, each number of the state may be off by `robust_size`. Bounds go through the
whole word, together with all errors so far, and the loss is that of the worst logits: for each
other label the most by which its logit may be above the right one's. So states that errors do not
add up at are learned, which is what a certificate for all lengths needs (`statetrack certify`).

A step takes about twice as long for the second-order RNN, and five times for an LSTM, whose layer
is then not that of torch (docs/robust-training.md).

Source: interval bound propagation, Gowal et al. (2018), arXiv:1810.12715, there for images.

Departures: errors of the state at every step, not of the input; the loss is of worst logits alone,
without a share of the plain loss, as the size is 0 at first.

B batch, T time, C labels, D numbers of a state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.models import RecurrentModel, WithBoxes
from statetrack.ops import Box, in_full_precision
from statetrack.training.losses import Loss
from statetrack.training.population import Population
from statetrack.training.robust import Robust, require_boxes
from statetrack.training.settings import ROBUST
from statetrack.training.words import Words


@ROBUST.register("interval")
class Interval(Robust):
    """The loss of the worst logits, from bounds of the states."""

    default_size = 0.1

    def check(self, model: nn.Module) -> None:
        """The model has to take boxes of states to boxes."""
        require_boxes(model, "interval", such_as="second-order-rnn")

    def train(
        self, population: Population, words: Words, loss: Loss, step: int
    ) -> tuple[Tensor, Tensor]:
        """The worst logits and their loss; the plain ones as long as the size is 0."""
        size = self.size_at(step)
        logits = self._worst(population, words, size) if size else population(words.symbols)
        return self.with_loss(logits, words, loss)

    def validate(self, population: Population, words: Words, logits: Tensor, loss: Loss) -> Tensor:
        """The loss of the worst logits, with the whole size at every step of training."""
        return self.with_loss(self._worst(population, words, self.size), words, loss)[1]

    @staticmethod
    def _worst(population: Population, words: Words, size: float) -> Tensor:
        bounds = StateBounds(population.model, size)
        return population.through(bounds, "model", True, words.symbols, words.labels)


class StateBounds(nn.Module):
    """A model that gives its worst logits, for states that are off by `size` before each symbol."""

    def __init__(self, model: nn.Module, size: float) -> None:
        super().__init__()
        self.model = model
        self.size = size

    @in_full_precision
    def forward(self, symbols: Tensor, labels: Tensor) -> Tensor:
        """Logits [B, T, C] of symbols and labels [B, T].

        Their mean is 0, and each is as far above that of the label as it can be.
        """
        model = self.model
        assert isinstance(model, WithBoxes) and isinstance(model, RecurrentModel)
        first = model.flat(model.initial_state(symbols.shape[0]))
        box, found = Box(first, first), []
        for symbol in symbols.unbind(1):
            box = model.box_step(symbol, box.grown(self.size))
            found.append(box)
        states = Box(*(torch.stack(bounds, 1).flatten(0, 1) for bounds in zip(*found, strict=True)))
        leads = model.box_leads(states, labels.flatten())
        logits = leads - leads.mean(-1, keepdim=True)
        return logits.unflatten(0, symbols.shape)
