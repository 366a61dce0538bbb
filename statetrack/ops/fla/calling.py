"""How a kernel of flash-linear-attention is loaded and called.

A kernel takes activations only, with the batch as their first axis; under `vmap` the replica axis
is merged into the batch.

Kernels get float32 and multiply in float32. On recent GPUs Triton uses TF32 (a 10-bit mantissa)
for matrix products, which is not precise enough for a state that is kept over hundreds of steps.
So TF32 is switched off, unless the environment variable `TRITON_F32_DEFAULT` is set.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.lanes import apply, join_lanes
from statetrack.ops.precision import in_full_precision

Kernel = Callable[..., tuple[Tensor, ...]]


def load(module: str, name: str) -> Callable[..., Any]:
    """A function of flash-linear-attention's `ops`, imported when it is first needed."""
    os.environ.setdefault("TRITON_F32_DEFAULT", "ieee")
    function: Callable[..., Any] = getattr(importlib.import_module(f"fla.ops.{module}"), name)
    return function


@in_full_precision
def call(kernel: Kernel, *inputs: Tensor) -> tuple[Tensor, ...]:
    """The results of a kernel that maps tensors [B, ...] to tensors [B, ...], also in `vmap`."""
    results: tuple[Tensor, ...] = apply(_Kernel, kernel, [], *inputs)
    return results


class _Kernel(torch.autograd.Function):
    """A kernel with its own backward pass, which `vmap` calls once for all replicas.

    `vmap` cannot trace a kernel, and an autograd function may save only its own inputs and
    outputs. So the kernel runs on leaves, and `graph` holds leaves and results for the backward
    pass.
    """

    @staticmethod
    def forward(kernel: Kernel, graph: list[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        differentiable = any(part.requires_grad for part in inputs)
        # all or none: the backward pass of some kernels assumes that the first state, if given,
        # requires a gradient
        leaves = [part.detach().requires_grad_(differentiable) for part in inputs]
        with torch.set_grad_enabled(differentiable):
            results = kernel(*leaves)
        graph.extend((leaves, results))
        return tuple(result.detach() for result in results)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)
        ctx.graph = inputs[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        leaves, results = ctx.graph
        given = [pair for pair in zip(results, gradients, strict=True) if pair[1] is not None]
        if not given:
            return (None,) * len(ctx.needs_input_grad)
        outputs, incoming = zip(*given, strict=True)
        by_leaf = torch.autograd.grad(outputs, leaves, incoming, allow_unused=True)
        return None, None, *by_leaf

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        kernel: Kernel,
        graph: list[Any],
        *inputs: Tensor,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        together = [
            join_lanes(part, mapped, size, 0)
            for part, mapped in zip(inputs, in_dims[2:], strict=True)
        ]
        results = apply(_Kernel, kernel, [], *together)
        return tuple(part.unflatten(0, (size, -1)) for part in results), (0,) * len(results)
