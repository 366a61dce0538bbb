"""A short convolution by a loop.

B batch, T time, D channels.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    call,
    contiguous,
    loops,
    require_shape,
    rows_of,
)


def convolution(
    inputs: Tensor,
    window: Tensor,
    filters: Tensor,
    biases: Tensor | None,
    *,
    activated: bool,
) -> Tensor:
    """Channels [B, T, D], each summed over its last k positions with weights [D, k].

    The window [B, k - 1, D] precedes the inputs. Biases are [D]; with `activated`, outputs z become
    z sigmoid(z).
    """
    loop = Loop(partial(_convolution_forward, activated), partial(_convolution_backward, activated))
    return call(inputs, loop, window, filters, biases, has_lanes=False)[0]


def _convolution_forward(
    activated: bool,
    keep: bool,
    inputs: Tensor,
    window: Tensor,
    filters: Tensor,
    biases: Tensor | None,
) -> tuple[Tensor, ...]:
    *lanes, _, channels = inputs.shape
    require_shape(window, *lanes, filters.shape[-1] - 1, channels)
    numbers, stride = rows_of(inputs, 3)
    outputs = inputs.new_empty(inputs.shape)
    arrays = contiguous(window, filters.mT, biases, outputs)
    sizes = (*inputs.shape, filters.shape[-1])
    loops("convolution").convolution_forward(numbers, *arrays, sizes, activated, stride)
    return outputs, outputs.new_empty(len(outputs), 0)


def _convolution_backward(
    activated: bool, given: list[Tensor | None], kept: Tensor, by_outputs: Tensor
) -> Tensors:
    inputs, window, filters, biases = given
    assert inputs is not None and window is not None and filters is not None
    numbers, stride = rows_of(inputs, 3)
    found = [
        None if part is None else part.new_empty(part.shape)
        for part in (inputs, window, filters.mT, biases)
    ]
    tensors = (window, filters.mT, biases, by_outputs, *found)
    arrays = contiguous(*tensors)
    sizes = (*inputs.shape, filters.shape[-1])
    loops("convolution").convolution_backward(numbers, *arrays, sizes, activated, stride)
    by_inputs, by_window, by_filters, by_biases = found
    assert by_filters is not None
    return by_inputs, by_window, by_filters.mT, by_biases
