"""Norms of heads by a loop: root mean square norms, layer norms, and heads of a given length.

N heads, D width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, or_zeros, rows_of


def normalised(
    inputs: Tensor,
    gains: Tensor | None = None,
    biases: Tensor | None = None,
    *,
    epsilon: float,
    centred: bool = False,
    largest: float = math.inf,
) -> Tensor:
    """Vectors [..., D] divided by sqrt(mean(x^2) + epsilon), times gains and plus biases.

    With `centred` their mean is taken off before, as in a layer norm. Gains and biases are [D], or
    [N, D] for vectors [..., N, D]. Vectors with a number above `largest` are scaled down to it
    before they are squared, and the factor has no gradient.
    """
    return normalised_beside(
        inputs, gains, biases, epsilon=epsilon, centred=centred, largest=largest
    )[0]


def normalised_beside(
    inputs: Tensor,
    gains: Tensor | None = None,
    biases: Tensor | None = None,
    *,
    epsilon: float,
    centred: bool = False,
    largest: float = math.inf,
) -> tuple[Tensor, Tensor]:
    """The same, and the vectors for other uses: gradients of both are added in one pass."""
    given = (centred, 1 / inputs.shape[-1], epsilon, largest, 1.0)
    loop = Loop(partial(_norm_forward, given), partial(_norm_backward, given), passes=1)
    affine = [
        None if part is None else part.reshape(-1, part.shape[-1]) for part in (gains, biases)
    ]
    outputs, same = call(inputs, loop, *affine, has_lanes=False)
    return outputs, same


Given = tuple[float, ...]
"""Whether rows are centred; their share, epsilon, the largest number and a scale."""


def _norm_forward(
    given: Given, keep: bool, inputs: Tensor, gains: Tensor | None, biases: Tensor | None
) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(inputs.shape)
    numbers, stride, sizes = _as_heads(inputs, gains)
    arrays = contiguous(gains, biases, outputs)
    loops("norms").norm_forward(numbers, *arrays, sizes, *given, stride, 0)
    return outputs, outputs.new_empty(len(outputs), 0)


def _norm_backward(
    given: Given,
    tensors: list[Tensor | None],
    kept: Tensor,
    by_outputs: Tensor | None,
    by_same: Tensor | None = None,
) -> Tensors:
    inputs, gains, biases = tensors
    assert inputs is not None
    by_outputs = or_zeros(by_outputs, (*inputs.shape,), inputs)
    numbers, stride, sizes = _as_heads(inputs, gains)
    found = [None if part is None else part.new_zeros(part.shape) for part in (gains, biases)]
    by_inputs = inputs.new_empty(inputs.shape)
    arrays = contiguous(gains, by_outputs, by_same, by_inputs, *found)
    own_stride = sizes[2] * sizes[3]
    loops("norms").norm_backward(numbers, *arrays, sizes, *given, stride, own_stride, 0)
    return by_inputs, *found


def _as_heads(inputs: Tensor, gains: Tensor | None) -> tuple[Any, int, tuple[int, ...]]:
    """The numbers of vectors [R, ..., N, D], the stride of what has N heads, and all sizes."""
    leading = max(1, inputs.dim() - 2)
    heads = math.prod(inputs.shape[leading:-1])
    numbers, stride = rows_of(inputs, leading)
    rows = math.prod(inputs.shape[1:leading])
    own_gains = 1 if gains is None else gains.shape[1]
    return numbers, stride, (len(inputs), rows, heads, inputs.shape[-1], own_gains)


def unit_parts(
    rows: Tensor, sizes: Sequence[int], scales: Sequence[float | None], width: int
) -> tuple[Tensor, ...]:
    """Parts of rows [..., D] of some sizes, as heads [..., N, width] of a length each.

    A head x becomes scale x / sqrt(|x|^2 + 10^-6); a part whose scale is None stays as it is.
    """
    parts = tuple(zip(sizes, scales, strict=True))
    loop = Loop(partial(_unit_forward, parts, width), partial(_unit_backward, parts, width))
    return call(rows, loop, has_lanes=False)


Parts = Sequence[tuple[int, float | None]]
"""Sizes and scales."""


def _unit_forward(parts: Parts, width: int, keep: bool, rows: Tensor) -> tuple[Tensor, ...]:
    numbers, stride = rows_of(rows, rows.dim() - 1)
    nothing, outputs, offset = None, [], 0
    for size, scale in parts:
        if scale is None:
            outputs.append(rows[..., offset : offset + size].clone())
        else:
            found = rows.new_empty(*rows.shape[:-1], size)
            sizes = (1, found.numel() // size, size // width, width, 1)
            loops("norms").norm_forward(
                numbers, nothing, nothing, found, sizes, *_unit(scale), stride, offset
            )
            outputs.append(found)
        offset += size
    return *outputs, rows.new_empty(len(rows), 0)


def _unit_backward(
    parts: Parts, width: int, inputs: list[Tensor], kept: Tensor, *by_outputs: Tensor | None
) -> Tensors:
    (rows,) = inputs
    numbers, stride = rows_of(rows, rows.dim() - 1)
    nothing, by_rows, offset = None, rows.new_empty(rows.shape), 0
    for (size, scale), given in zip(parts, by_outputs, strict=True):
        along = or_zeros(given, (*rows.shape[:-1], size), rows)
        if scale is None:
            by_rows[..., offset : offset + size] = along
        else:
            sizes = (1, along.numel() // size, size // width, width, 1)
            arrays = (numbers, nothing, along, nothing, by_rows, nothing, nothing)
            own = rows.shape[-1]
            loops("norms").norm_backward(*arrays, sizes, *_unit(scale), stride, own, offset)
        offset += size
    return (by_rows,)


def _unit(scale: float) -> Given:
    return False, 1.0, 1e-6, math.inf, scale
