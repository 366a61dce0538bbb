"""R replicas of one model, trained as one, with a separate optimiser state for every replica.

Every parameter has a leading replica axis [R, ...]; the model itself is written for one replica
and is mapped over that axis by `torch.func.vmap`, so that one kernel call computes all replicas.
The weights of one replica are views into the stacked weights. Each view is a parameter of an
ordinary `torch.optim` optimiser, fused where torch supports it, so a replica's step is the one it
would have alone, and stopped replicas are removed with their state. Of gradients the sums are added
in another order than alone: they differ by rounding, which training may multiply from step to step.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from statetrack.errors import SettingsError, setting
from statetrack.models import (
    TRAINING,
    SequenceModel,
    cannot_vectorise,
    check_memory,
    other_names,
)
from statetrack.training.optimisers import step_of, without_compiler
from statetrack.training.records import Replica
from statetrack.training.settings import OPTIMISERS, TrainSettings

Weights = dict[str, Tensor]


class Population:
    """The stacked weights of some replicas, and the one model that runs them.

    `make` builds one replica; it is called once per replica, with torch seeded by that replica's
    seed, so replicas of one seed have equal initial weights, and each has those it would have
    alone.

    Parameters that require no gradient stay as they are. Raises `SettingsError` where the weights,
    and what training keeps for each, do not fit into the memory of the device.
    """

    def __init__(
        self,
        make: Callable[[], nn.Module],
        replicas: Sequence[Replica],
        device: torch.device,
    ) -> None:
        self.replicas = tuple(replicas)
        check_memory(make, len(self.replicas), TRAINING, device)
        models = []
        with torch.random.fork_rng(devices=[]):
            for replica in replicas:
                torch.manual_seed(replica.seed)
                models.append(make())
        parameters, buffers = stack_module_state(list(models))
        self.model = models[0].to(device)
        self.other_names = other_names(self.model)
        self.parameters: Weights = {
            name: value.detach().to(device).requires_grad_(value.requires_grad)
            for name, value in parameters.items()
        }
        self.buffers: Weights = {name: value.to(device) for name, value in buffers.items()}

    def __len__(self) -> int:
        return len(self.replicas)

    def freeze_recurrence(self) -> None:
        """Train the parameters of the readout only, of those that require a gradient.

        Raises `SettingsError` where the model has no parameters under its `readout_name`.
        """
        kind = type(self.model)
        readout = getattr(self.model, "readout_name", SequenceModel.readout_name)
        prefix = f"{readout}."
        if not any(name.startswith(prefix) for name in self.parameters):
            raise SettingsError(
                f"{setting('freeze', 'recurrence')} trains the readout alone, and {kind.__name__} "
                f"has no submodule {readout!r} with parameters: let its class attribute "
                "`readout_name` name it"
            )
        for name, value in self.parameters.items():
            value.requires_grad_(value.requires_grad and name.startswith(prefix))

    @property
    def trained(self) -> Weights:
        """The parameters that are trained, each [R, ...]."""
        return {name: value for name, value in self.parameters.items() if value.requires_grad}

    def __call__(self, symbols: Tensor) -> Tensor:
        """Logits [R, B, T, C] of symbols [R, B, T]."""
        model = self.model
        if isinstance(model, SequenceModel) and model.reads_replicas:
            weights = self.in_all_places(self.parameters | self.buffers)
            logits: Tensor = functional_call(model, weights, (symbols,), tie_weights=False)
            return logits
        return self.through(model, "", self.vectorises, symbols)

    @property
    def vectorises(self) -> bool:
        """Whether all replicas are computed as one."""
        if not isinstance(self.model, SequenceModel):
            return True
        return self.model.vectorises_on(next(iter(self.parameters.values())).device)

    def through(self, module: nn.Module, name: str, vectorises: bool, *inputs: Tensor) -> Tensor:
        """What a module that has the model as its submodule `name` gives for inputs [R, ...].

        An empty name is that of the module itself. With `vectorises` all replicas are computed as
        one. Raises `SettingsError` where that fails and one alone does not.
        """
        prefix = name and f"{name}."
        own = self.in_all_places(self.parameters | self.buffers)
        weights = {prefix + key: value for key, value in own.items()}

        def run(weights: Weights, *inputs: Tensor) -> Tensor:
            given: Tensor = functional_call(module, weights, inputs, tie_weights=False)
            return given

        if len(self) == 1:
            alone = {key: value.squeeze(0) for key, value in weights.items()}
            return run(alone, *(each.squeeze(0) for each in inputs)).unsqueeze(0)
        if vectorises:
            try:
                return vmap(run, randomness="different")(weights, *inputs)
            except Exception as error:
                with torch.no_grad():  # raises its own error where the module fails alone, too
                    run(
                        {key: value[0].clone() for key, value in weights.items()},
                        *(each[0] for each in inputs),
                    )
                kind = type(self.model).__name__
                raise SettingsError(f"{kind}: {cannot_vectorise(error)}") from error
        apart = {key: value.unbind(0) for key, value in weights.items()}
        return torch.stack(
            [
                run(
                    {key: values[r] for key, values in apart.items()}, *(each[r] for each in inputs)
                )
                for r in range(len(self))
            ]
        )

    def check_together(self, length: int) -> None:
        """Compute two words of a length as training does; nothing of the population changes.

        Raises `SettingsError` where its replicas cannot be computed as one.
        """
        buffers, device = self.buffers, next(iter(self.parameters.values())).device
        self.buffers = {name: value.clone() for name, value in buffers.items()}
        was_training = self.model.training
        self.model.train()
        try:
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
                self(torch.zeros(len(self), 2, length, dtype=torch.int64, device=device))
        finally:
            self.model.train(was_training)
            self.buffers = buffers

    def in_all_places(self, weights: Weights) -> Weights:
        """The weights, those that are in several places of the model under each of their names."""
        return weights | {other: weights[name] for other, name in self.other_names.items()}

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only the replicas in the given rows."""
        device = next(iter(self.parameters.values())).device
        index = torch.tensor(rows, dtype=torch.int64, device=device)
        self.replicas = tuple(self.replicas[row] for row in rows)
        self.parameters = {
            name: value.detach()[index].requires_grad_(value.requires_grad)
            for name, value in self.parameters.items()
        }
        self.buffers = {name: value[index] for name, value in self.buffers.items()}

    def weights(self) -> Weights:
        """A copy of all weights and buffers, each [R, ...]."""
        return {
            name: value.detach().clone() for name, value in (self.parameters | self.buffers).items()
        }

    def load(self, weights: Weights) -> None:
        """Replace all weights and buffers by others of the same shapes."""
        with torch.no_grad():
            for name, value in (self.parameters | self.buffers).items():
                value.copy_(weights[name])


Moments = dict[str, Any]
Key = tuple[str, int]
"""A parameter's name and its replica's index."""
Rows = tuple[int, ...]
"""Rows of a population's weights that follow one another."""


class Optimiser:
    """Updates every trained parameter of every replica of a population.

    Where a step is taken by coordinate, replicas in a row with one learning rate are one parameter.
    """

    def __init__(
        self, population: Population, settings: TrainSettings, moments: dict[Key, Moments]
    ) -> None:
        self.population = population
        self.settings = settings
        self.views: dict[tuple[str, Rows], Tensor] = {}
        kind = OPTIMISERS[settings.optimizer]
        groups: dict[tuple[float, bool], list[Tensor]] = {}
        model = population.model
        for name, value in population.trained.items():
            spared = (
                bool(settings.weight_decay)
                and isinstance(model, SequenceModel)
                and not model.decays(name)
            )
            for rows, lr in rows_by_rate(population.replicas, together=kind.by_coordinate):
                view = value.detach()[_index(rows)]
                self.views[name, rows] = view.requires_grad_()
                groups.setdefault((lr, spared), []).append(view)
        self.lrs = [lr for lr, _ in groups]
        with without_compiler():
            self.optimiser = kind.make(
                [
                    {"params": views, "lr": lr} | ({"weight_decay": 0.0} if spared else {})
                    for (lr, spared), views in groups.items()
                ],
                settings,
            )
        self._take_step = step_of(self.optimiser)
        for (name, rows), view in self.views.items():
            given = [moments.get((name, population.replicas[row].index)) for row in rows]
            if None not in given:
                self.optimiser.state[view] = _joined([each for each in given if each is not None])

    def step(self, step: int) -> None:
        """Take optimisation step number `step` (from 0) along the gradients, and clear them.

        The gradient of a parameter without effect on the logits, which has none, is zero.
        """
        trained = self.population.trained
        for value in trained.values():
            if value.grad is None:
                value.grad = torch.zeros_like(value)
        if self.settings.clip:
            clip_each_replica([value.grad for value in trained.values()], self.settings.clip)
        for (name, rows), view in self.views.items():
            gradient = trained[name].grad
            assert gradient is not None
            view.grad = gradient[_index(rows)]
        factor = schedule_factor(step, self.settings)
        for group, lr in zip(self.optimiser.param_groups, self.lrs, strict=True):
            group["lr"] = lr * factor
        self._take_step()
        for value in trained.values():
            value.grad = None

    def moments(self) -> dict[Key, Moments]:
        """The optimiser's state of every parameter of every replica."""
        replicas = self.population.replicas
        return {
            (name, replicas[row].index): {
                key: part if len(rows) == 1 or key == STEPS else part[place]
                for key, part in self.optimiser.state[view].items()
            }
            for (name, rows), view in self.views.items()
            for place, row in enumerate(rows)
        }


STEPS = "step"
"""The only part of an optimiser's state that replicas share."""


def _index(rows: Rows) -> int | slice:
    """What takes these rows of weights: one alone has no axis of replicas."""
    return rows[0] if len(rows) == 1 else slice(rows[0], rows[-1] + 1)


def _joined(moments: Sequence[Moments]) -> Moments:
    """The moments of a parameter of one replica, or of several as one parameter."""
    if len(moments) == 1:
        return moments[0]
    return {
        key: part if key == STEPS else torch.stack([each[key] for each in moments])
        for key, part in moments[0].items()
    }


def rows_by_rate(replicas: Sequence[Replica], *, together: bool) -> list[tuple[Rows, float]]:
    """The rows of replicas, those with one learning rate that follow one another `together`."""
    found: list[tuple[Rows, float]] = []
    for row, replica in enumerate(replicas):
        if together and found and found[-1][1] == replica.lr:
            found[-1] = (*found[-1][0], row), replica.lr
        else:
            found.append(((row,), replica.lr))
    return found


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
    norm = torch.linalg.vector_norm
    norms = norm(torch.stack([norm(gradient.flatten(1), dim=1) for gradient in given]), dim=0)
    scale = (largest / (norms + 1e-6)).clamp(max=1.0)  # [R], as torch.nn.utils has it
    for gradient in given:
        gradient.mul_(scale.view(-1, *[1] * (gradient.dim() - 1)))
