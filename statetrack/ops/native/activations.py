"""Hyperbolic tangents, linear maps of these and of sigmoids, and log-decays, by loops.

K inputs, N outputs.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops
from statetrack.ops.native.linear import map_rows, map_rows_backward


def hyperbolic_tangent(inputs: Tensor) -> Tensor:
    """Of numbers [..., D]."""
    return call(inputs, _TANGENT, has_lanes=False)[0]


def _tangent_forward(keep: bool, inputs: Tensor) -> tuple[Tensor, ...]:
    found = inputs.new_empty(inputs.shape)
    loops("activations").activate(inputs.contiguous(), found, found.numel(), True)
    return found, found.new_empty(len(found), 0)


def _tangent_backward(given: list[Tensor], found: Tensor, by_outputs: Tensor) -> Tensors:
    by_inputs = by_outputs.clone(memory_format=torch.contiguous_format)
    loops("activations").activate_backward(found.contiguous(), by_inputs, found.numel(), True)
    return (by_inputs,)


_TANGENT = Loop(_tangent_forward, _tangent_backward, keeps_outputs=True)


def log_decays(inputs: Tensor, bias: Tensor, *, most: float) -> Tensor:
    """-exp(min(x + b, most)) of rows x [..., D] and a bias b [D]."""
    loop = Loop(partial(_decays_forward, most), partial(_decays_backward, most))
    return call(inputs, loop, bias, has_lanes=False)[0]


def _decays_forward(most: float, keep: bool, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    found = inputs.new_empty(inputs.shape)
    sizes = len(inputs), inputs.numel() // bias.numel(), inputs.shape[-1]
    loops("activations").decays_forward(*contiguous(inputs, bias), found, sizes, most)
    return found, found.new_empty(len(found), 0)


def _decays_backward(most: float, given: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    inputs, bias = given
    by_inputs, by_bias = inputs.new_empty(inputs.shape), bias.new_zeros(bias.shape)
    sizes = len(inputs), inputs.numel() // bias.numel(), inputs.shape[-1]
    arrays = (*contiguous(inputs, bias, by_outputs), by_inputs, by_bias)
    loops("activations").decays_backward(*arrays, sizes, most)
    return by_inputs, by_bias


def activated_linear(inputs: Tensor, weight: Tensor, *, signed: bool) -> Tensor:
    """W tanh(x), or W sigmoid(x) unless `signed`, [..., N], of rows x [..., K], with W [N, K]."""
    loop = Loop(partial(_forward, signed), partial(_backward, signed))
    return call(inputs, loop, weight, has_lanes=False)[0]


def _forward(signed: bool, keep: bool, inputs: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    found = inputs.new_empty(inputs.shape)
    loops("activations").activate(inputs.contiguous(), found, found.numel(), signed)
    outputs = map_rows(found, weight, None)
    return outputs, found if keep else found.new_empty(len(found), 0)


def _backward(signed: bool, given: list[Tensor], found: Tensor, by_outputs: Tensor) -> Tensors:
    by_inputs, by_weight, _ = map_rows_backward(found, given[1], None, by_outputs)
    loops("activations").activate_backward(found, by_inputs, found.numel(), signed)
    return by_inputs, by_weight
