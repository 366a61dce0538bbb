"""How the drivers of this folder run code that expects what this machine does not have.

Packages that the authors import but that the numbers do not need (plots, CUDA kernels) are
replaced by stand-ins; single precision that the authors write into a layer is left out, so that
their numbers can be compared in double precision.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import torch
from torch import Tensor, nn

NUM_DRAWS = 40
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


class _Missing(MagicMock):
    """A module that is not installed."""

    __version__ = "3.0.0"
    __path__: list[str] = []
    __spec__ = None


def stand_in(*names: str) -> None:
    """Make modules importable that are not installed: whatever is taken from them is a mock.

    A package is named before the modules in it.
    """
    for name in names:
        first = sys.modules.get(name.partition(".")[0])
        missing = first is None and importlib.util.find_spec(name) is None
        if missing or isinstance(first, MagicMock):
            sys.modules.setdefault(name, _Missing(__name__=name))


def load(path: Path, name: str) -> ModuleType:
    """The module of one file, importable by `name` from now on, without the packages above it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def double_precision() -> Iterator[None]:
    """`float()` and `to(torch.float32)` leave tensors as they are."""
    as_float, to = Tensor.float, Tensor.to

    def kept(self: Tensor, *given: Any, **named: Any) -> Tensor:
        if torch.float32 in given or named.get("dtype") is torch.float32:
            return self
        return to(self, *given, **named)

    Tensor.float = lambda self: self  # type: ignore[assignment, method-assign]
    Tensor.to = kept  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Tensor.float, Tensor.to = as_float, to  # type: ignore[method-assign]


def answers(layer: Callable[[Tensor], Tensor], inputs: Tensor) -> dict[str, Tensor]:
    """Inputs, outputs, and the gradient by the inputs of half the outputs' squared length."""
    inputs = inputs.requires_grad_()
    outputs = layer(inputs)
    (gradient,) = torch.autograd.grad(0.5 * outputs.square().sum(), inputs)
    return {"inputs": inputs, "outputs": outputs, "gradients.inputs": gradient}


def first_weights(make: Callable[[], nn.Module]) -> dict[str, Tensor]:
    """Quantiles of each weight that fresh layers start with, under the names `first.NAME`.

    Over `NUM_DRAWS` layers.
    """
    drawn = [dict(make().named_parameters()) for _ in range(NUM_DRAWS)]
    return {
        f"first.{name}": quantiles(torch.stack([each[name].detach() for each in drawn]))
        for name in drawn[0]
    }


def quantiles(values: Tensor) -> Tensor:
    """The values below which the shares `SHARES` of all values lie; complex ones count as two."""
    if values.is_complex():
        values = torch.view_as_real(values)
    ordered = values.double().flatten().sort().values
    return ordered[[round(share * (len(ordered) - 1)) for share in SHARES]]


def with_large_steps(layer: nn.Module, bias: str) -> nn.Module:
    """The layer with time steps of order 1 rather than 0.01: outputs depend on the state."""
    with torch.no_grad():
        layer.get_parameter(bias).add_(4)
    return layer
