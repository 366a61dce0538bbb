"""Division by the normaliser of an mLSTM by a loop.

K numbers besides the normaliser.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of


def divided(read: Tensor, maxima: Tensor, epsilon: float) -> Tensor:
    """The first K of vectors [..., K + 1] divided by max(|n|, exp(-m)) + epsilon, n their last.

    The maxima m, [...], have no gradient.
    """
    loop = Loop(partial(_forward, epsilon), partial(_backward, epsilon))
    return call(read, loop, maxima, has_lanes=False)[0]


def _forward(epsilon: float, keep: bool, read: Tensor, maxima: Tensor) -> tuple[Tensor, ...]:
    rows, stride = rows_of(read, read.dim() - 1)
    outputs = read.new_empty(*read.shape[:-1], read.shape[-1] - 1)
    arrays, sizes = contiguous(maxima, outputs), (maxima.numel(), outputs.shape[-1])
    loops("normaliser").normaliser_forward(rows, *arrays, sizes, stride, epsilon)
    return outputs, outputs.new_empty(len(outputs), 0)


def _backward(epsilon: float, given: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    read, maxima = given
    rows, stride = rows_of(read, read.dim() - 1)
    by_read = read.new_empty(read.shape)
    arrays = contiguous(maxima, by_outputs, by_read)
    sizes = maxima.numel(), by_outputs.shape[-1]
    loops("normaliser").normaliser_backward(rows, *arrays, sizes, stride, epsilon)
    return by_read, None
