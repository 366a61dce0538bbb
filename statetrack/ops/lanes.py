"""Parts of every kernel: the lane axis, the backward pass, normalisation, and full precision.

Kernels have an axis of lanes: independent copies of one recurrence, each with its own operators.
Replicas of a population are lanes, and so are the blocks of a block-diagonal operator. They run in
float32 or better, since rounding errors accumulate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

try:
    from torch._C import _functorch
    from torch._functorch.autograd_function import VmapInfo
    from torch._functorch.pyfunctorch import (
        VmapInterpreter,
        retrieve_current_functorch_interpreter,
    )
    from torch._functorch.utils import unwrap_dead_wrappers
except ImportError:  # these names are torch's own, and other versions may have others
    KNOWS_VMAP = False
else:
    KNOWS_VMAP = True

EXPONENTS = {
    torch.float64: (torch.int64, 0x7FF0_0000_0000_0000),
    torch.float32: (torch.int32, 0x7F80_0000),
    torch.bfloat16: (torch.int16, 0x7F80),
    torch.float16: (torch.int16, 0x7C00),
}
"""Integers of the same width, and the bits of the exponent in these."""

NO_SECOND_DERIVATIVES = (
    "second derivatives are not computed through this kernel: by kernel='torch' there are those of "
    "`step` of a linear recurrence, and of most other layers"
)

P = ParamSpec("P")
Result = TypeVar("Result")


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """The results of an autograd function of all its arguments, in `vmap` by its own rule.

    torch finds that rule too, but takes 0.3 ms of Python for it: as long as a small loop runs.
    Without `vmap` it would bind the arguments to the signature of `forward` first.
    """
    if not KNOWS_VMAP:
        return function.apply(*arguments)
    if not torch._C._are_functorch_transforms_active():
        plain: Any = super(torch.autograd.Function, function)
        return plain.apply(*unwrap_dead_wrappers(arguments))
    interpreter = retrieve_current_functorch_interpreter()
    level = interpreter.level()
    parts, axes = zip(*(_without_axis(part, level) for part in arguments), strict=True)
    if not isinstance(interpreter, VmapInterpreter) or all(axis is None for axis in axes):
        return function.apply(*arguments)
    info = VmapInfo(interpreter.batch_size(), interpreter.randomness())
    with interpreter.lower():
        results, mapped = function.vmap(info, axes, *parts)
    if isinstance(results, Tensor):
        return _functorch._add_batch_dim(results, mapped, level)
    pairs = zip(results, mapped, strict=True)
    return tuple(_functorch._add_batch_dim(part, axis, level) for part, axis in pairs)


def _without_axis(argument: Any, level: int) -> tuple[Any, int | None]:
    """A tensor without the axis that `vmap` at a level maps, and that axis; others as they are."""
    if not isinstance(argument, Tensor) or not _functorch.is_batchedtensor(argument):
        return argument, None
    if _functorch.maybe_get_level(argument) != level:
        return argument, None
    return _functorch.get_unwrapped(argument), _functorch.maybe_get_bdim(argument)


def is_transformed() -> bool:
    """Whether a transform of `torch.func` other than `vmap` is active: `grad`, or `jvp`."""
    if not KNOWS_VMAP or not torch._C._are_functorch_transforms_active():
        return False
    vmap = _functorch.TransformType.Vmap
    return any(each.key() != vmap for each in _functorch.get_interpreter_stack())


def has_numbers(tensor: Tensor) -> bool:
    """Whether the numbers of a tensor can be read: not in `vmap` or `torch.compile`."""
    if not KNOWS_VMAP or type(tensor) is not Tensor or torch.compiler.is_compiling():
        return False
    return not torch._C._are_functorch_transforms_active()


def require_below(numbers: Tensor, count: int) -> None:
    """Raise `IndexError` unless all symbols, at least one, are in 0 to `count` - 1."""
    least, most = numbers.aminmax()
    if not 0 <= least.item() <= most.item() < count:
        raise IndexError(f"a symbol is not in 0 to {count - 1}")


def in_lanes(tensor: Tensor, own: int, axis: int = 0) -> Tensor:
    """The tensor with an axis of lanes at `axis`: a new one where it has only its `own` axes."""
    return tensor if tensor.dim() > own else tensor.unsqueeze(axis)


def join_lanes(tensor: Tensor, mapped: int | None, size: int, axis: int) -> Tensor:
    """The axis that `vmap` maps, merged into the lane axis at `axis` as its outer part.

    A tensor that is not mapped is repeated (without a copy where that is possible).
    """
    if mapped is None:
        shape = [-1] * (tensor.dim() + 1)
        shape[axis] = size
        return tensor.unsqueeze(axis).expand(shape).flatten(axis, axis + 1)
    moved = tensor if mapped == axis else tensor.movedim(mapped, axis)
    return moved.flatten(axis, axis + 1)


def place_lanes(tensor: Tensor, mapped: int | None, size: int, axis: int) -> Tensor:
    """The axis that `vmap` maps, put at `axis`: for kernels that act coordinate by coordinate."""
    if mapped is None:
        shape = [-1] * (tensor.dim() + 1)
        shape[axis] = size
        return tensor.unsqueeze(axis).expand(shape)
    return tensor if mapped == axis else tensor.movedim(mapped, axis)


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

    return refusing_second_derivatives(backward)


def refusing_second_derivatives(
    backward: Callable[..., tuple[Tensor | None, ...]],
) -> Callable[..., tuple[Tensor | None, ...]]:
    """A backward pass of which no second derivatives are computed: `RuntimeError` for them.

    torch's `once_differentiable` refuses it only if the incoming gradients depend on something; of
    a result that is linear in a kernel's output they do not, and second derivatives would be 0.
    """
    by_torch = once_differentiable(backward)

    @wraps(backward)
    def once(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if not torch.is_grad_enabled():
            return backward(ctx, *gradients)
        if torch._C._are_functorch_transforms_active():  # their tensors know no refusal
            found: tuple[Tensor | None, ...] = by_torch(ctx, *gradients)
            return found
        with torch.no_grad():
            found = backward(ctx, *gradients)
        refuse = torch._C._functions.DelayedError(NO_SECOND_DERIVATIVES, len(found))
        given = [None if part is None else part.detach().requires_grad_() for part in found]
        refused: tuple[Tensor | None, ...] = refuse(*given)  # type: ignore[arg-type]
        return refused

    return once


def signed(function: Callable[P, Result]) -> Callable[P, Result]:
    """The same function, with its signature worked out once.

    `torch.autograd.Function` asks for that of `forward` at every call.
    """
    function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return function


class LaneFunction(torch.autograd.Function):
    """A function of tensors with an axis of lanes, to which `vmap` adds its replicas.

    Its result has gradients by `backward`; of two results the second is kept for that pass alone.
    """

    axes: ClassVar[tuple[int, ...]]
    """The axis of lanes of every tensor among the arguments; what follows them is no tensor."""
    result_axis: ClassVar[int] = 1
    by_coordinate: ClassVar[bool] = False
    """Whether replicas get an axis of their own, before that of lanes, rather than joining it."""
    saved: ClassVar[tuple[int, ...]] = ()
    """The arguments that are saved for the backward pass, before the second result."""
    saves_result: ClassVar[bool] = False
    """Whether the first result is saved too, before the second."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        signed(cls.forward)

    @classmethod
    def setup_context(cls, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save arguments and the second result."""
        kept = () if isinstance(output, Tensor) else output[1:]
        ctx.mark_non_differentiable(*kept)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            *(inputs[place] for place in cls.saved), *(output if cls.saves_result else kept)
        )

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
        """The results of all replicas, as lanes of one call."""
        size, axis = info.batch_size, cls.result_axis
        place = place_lanes if cls.by_coordinate else join_lanes
        lanes = (
            None if part is None else place(part, mapped, size, own)
            for part, mapped, own in zip(arguments, in_dims, cls.axes, strict=False)
        )
        results = apply(cls, *lanes, *arguments[len(cls.axes) :])
        together = (results,) if isinstance(results, Tensor) else results
        if not cls.by_coordinate:
            together = tuple(part.unflatten(axis, (size, -1)) for part in together)
        if isinstance(results, Tensor):
            return together[0], axis
        return together, (axis,) * len(together)


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
    """Divide the state by a power of two, in place: its largest magnitude over `dims` is in [1, 2).

    So nothing but the exponent changes, and nothing is rounded. Zeros stay zeros.
    """
    state.div_(power_of_two(state.abs().amax(dims, keepdim=True)))


def power_of_two(sizes: Tensor) -> Tensor:
    """The largest power of two that is not above each of some sizes; of 0 the smallest normal one.

    It is the size with the bits of its significand set to 0.
    """
    whole, exponent = EXPONENTS[sizes.dtype]
    bits = sizes.clamp_min(torch.finfo(sizes.dtype).tiny).view(whole)
    return bits.bitwise_and_(exponent).view(sizes.dtype)


def turned(moduli: Tensor, phases: Tensor) -> Tensor:
    """Complex numbers of moduli [..., D] and phases [D], of which sines are computed once."""
    return torch.complex(moduli * phases.cos(), moduli * phases.sin())


def widened(tensor: Tensor) -> Tensor:
    """The tensor in float32 where it is bfloat16 or float16, else unchanged."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def in_full_precision(function: Callable[P, Result]) -> Callable[P, Result]:
    """The function with autocast switched off: its products keep the precision of its arguments."""

    @wraps(function)
    def precise(*args: P.args, **kwargs: P.kwargs) -> Result:
        device = next(arg.device.type for arg in args if isinstance(arg, Tensor))
        available = torch.amp.autocast_mode.is_autocast_available(device)
        if not available or not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return precise
