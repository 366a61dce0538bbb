"""Linear maps of hyperbolic tangents and of sigmoids by loops.

K inputs, N outputs.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops


def activated_linear(inputs: Tensor, weight: Tensor, *, signed: bool) -> Tensor:
    """W tanh(x), or W sigmoid(x) unless `signed`, [..., N], of rows x [..., K], with W [N, K]."""
    loop = Loop(partial(_forward, signed), partial(_backward, signed))
    return call(inputs.unsqueeze(0), loop, weight.unsqueeze(0))[0].squeeze(0)


def _forward(signed: bool, keep: bool, inputs: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    found = inputs.new_empty(inputs.shape)
    outputs = inputs.new_empty(*inputs.shape[:-1], weight.shape[1])
    inputs, weight = inputs.contiguous(), weight.contiguous()
    loops("activations").activate(inputs, found, found.numel(), signed)
    sizes = _sizes(found, weight)
    loops("linear").linear_forward(found, weight, None, outputs, *sizes, found.shape[-1])
    return outputs, found if keep else found.new_empty(len(found), 0)


def _backward(signed: bool, given: list[Tensor], found: Tensor, by_outputs: Tensor) -> Tensors:
    weight = given[1]
    by_inputs, by_weight = found.new_empty(found.shape), weight.new_zeros(weight.shape)
    arrays = (*contiguous(weight, by_outputs), by_inputs, by_weight, None, None)
    sizes = _sizes(found, weight)
    loops("linear").linear_backward(found, *arrays, *sizes, found.shape[-1])
    loops("activations").activate_backward(found, by_inputs, found.numel(), signed)
    return by_inputs, by_weight


def _sizes(inputs: Tensor, weight: Tensor) -> tuple[int, ...]:
    """R, M, K and N."""
    lanes, width = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * width), width, weight.shape[1]
