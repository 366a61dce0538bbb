"""Gates and mixtures of rows by loops.

D width, n mixtures.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of_each


def gated(inputs: Tensor, gates: Tensor) -> Tensor:
    """Products x z sigmoid(z) of inputs x and gates z, [..., D] both."""
    return call(inputs.unsqueeze(0), _GATED, gates.unsqueeze(0))[0].squeeze(0)


def _gated_forward(keep: bool, inputs: Tensor, gates: Tensor) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(inputs.shape)
    given, strides = rows_of_each(inputs, gates, leading=inputs.dim() - 1)
    size = inputs.shape[-1]
    loops("gates").gated_forward(*given, outputs, inputs.numel() // size, size, strides)
    return outputs, outputs.new_empty(len(outputs), 0)


def _gated_backward(inputs: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    given, strides = rows_of_each(*inputs, leading=inputs[0].dim() - 1)
    found = [part.new_empty(part.shape) for part in inputs]
    size = inputs[0].shape[-1]
    arrays = contiguous(by_outputs, *found)
    loops("gates").gated_backward(*given, *arrays, by_outputs.numel() // size, size, strides)
    return tuple(found)


_GATED = Loop(_gated_forward, _gated_backward)


def mixed(inputs: Tensor, before: Tensor, shares: Tensor) -> Tensor:
    """Mixtures x + s (y - x) of x and y [..., D] by every row s of shares [n, D]: [n, ..., D]."""
    others = (before.unsqueeze(0), shares.unsqueeze(0))
    return call(inputs.unsqueeze(0), _MIXED, *others)[0].squeeze(0)


def _mixed_forward(
    keep: bool, inputs: Tensor, before: Tensor, shares: Tensor
) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(len(inputs), shares.shape[1], *inputs.shape[1:])
    given, strides = rows_of_each(inputs, before, leading=inputs.dim() - 1)
    arrays = contiguous(shares, outputs)
    loops("gates").mixed_forward(*given, *arrays, *_mixed_sizes(inputs, shares), strides)
    return outputs, outputs.new_empty(len(outputs), 0)


def _mixed_backward(given: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    inputs, before, shares = given
    by_inputs, by_before = inputs.new_empty(inputs.shape), before.new_empty(before.shape)
    by_shares = shares.new_zeros(shares.shape)
    numbers, strides = rows_of_each(inputs, before, leading=inputs.dim() - 1)
    tensors = (shares, by_outputs, by_inputs, by_before, by_shares)
    arrays = contiguous(*tensors)
    loops("gates").mixed_backward(*numbers, *arrays, *_mixed_sizes(inputs, shares), strides)
    return by_inputs, by_before, by_shares


def _mixed_sizes(inputs: Tensor, shares: Tensor) -> tuple[int, ...]:
    lanes, size = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * size), size, shares.shape[1]


_MIXED = Loop(_mixed_forward, _mixed_backward)
