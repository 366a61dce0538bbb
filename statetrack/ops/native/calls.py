"""How a loop is called: tensors as arrays, `vmap`, and the backward pass of autograd."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from statetrack.ops.lanes import (
    apply,
    is_transformed,
    join_lanes,
    place_lanes,
    refusing_second_derivatives,
    require_below,
    signed,
)


def why_not(device: torch.device, dtype: torch.dtype = torch.float32) -> str | None:
    """Why the loops cannot run on tensors of a device and type; None if they can."""
    if device.type != "cpu":
        return f"its loops run on the CPU, and the device is {device}"
    if dtype not in _TYPES:
        return f"its loops get float32 or float64, not {dtype}"
    if is_transformed():
        return "its loops have no derivatives by torch.func"
    return _missing()


_TYPES = torch.float32, torch.float64


@cache
def _missing() -> str | None:
    """What is in the way of the loops on this machine; None if nothing is."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return "NUMBA_DISABLE_JIT is set, and its loops are compiled"
    try:
        loops("vectors")
    except ModuleNotFoundError as problem:
        return f"{problem.name} is not installed (pip install numba)"
    except Exception as problem:
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        return f"numba cannot be used ({reason})"
    return None


@cache
def loops(family: str) -> Any:
    """The compiled loops of a family, imported when first needed: numba takes time to import."""
    return import_module(f"statetrack.ops.loops.{family}")


def known(numbers: Tensor, count: int) -> Tensor:
    """Numbers from 0 to `count` - 1, at which loops read and write: they check none themselves.

    Raises `IndexError` for others, and `ValueError` where there are none: no words, or words of no
    symbols.
    """
    if not numbers.numel():
        raise ValueError(f"symbols of the shape {[*numbers.shape]}: no words, or empty ones")
    require_below(numbers, count)
    return numbers


def require_shape(state: Tensor, *shape: int) -> None:
    """Raise `ValueError` for a state of another shape than words have: loops would not notice."""
    if state.shape != shape:
        raise ValueError(f"a state of the shape {[*state.shape]}, where words have {[*shape]}")


# --- calls ---

Tensors = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class Loop:
    """A loop and its backward pass, of tensors with an axis of words or lanes first.

    `forward` gives the results of tensors and whether to keep what the backward pass needs, and
    last that. `backward` gives the gradients of tensors, of what was kept and of the results'
    gradients.
    """

    forward: Callable[..., tuple[Tensor, ...]]
    backward: Callable[..., Tensors]
    keeps_outputs: bool = False
    """Whether the backward pass needs the first result instead of the last."""
    passes: int = 0
    """How many of the first tensors are the last results, with gradients given to `backward`."""
    repeats: bool = False
    """Whether the first tensor is a state, which all replicas of `vmap` may share.

    The loop then gets fewer words of it than of the second tensor: they repeat.
    """


def call(
    first: Tensor, loop: Loop, *inputs: Tensor | None, has_lanes: bool = True
) -> tuple[Tensor, ...]:
    """The results of a loop, also in `vmap`, in the type of the tensor `first`, an input too.

    Whole numbers among the inputs stay as they are. Where tensors, and so the results, have no axis
    of lanes, the loop gets one: of one lane, or in `vmap` of the replicas.
    """
    if torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return call(first, loop, *inputs, has_lanes=has_lanes)
    if loop.repeats and inputs[0] is not None:
        require_shape(first, len(inputs[0]), *first.shape[1:])
    dtype = first.dtype
    given = [
        part if part is None or part.dtype == dtype or not part.is_floating_point()
        else part.to(dtype)
        for part in inputs
    ]  # fmt: skip
    results: tuple[Tensor, ...] = apply(
        _Loop, loop, torch.is_grad_enabled(), has_lanes, first, *given
    )
    return results[:-1]


class _Loop(torch.autograd.Function):
    """A loop with its own backward pass, which `vmap` calls once for all replicas."""

    @staticmethod
    @signed
    def forward(
        loop: Loop, differentiable: bool, has_lanes: bool, *inputs: Tensor | None
    ) -> tuple[Tensor, ...]:
        keep = differentiable and _need_gradients(inputs)
        if has_lanes:
            results = loop.forward(
                keep, *[None if part is None else part.detach() for part in inputs]
            )
        else:
            *found, kept = loop.forward(keep, *_in_one_lane(inputs))
            results = (*[part.squeeze(0) for part in found], kept)
        if not loop.passes:
            return results
        passed = [part.view_as(part) for part in inputs[: loop.passes] if part is not None]
        return *results[:-1], *passed, results[-1]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.loop, _, ctx.has_lanes, *given = inputs
        ctx.mark_non_differentiable(output[-1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*given, output[0 if ctx.loop.keeps_outputs else -1])

    @staticmethod
    @refusing_second_derivatives
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if all(gradient is None for gradient in gradients):
            return (None,) * len(ctx.needs_input_grad)
        *inputs, kept = ctx.saved_tensors
        if ctx.has_lanes:
            return None, None, None, *ctx.loop.backward(inputs, kept, *gradients[:-1])
        if ctx.loop.keeps_outputs:
            kept = kept.unsqueeze(0)
        found = ctx.loop.backward(_in_one_lane(inputs), kept, *_in_one_lane(gradients[:-1]))
        return None, None, None, *[None if part is None else part.squeeze(0) for part in found]

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        loop: Loop,
        differentiable: bool,
        has_lanes: bool,
        *inputs: Tensor | None,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        first = inputs[0]
        plain = first is not None and in_dims[3] is None and not first.requires_grad
        repeated = loop.repeats and plain
        place = join_lanes if has_lanes else place_lanes
        together = [
            part if part is None or number < repeated else place(part, mapped, size, 0)
            for number, (part, mapped) in enumerate(zip(inputs, in_dims[3:], strict=True))
        ]
        results = apply(_Loop, loop, differentiable, True, *together)
        if has_lanes:
            results = tuple(part.unflatten(0, (size, -1)) for part in results)
        return results, (0,) * len(results)


def _need_gradients(parts: Sequence[Tensor | None]) -> bool:
    for part in parts:
        if part is not None and part.requires_grad:
            return True
    return False


def _in_one_lane(parts: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [None if part is None else part.unsqueeze(0) for part in parts]


def rows_of(tensor: Tensor, leading: int) -> tuple[Tensor, int]:
    """A tensor with `leading` axes before its rows, and from row to row how many numbers.

    Rows need not follow one another, as those of a part of a tensor: only others are copied.
    """
    shape, strides = tensor.shape, tensor.stride()
    if tensor.is_contiguous():
        return tensor, shape[leading:].numel()
    expected = 1
    for axis in range(tensor.dim() - 1, leading - 1, -1):
        if shape[axis] != 1 and strides[axis] != expected:
            tensor = tensor.contiguous()
            break
        expected *= shape[axis]
    rows = shape[:leading]
    strides = tensor.stride()
    axes = [axis for axis in range(leading) if rows[axis] != 1]
    step = strides[axes[-1]] if axes else expected
    wanted = step
    for axis in reversed(axes):
        if strides[axis] != wanted:
            return tensor.contiguous(), expected
        wanted *= rows[axis]
    return tensor, step


def contiguous(*parts: Tensor | None) -> list[Tensor | None]:
    """Tensors as loops read them; None stays None."""
    return [None if part is None else part.contiguous() for part in parts]


def addresses_of(parts: Sequence[Tensor | None]) -> Tensor:
    """The addresses of some tensors, which a loop reads one after the other; 0 for None."""
    return torch.tensor([0 if part is None else part.data_ptr() for part in parts])


def or_zeros(gradient: Tensor | None, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A gradient, contiguous; zeros of a shape where there is none."""
    return like.new_zeros(shape) if gradient is None else gradient.contiguous()


def rows_of_each(
    *parts: Tensor | None, leading: int = 2
) -> tuple[list[Tensor | None], tuple[int, ...]]:
    """Sequences [W, T, ...], and from position to position how many numbers; 0 for None."""
    rows = [(None, 0) if part is None else rows_of(part, leading) for part in parts]
    return [numbers for numbers, _ in rows], tuple(step for _, step in rows)
