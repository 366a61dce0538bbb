"""Causal softmax attention by a loop.

B batch, T time, N heads, K size of a head, J = K / 2.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of

LONGEST_ATTENDED = 512
"""Positions up to which a word's keys and values stay in fast memory."""


def softmax_attention(
    projected: Tensor, heads: int, angles: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    """What heads read, [B, T, N K], of queries, keys and values [B, T, 3 N K] one after the other.

    Coordinates k and k + J of queries and keys are turned by angles, given as sines and cosines
    [T, J]. Words have at most `LONGEST_ATTENDED` positions.
    """
    if angles is None:
        angles = torch.empty(projected.shape[-2], 0), torch.empty(0)
    sines, cosines = (part.to(projected.dtype) for part in angles)
    loop = Loop(
        partial(_softmax_forward, heads, cosines, sines),
        partial(_softmax_backward, heads, cosines, sines),
    )
    return call(projected, loop)[0]


def _softmax_forward(
    heads: int, cosines: Tensor, sines: Tensor, keep: bool, projected: Tensor
) -> tuple[Tensor, ...]:
    words, steps, width = projected.shape
    outputs = projected.new_empty(words, steps, width // 3)
    numbers, stride = rows_of(projected, 2)
    tables = contiguous(cosines, sines)
    sizes = _softmax_sizes(projected, heads, cosines)
    loops("softmax_attention").attention_forward(numbers, *tables, outputs, sizes, stride)
    return outputs, outputs.new_empty(words, 0)


def _softmax_backward(
    heads: int,
    cosines: Tensor,
    sines: Tensor,
    inputs: list[Tensor],
    kept: Tensor,
    by_outputs: Tensor,
) -> Tensors:
    (projected,) = inputs
    numbers, stride = rows_of(projected, 2)
    found = torch.empty(projected.shape, dtype=projected.dtype)
    arrays = contiguous(cosines, sines, by_outputs, found)
    sizes = _softmax_sizes(projected, heads, cosines)
    loops("softmax_attention").attention_backward(numbers, *arrays, sizes, stride)
    return (found,)


def _softmax_sizes(projected: Tensor, heads: int, cosines: Tensor) -> tuple[int, ...]:
    words, steps, width = projected.shape
    return words, steps, heads, width // (3 * heads), cosines.shape[-1]
