"""Linear maps of many rows by a loop.

K inputs, N outputs.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, or_zeros, rows_of

LEAST_ROWS = 256
"""From so many rows on, one product takes longer than its call."""


def linear(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, others: Tensor | None = None
) -> Tensor:
    """W x + b of rows x [..., K], with W [N, K] and b [N], plus others: [..., N]."""
    return call(inputs, _LINEAR, weight, bias, others, has_lanes=False)[0]


def linear_beside(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, others: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The same, and the rows for other uses: gradients of both are added in one pass."""
    outputs, same = call(inputs, _BESIDE, weight, bias, others, has_lanes=False)
    return outputs, same


def map_rows(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, others: Tensor | None = None
) -> Tensor:
    """Outputs [R, ..., N] of rows [R, ..., K], weights [R, N, K] and biases [R, N].

    Others [R, ..., N] are added to them.
    """
    outputs = inputs.new_empty(*inputs.shape[:-1], weight.shape[1])
    rows, stride = rows_of(inputs, inputs.dim() - 1)
    sizes = _sizes(inputs, weight)
    given = contiguous(weight, bias, others)
    loops("linear").linear_forward(rows, *given, outputs, sizes, stride)
    return outputs


def map_rows_backward(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    by_outputs: Tensor,
    by_same: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The gradients by rows, to which `by_same` is added, by weights and biases."""
    rows, stride = rows_of(inputs, inputs.dim() - 1)
    by_inputs, by_weight = inputs.new_empty(inputs.shape), weight.new_zeros(weight.shape)
    by_bias = None if bias is None else bias.new_zeros(bias.shape)
    arrays = contiguous(weight, by_outputs, by_same, by_inputs, by_weight, by_bias)
    loops("linear").linear_backward(rows, *arrays, _sizes(inputs, weight), stride)
    return by_inputs, by_weight, by_bias


def _forward(
    keep: bool, inputs: Tensor, weight: Tensor, bias: Tensor | None, others: Tensor | None
) -> tuple[Tensor, ...]:
    outputs = map_rows(inputs, weight, bias, others)
    return outputs, outputs.new_empty(len(outputs), 0)


def _backward(
    given: list[Tensor], kept: Tensor, by_outputs: Tensor | None, by_same: Tensor | None = None
) -> Tensors:
    inputs, weight, bias, others = given
    by_outputs = or_zeros(by_outputs, (*inputs.shape[:-1], weight.shape[1]), inputs)
    by_others = None if others is None else by_outputs
    return *map_rows_backward(inputs, weight, bias, by_outputs, by_same), by_others


_LINEAR, _BESIDE = Loop(_forward, _backward), Loop(_forward, _backward, passes=1)


def _sizes(inputs: Tensor, weight: Tensor) -> tuple[int, ...]:
    """R, M, K and N."""
    lanes, width = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * width), width, weight.shape[1]
