"""Parameters set by hand: values put in place, and maps solved from the inputs that they get.

`aim` gives a linear map the weights with which it maps given inputs to wanted outputs.

B batch, T time, V symbols, N inputs, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.constructions.case import NotBuilt
from statetrack.sources import Floats

OPEN = 60.0
"""A gate's logit: sigmoid(60) is 1, and sigmoid(-60) is 1e-26."""

SHUT = -800.0
"""A gate's logit: sigmoid(-800), and softplus(-800), are 0."""

LONG = 1000.0
"""A time step after which nothing is left: exp(-1000) is 0."""


def put(parameter: Tensor, values: Any) -> None:
    """Write values into a parameter of the same shape."""
    values = torch.as_tensor(np.asarray(values), dtype=parameter.dtype)
    assert parameter.shape == values.shape, (parameter.shape, values.shape)
    with torch.no_grad():
        parameter.copy_(values)


def inputs_of(model: nn.Module, module: nn.Module, symbols: Tensor) -> Tensor:
    """What a submodule is given when the model reads symbols `[B, T]`, usually `[B, T, D]`."""
    caught: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, given: caught.append(given[0]))
    with torch.no_grad():
        model(symbols)
    handle.remove()
    return torch.cat(caught, 1)  # long words are read in pieces


def mixer_inputs(model: Any) -> Floats:
    """What the first mixer gets for every symbol, `[V, D]`."""
    symbols = torch.arange(model.num_symbols).unsqueeze(1)
    found: Floats = inputs_of_mixer(model, 0, symbols).squeeze(1).numpy()
    return found


def inputs_of_mixer(model: Any, layer: int, symbols: Tensor) -> Tensor:
    """What the mixer of a layer is given when the model reads symbols `[B, T]`: `[B, T, D]`."""
    mixer = model.blocks[layer].mixer
    caught: list[Tensor] = []
    scan = mixer.scan

    def caught_and_scanned(inputs: Tensor, state: Any) -> Any:
        caught.append(inputs)
        return scan(inputs, state)

    mixer.scan = caught_and_scanned
    try:
        with torch.no_grad():
            model(symbols)
    finally:
        del mixer.scan
    return torch.cat(caught, 1)  # long words are read in pieces


def aim(
    linear: nn.Linear, inputs: Floats, wanted: Floats, rows: slice | Sequence[int] = slice(None)
) -> None:
    """Let some rows of a linear map give wanted outputs `[N, rows]` for inputs `[N, D]`.

    The bias of these rows is zero. Raises `NotBuilt` where no map gives these outputs.
    """
    weight = np.linalg.lstsq(inputs, wanted, rcond=1e-12)[0]
    error = np.abs(inputs @ weight - wanted).max(initial=0.0)
    if error > 1e-8 * max(1.0, np.abs(wanted).max(initial=0.0)):
        raise NotBuilt(f"a linear map misses what it is to give by {error:.1e}")
    with torch.no_grad():
        linear.weight[rows] = torch.as_tensor(weight.T, dtype=linear.weight.dtype)
        if linear.bias is not None:
            linear.bias[rows] = 0.0


def one_hot_embedding(model: Any, first: int = 0) -> None:
    """Every symbol a unit vector of its own, from coordinate `first` on."""
    table = np.zeros(model.embedding.weight.shape)
    table[:, first : first + model.num_symbols] = np.eye(model.num_symbols)
    put(model.embedding.weight, table)


def silu_preimage(values: Floats) -> Floats:
    """The larger x with x sigmoid(x) = value, for values of at least -0.275."""
    assert values.min(initial=0.0) > -0.275, values.min()
    low = np.full_like(values, -1.2784645427610738)  # where x sigmoid(x) is least
    high = np.abs(values) + 2.0
    for _ in range(100):
        x = (low + high) / 2
        over = x / (1 + np.exp(-x)) > values
        low, high = np.where(over, low, x), np.where(over, x, high)
    return np.asarray((low + high) / 2)


def identity_convolution(filters: nn.Conv1d | None) -> None:
    """Let a causal convolution pass on the position's own input; None is one that is left out."""
    if filters is not None:
        weight = np.zeros(filters.weight.shape)
        weight[..., -1] = 1
        put(filters.weight, weight)


ONE = float(silu_preimage(np.ones(1))[0])
"""silu(x) = 1."""


def unit_columns(linear: nn.Linear, begin: int, count: int) -> None:
    """Let output coordinates `begin ..` be the first `count` inputs."""
    weight = np.zeros(linear.weight.shape)
    weight[begin : begin + count, :count] = np.eye(count)
    put(linear.weight, weight)
