"""Noise: in training, normal noise of deviation `robust_size` is added to the state at every step.

So states are learned at which errors do not add up. It is drawn for each seed and each step of
training, and does not depend on other replicas or on a run that was interrupted. The best weights
are chosen by the loss without noise.

Source: noise on hidden states as in Jim, Giles & Horne (1996), doi:10.1109/72.548170, there for
second-order networks that learn automata.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.errors import SettingsError, setting
from statetrack.models import RecurrentModel, State
from statetrack.training.losses import Loss
from statetrack.training.population import Population
from statetrack.training.robust import Robust
from statetrack.training.settings import ROBUST
from statetrack.training.words import Words


@ROBUST.register("noise")
class Noise(Robust):
    """The loss of the logits of noisy states."""

    default_size = 0.1

    def check(self, model: nn.Module) -> None:
        """The model has to have a state."""
        if not isinstance(model, RecurrentModel):
            raise SettingsError(
                f"{setting('robust', 'noise')} needs a model that reads symbol by symbol, and "
                f"{type(model).__name__} does not: take {setting('robust', 'margin')}"
            )

    def train(
        self, population: Population, words: Words, loss: Loss, step: int
    ) -> tuple[Tensor, Tensor]:
        """The logits of noisy states and their loss; the plain ones as long as the size is 0."""
        size, model = self.size_at(step), population.model
        if not size:
            return self.with_loss(population(words.symbols), words, loss)
        assert isinstance(model, RecurrentModel)
        _, num_words, length = words.symbols.shape
        shapes = list(shapes_of(model.initial_state(num_words)))
        drawn = [
            noise(replica.seed, step, length, shapes, words.symbols.device)
            for replica in population.replicas
        ]
        stacked = (size * torch.stack(parts) for parts in zip(*drawn, strict=True))
        logits = population.through(
            Noisy(model), "model", population.vectorises, words.symbols, *stacked
        )
        return self.with_loss(logits, words, loss)


class Noisy(nn.Module):
    """A model that reads symbol by symbol and adds what it is given to its state before each."""

    def __init__(self, model: RecurrentModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, symbols: Tensor, *noises: Tensor) -> Tensor:
        """Logits [B, T, C] of symbols [B, T], with noise [T, ...] for every tensor of the state."""
        state, found = self.model.initial_state(symbols.shape[0]), []
        for position, symbol in enumerate(symbols.unbind(1)):
            state = added(state, iter([each[position] for each in noises]))
            logits, state = self.model.step(symbol, state)
            found.append(logits)
        return torch.stack(found, 1)


def shapes_of(state: Any) -> Iterator[torch.Size]:
    """The shapes of the tensors of a state that noise is added to, in order."""
    if isinstance(state, tuple):
        for part in state:
            yield from shapes_of(part)
    elif state.is_floating_point() or state.is_complex():
        yield state.shape


def added(state: Any, noises: Iterator[Tensor]) -> State:
    """A state with noise added to those tensors."""
    if isinstance(state, tuple):
        return tuple(added(part, noises) for part in state)
    assert isinstance(state, Tensor)
    return state + next(noises) if state.is_floating_point() or state.is_complex() else state


def noise(
    seed: int, step: int, length: int, shapes: list[torch.Size], device: torch.device
) -> list[Tensor]:
    """Standard normal numbers [T, ...] for every shape; a seed and a step determine them."""
    key = int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0] >> 1)
    generator = torch.Generator().manual_seed(key)
    return [torch.randn(length, *shape, generator=generator).to(device) for shape in shapes]
