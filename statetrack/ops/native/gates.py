"""Gates of rows by a loop.

D width.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of_each


def gated(
    inputs: Tensor, gates: Tensor, others: Tensor | None = None, scales: Tensor | None = None
) -> Tensor:
    """Products (x + s y) z sigmoid(z) of inputs x, gates z and others y, [..., D], and scales [D].

    Others and scales are given together, or s y is left out.
    """
    return call(inputs, _GATED, gates, others, scales, has_lanes=False)[0]


def _gated_forward(
    keep: bool, inputs: Tensor, gates: Tensor, others: Tensor | None, scales: Tensor | None
) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(inputs.shape)
    given, strides = rows_of_each(inputs, gates, others, leading=inputs.dim() - 1)
    arrays = contiguous(scales, outputs)
    loops("gates").gated_forward(*given, *arrays, _gated_sizes(inputs), strides)
    return outputs, outputs.new_empty(len(outputs), 0)


def _gated_backward(tensors: list[Tensor | None], kept: Tensor, by_outputs: Tensor) -> Tensors:
    inputs, gates, others, scales = tensors
    given, strides = rows_of_each(inputs, gates, others, leading=by_outputs.dim() - 1)
    found = [None if part is None else part.new_empty(part.shape) for part in given]
    by_scales = None if scales is None else scales.new_zeros(scales.shape)
    arrays = contiguous(scales, by_outputs, *found, by_scales)
    loops("gates").gated_backward(*given, *arrays, _gated_sizes(by_outputs), strides)
    return *found, by_scales


def _gated_sizes(rows: Tensor) -> tuple[int, ...]:
    """R, M and D."""
    lanes, size = len(rows), rows.shape[-1]
    return lanes, rows.numel() // (lanes * size), size


_GATED = Loop(_gated_forward, _gated_backward)
