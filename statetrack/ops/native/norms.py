"""Root mean square norms by a loop.

D width.
"""

from __future__ import annotations

import math
from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, array_of, call, flat, loops, rows_of


def normalised(
    inputs: Tensor,
    gains: Tensor | None = None,
    *,
    epsilon: float,
    mean: bool = True,
    scale: float = 1.0,
    largest: float = math.inf,
) -> Tensor:
    """Vectors [..., D] times scale / sqrt(m(x^2) + epsilon), m their mean or sum, and gains.

    Gains are [D], or [N, D] for vectors [..., N, D]. Vectors with a number above `largest` are
    scaled down to it before they are squared, and the factor has no gradient.
    """
    share = 1 / inputs.shape[-1] if mean else 1.0
    given = (share, epsilon, largest, scale)
    loop = Loop(partial(_norm_forward, given), partial(_norm_backward, given))
    if gains is None:
        return call(inputs.unsqueeze(0), loop, None)[0].squeeze(0)
    gains = gains.reshape(1, -1, gains.shape[-1])
    return call(inputs.unsqueeze(0), loop, gains)[0].squeeze(0)


def _norm_forward(
    given: tuple[float, ...], keep: bool, inputs: Tensor, gains: Tensor | None
) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(inputs.shape)
    numbers, stride = rows_of(inputs, inputs.dim() - 1)
    sizes = _norm_sizes(inputs, gains)
    loops("norms").norm_forward(
        numbers, array_of(gains, inputs), flat(outputs), *sizes, *given, stride
    )
    return outputs, outputs.new_empty(len(outputs), 0)


def _norm_backward(
    given: tuple[float, ...], tensors: list[Tensor | None], kept: Tensor, by_outputs: Tensor
) -> Tensors:
    inputs, gains = tensors
    assert inputs is not None
    numbers, stride = rows_of(inputs, inputs.dim() - 1)
    by_inputs = inputs.new_empty(inputs.shape)
    by_gains = None if gains is None else gains.new_zeros(gains.shape)
    loops("norms").norm_backward(
        numbers,
        array_of(gains, inputs),
        flat(by_outputs.contiguous()),
        flat(by_inputs),
        array_of(by_gains, inputs),
        *_norm_sizes(inputs, gains),
        *given,
        stride,
    )
    return by_inputs, by_gains


def _norm_sizes(inputs: Tensor, gains: Tensor | None) -> tuple[int, ...]:
    lanes, size = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * size), size, 1 if gains is None else gains.shape[1]
