"""The outputs of the heads of RWKV-6 and RWKV-7 by a loop.

D width, N heads, K size of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of_each


def gated_heads(
    read: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gates: Tensor,
    bonuses: Tensor,
    gains: Tensor,
    biases: Tensor,
    *,
    epsilon: float,
    within: bool = False,
) -> Tensor:
    """Heads y + w v times gates, [..., D]: y = norm(x) * gains + biases, w = q . (rho * k).

    x, q, k and v are [..., N, K], gates [..., D], bonuses rho [N, K], gains and biases [D]. A norm
    divides a head's deviations from its mean by sqrt(their variance + epsilon). With `within` w v
    is added to x, and not to y, and gates are multiplied by their sigmoids.
    """
    given = (epsilon, within)
    loop = Loop(partial(_forward, given), partial(_backward, given))
    others = (queries, keys, values, gates, bonuses, gains, biases)
    return call(read, loop, *others, has_lanes=False)[0]


Given = tuple[float, bool]
"""Epsilon, and whether a position's own value is normalised too."""


def _forward(given: Given, keep: bool, *inputs: Tensor) -> tuple[Tensor, ...]:
    rows, strides, sizes = _rows(inputs)
    outputs = inputs[4].new_empty(inputs[4].shape)
    arrays = contiguous(*inputs[5:], outputs)
    loops("rwkv_outputs").outputs_forward(*rows, *arrays, sizes, *given, strides)
    return outputs, outputs.new_empty(len(outputs), 0)


def _backward(given: Given, inputs: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    rows, strides, sizes = _rows(inputs)
    found = [part.new_empty(part.shape) for part in inputs[:5]]
    found += [part.new_zeros(part.shape) for part in inputs[5:]]
    arrays = contiguous(*inputs[5:], by_outputs, *found)
    loops("rwkv_outputs").outputs_backward(*rows, *arrays, sizes, *given, strides)
    return tuple(found)


def _rows(
    inputs: Sequence[Tensor],
) -> tuple[list[Tensor | None], tuple[int, ...], tuple[int, ...]]:
    """The rows of the sequences, their strides, and R, M, N and K."""
    read = inputs[0]
    heads, strides = rows_of_each(*inputs[:4], leading=read.dim() - 2)
    gates, (stride,) = rows_of_each(inputs[4], leading=read.dim() - 2)
    lanes, sizes = len(read), read.shape[-2:]
    rows = read.numel() // (lanes * sizes.numel())
    return [*heads, *gates], (*strides, stride), (lanes, rows, *sizes)
