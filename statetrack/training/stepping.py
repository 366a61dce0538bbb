"""One optimiser for a population, with a separate state and learning rate for every replica.

The weights of one replica are views into the stacked weights [R, ...]. Each view is a
parameter of an ordinary `torch.optim` optimiser, fused where torch supports it, so a replica's
step is exactly the one it would have alone, and stopped replicas are removed with their state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from statetrack.training.population import Population
from statetrack.training.registries import OPTIMISERS
from statetrack.training.settings import TrainSettings

Moments = dict[str, Any]
Key = tuple[str, int]
"""A parameter's name and its replica's index."""


class Optimiser:
    """Updates every trained parameter of every replica of a population."""

    def __init__(
        self, population: Population, settings: TrainSettings, moments: dict[Key, Moments]
    ) -> None:
        self.population = population
        self.settings = settings
        self.views: dict[Key, Tensor] = {}
        groups: dict[float, list[Tensor]] = {}
        for name, value in population.trained.items():
            for row, replica in enumerate(population.replicas):
                view = value.detach()[row].requires_grad_()
                self.views[name, replica.index] = view
                groups.setdefault(replica.lr, []).append(view)
        self.lrs = list(groups)
        self.optimiser = OPTIMISERS[settings.optimizer].make(
            [{"params": views, "lr": lr} for lr, views in groups.items()], settings
        )
        for key, state in moments.items():
            if key in self.views:
                self.optimiser.state[self.views[key]] = state

    def step(self, step: int) -> None:
        """Take optimisation step number `step` (from 0) along the gradients, and clear them."""
        trained = self.population.trained
        if self.settings.clip:
            clip_each_replica([value.grad for value in trained.values()], self.settings.clip)
        for name, value in trained.items():
            assert value.grad is not None, name
            for row, replica in enumerate(self.population.replicas):
                self.views[name, replica.index].grad = value.grad[row]
        factor = schedule_factor(step, self.settings)
        for group, lr in zip(self.optimiser.param_groups, self.lrs, strict=True):
            group["lr"] = lr * factor
        self.optimiser.step()
        for value in trained.values():
            value.grad = None

    def moments(self) -> dict[Key, Moments]:
        """The optimiser's state of every parameter of every replica."""
        return {key: dict(self.optimiser.state[view]) for key, view in self.views.items()}


def schedule_factor(step: int, settings: TrainSettings) -> float:
    """The share of the learning rate used in step number `step` (from 0)."""
    steps = settings.steps_at(step)
    warmup = round(settings.warmup * steps)
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    if settings.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * done))
    if settings.schedule == "linear":
        return 1 - done
    return 1.0


def clip_each_replica(gradients: Sequence[Tensor | None], largest: float) -> None:
    """Scale the gradients [R, ...] so that their norm in each replica is at most `largest`."""
    given = [gradient for gradient in gradients if gradient is not None]
    norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in given]).norm(dim=0)
    scale = (largest / (norms + 1e-6)).clamp(max=1.0)  # [R], as torch.nn.utils has it
    for gradient in given:
        gradient.mul_(scale.view(-1, *[1] * (gradient.dim() - 1)))
