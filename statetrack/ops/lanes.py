"""Parts of every kernel: the lane axis, the backward pass, and the running normalisation.

Kernels have an axis of lanes: independent copies of one recurrence, each with its own operators.
Replicas of a population are lanes, and so are the blocks of a block-diagonal operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.precision import in_full_precision


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """The typed results of an autograd function; its own `apply` is untyped."""
    return function.apply(*arguments)


def join_lanes(tensor: Tensor, mapped: int | None, size: int, axis: int) -> Tensor:
    """The axis that `vmap` maps, merged into the lane axis at `axis` as its outer part.

    A tensor that is not mapped is repeated (without a copy where that is possible).
    """
    if mapped is None:
        shape = [-1] * (tensor.dim() + 1)
        shape[axis] = size
        return tensor.unsqueeze(axis).expand(shape).flatten(axis, axis + 1)
    return tensor.movedim(mapped, axis).flatten(axis, axis + 1)


def place_lanes(tensor: Tensor, mapped: int | None, size: int, axis: int) -> Tensor:
    """The axis that `vmap` maps, put at `axis`: for kernels that act coordinate by coordinate."""
    if mapped is None:
        shape = [-1] * (tensor.dim() + 1)
        shape[axis] = size
        return tensor.unsqueeze(axis).expand(shape)
    return tensor.movedim(mapped, axis)


def backward_pass(
    gradients: Callable[[Any, Tensor], tuple[Tensor | None, ...]],
) -> Callable[..., tuple[Tensor | None, ...]]:
    """A hand-written backward pass: of the first result only, in full precision, and once.

    The function's further results are values saved for this pass. Without an incoming gradient
    there is no outgoing one.
    """
    precise = in_full_precision(gradients)

    def backward(ctx: Any, gradient: Tensor | None, *kept: None) -> tuple[Tensor | None, ...]:
        if gradient is None:
            return (None,) * len(ctx.needs_input_grad)
        return precise(ctx, gradient)

    return once_differentiable(backward)


def check_normalise(normalise_every: int, inputs: Tensor | None) -> None:
    """Assert the conditions of a running normalisation: no gradients and no additive term."""
    assert normalise_every >= 0
    if normalise_every:
        assert inputs is None, "additive terms are not scale-invariant: states cannot be rescaled"
        assert not torch.is_grad_enabled(), "a rescaled state has no gradient"


def is_due(step: int, normalise_every: int) -> bool:
    """Whether the state after the step numbered `step` (from 0) is to be normalised."""
    return normalise_every > 0 and (step + 1) % normalise_every == 0


def normalise_(state: Tensor, dims: tuple[int, ...]) -> None:
    """Divide the state by its largest magnitude over `dims`, in place; zeros stay zeros.

    The largest magnitude, and not the Euclidean norm, whose squares could overflow.
    """
    norm = torch.linalg.vector_norm(state, ord=torch.inf, dim=dims, keepdim=True)
    state.div_(norm.clamp_min_(torch.finfo(norm.dtype).tiny))
