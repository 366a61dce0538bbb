"""Two linear maps with a function between them by loops.

K inputs, N outputs, L numbers between.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, loops, rows_of

Activation = Literal["none", "tanh", "sigmoid"]


def low_rank(inputs: Tensor, inner: Tensor, outer: Tensor, activation: Activation) -> Tensor:
    """W_2 f(W_1 x), [..., N], of rows x [..., K], with W_1 [L, K], W_2 [N, L] and a function f."""
    loop = Loop(partial(_forward, activation), partial(_backward, activation))
    weights = (inner.unsqueeze(0), outer.unsqueeze(0))
    return call(inputs.unsqueeze(0), loop, *weights)[0].squeeze(0)


def _forward(
    activation: Activation, keep: bool, inputs: Tensor, inner: Tensor, outer: Tensor
) -> tuple[Tensor, ...]:
    rows, stride = rows_of(inputs, inputs.dim() - 1)
    (lanes, num_rows, width), rank, size = _sizes(inputs), inner.shape[1], outer.shape[1]
    between = inputs.new_empty(*inputs.shape[:-1], rank)
    outputs = inputs.new_empty(*inputs.shape[:-1], size)
    inner, outer = inner.contiguous(), outer.contiguous()
    run = loops("linear").linear_forward
    run(rows, inner, None, between, lanes, num_rows, width, rank, stride)
    if activation != "none":
        loops("activations").activate(between, between.numel(), activation == "tanh")
    run(between, outer, None, outputs, lanes, num_rows, rank, size, rank)
    return outputs, between if keep else inputs.new_empty(lanes, 0)


def _backward(
    activation: Activation, given: list[Tensor], between: Tensor, by_outputs: Tensor
) -> Tensors:
    inputs, inner, outer = given
    rows, stride = rows_of(inputs, inputs.dim() - 1)
    (lanes, num_rows, width), rank, size = _sizes(inputs), inner.shape[1], outer.shape[1]
    by_inputs, by_between = inputs.new_empty(inputs.shape), between.new_empty(between.shape)
    by_inner, by_outer = inner.new_zeros(inner.shape), outer.new_zeros(outer.shape)
    inner, outer, by_outputs = inner.contiguous(), outer.contiguous(), by_outputs.contiguous()
    run, sizes = loops("linear").linear_backward, (lanes, num_rows)
    found = (by_between, by_outer, None, None)
    run(between, outer, by_outputs, *found, *sizes, rank, size, rank)
    if activation != "none":
        numbers = (between, by_between, between.numel())
        loops("activations").activate_backward(*numbers, activation == "tanh")
    found = (by_inputs, by_inner, None, None)
    run(rows, inner, by_between, *found, *sizes, width, rank, stride)
    return by_inputs, by_inner, by_outer


def _sizes(inputs: Tensor) -> tuple[int, int, int]:
    """R, rows and K."""
    lanes, width = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * width), width
