"""Root mean square norms by a loop.

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
    numbers, stride, sizes = _as_heads(inputs, gains)
    loops("norms").norm_forward(numbers, *contiguous(gains), outputs, *sizes, *given, stride, 0)
    return outputs, outputs.new_empty(len(outputs), 0)


def _norm_backward(
    given: tuple[float, ...], tensors: list[Tensor | None], kept: Tensor, by_outputs: Tensor
) -> Tensors:
    inputs, gains = tensors
    assert inputs is not None
    numbers, stride, sizes = _as_heads(inputs, gains)
    by_inputs = inputs.new_empty(inputs.shape)
    by_gains = None if gains is None else gains.new_zeros(gains.shape)
    tensors = [gains, by_outputs, by_inputs, by_gains]
    arrays = contiguous(*tensors)
    own_stride = sizes[2] * sizes[3]
    loops("norms").norm_backward(numbers, *arrays, *sizes, *given, stride, own_stride, 0)
    return by_inputs, by_gains


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
    found = call(rows.unsqueeze(0), loop)
    return tuple(part.squeeze(0) for part in found)


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
                numbers, nothing, found, *sizes, *_unit(scale), stride, offset
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
            arrays = (numbers, nothing, along, by_rows, nothing)
            own = rows.shape[-1]
            loops("norms").norm_backward(*arrays, *sizes, *_unit(scale), stride, own, offset)
        offset += size
    return (by_rows,)


def _unit(scale: float) -> tuple[float, ...]:
    return 1.0, 1e-6, math.inf, scale
