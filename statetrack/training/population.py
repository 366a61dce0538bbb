"""R replicas of one model, trained as one.

Every parameter has a leading replica axis [R, ...]; the model itself is written for one replica
and is mapped over that axis by `torch.func.vmap`, so that one kernel call computes all replicas.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from statetrack.errors import SettingsError
from statetrack.models import TRAINING, SequenceModel, check_memory
from statetrack.training.records import Replica

Weights = dict[str, Tensor]


class Population:
    """The stacked weights of some replicas, and the one model that runs them.

    `make` builds one replica; it is called once per replica, with torch seeded by that replica's
    seed, so replicas of one seed have equal initial weights, and each has those it would have
    alone.

    Raises `SettingsError` where the weights, and what training keeps for each, do not fit into the
    memory of the device.
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
        self.parameters: Weights = {
            name: value.detach().to(device).requires_grad_() for name, value in parameters.items()
        }
        self.buffers: Weights = {name: value.to(device) for name, value in buffers.items()}

    def __len__(self) -> int:
        return len(self.replicas)

    def freeze_recurrence(self) -> None:
        """Train the parameters of the readout only.

        Raises `SettingsError` where the model has no parameters under its `readout_name`.
        """
        kind = type(self.model)
        named = kind if issubclass(kind, SequenceModel) else SequenceModel
        readout = named.readout_name
        prefix = f"{readout}."
        if not any(name.startswith(prefix) for name in self.parameters):
            raise SettingsError(
                f"freeze='recurrence' trains the readout alone, and {kind.__name__} has no "
                f"submodule {readout!r} with parameters: let its class attribute "
                "`readout_name` name it"
            )
        for name, value in self.parameters.items():
            value.requires_grad_(name.startswith(prefix))

    @property
    def trained(self) -> Weights:
        """The parameters that are trained, each [R, ...]."""
        return {name: value for name, value in self.parameters.items() if value.requires_grad}

    def __call__(self, symbols: Tensor) -> Tensor:
        """Logits [R, B, T, C] of symbols [R, B, T]."""
        vectorises = not isinstance(self.model, SequenceModel) or self.model.vectorises
        return self.through(self.model, "", vectorises, symbols)

    def through(self, module: nn.Module, name: str, vectorises: bool, *inputs: Tensor) -> Tensor:
        """What a module that has the model as its submodule `name` gives for inputs [R, ...].

        An empty name is that of the module itself. With `vectorises` all replicas are computed as
        one.
        """
        prefix = name and f"{name}."
        weights = {prefix + key: value for key, value in (self.parameters | self.buffers).items()}

        def run(weights: Weights, *inputs: Tensor) -> Tensor:
            given: Tensor = functional_call(module, weights, inputs)
            return given

        if len(self) == 1:
            alone = {key: value.squeeze(0) for key, value in weights.items()}
            return run(alone, *(each.squeeze(0) for each in inputs)).unsqueeze(0)
        if vectorises:
            return vmap(run, randomness="different")(weights, *inputs)
        apart = {key: value.unbind(0) for key, value in weights.items()}
        return torch.stack(
            [
                run(
                    {key: values[r] for key, values in apart.items()}, *(each[r] for each in inputs)
                )
                for r in range(len(self))
            ]
        )

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
