"""Rotations of pairs of coordinates by a loop.

N width, J pairs.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of_each


def rotated(vectors: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Vectors [..., N] whose first J pairs of neighbours are turned by angles [..., J]."""
    return call(vectors, _ROTATED, cosines, sines, has_lanes=False)[0]


def _rotated_forward(
    keep: bool, vectors: Tensor, cosines: Tensor, sines: Tensor
) -> tuple[Tensor, ...]:
    outputs = vectors.new_empty(vectors.shape)
    given, strides = rows_of_each(vectors, cosines, sines, leading=vectors.dim() - 1)
    loops("rotations").rotated_forward(*given, outputs, _sizes(vectors, cosines), strides)
    return outputs, outputs.new_empty(len(outputs), 0)


def _rotated_backward(inputs: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    vectors, cosines, _ = inputs
    given, strides = rows_of_each(*inputs, leading=vectors.dim() - 1)
    found = [part.new_empty(part.shape) for part in inputs]
    arrays = contiguous(by_outputs, *found)
    loops("rotations").rotated_backward(*given, *arrays, _sizes(vectors, cosines), strides)
    return tuple(found)


_ROTATED = Loop(_rotated_forward, _rotated_backward)


def _sizes(vectors: Tensor, cosines: Tensor) -> tuple[int, int, int]:
    width = vectors.shape[-1]
    return vectors.numel() // width, width, cosines.shape[-1]
