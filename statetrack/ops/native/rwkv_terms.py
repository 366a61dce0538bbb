"""The terms of RWKV-7's recurrence by a loop.

D width, N heads, K size of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    call,
    contiguous,
    loops,
    or_zeros,
    rows_of_each,
)


def removing_terms(
    keys: Tensor,
    rates: Tensor,
    decays: Tensor,
    factors: Tensor,
    weights: Tensor,
    rate_bias: Tensor,
    decay_bias: Tensor,
    *,
    heads: int,
    fastest: float,
) -> tuple[Tensor, ...]:
    """Log-decays, kappa, a, added keys and a * kappa, [..., N, K], of rows of three maps [..., D].

    a = sigmoid(rates + bias), kappa is keys * factors by head divided by its length, added keys
    are keys * (1 + (a - 1) * weights), and log-decays -fastest sigmoid(decays + bias).
    """
    given = (heads, fastest)
    loop = Loop(partial(_forward, given), partial(_backward, given))
    others = (rates, decays, factors, weights, rate_bias, decay_bias)
    return call(keys, loop, *others, has_lanes=False)


Given = tuple[int, float]
"""The number of heads, and minus the least log-decay."""


def _forward(given: Given, keep: bool, *inputs: Tensor) -> tuple[Tensor, ...]:
    rows, strides, sizes = _rows(given, inputs)
    keys, shape = inputs[0], (*inputs[0].shape[:-1], *sizes[2:])
    outputs = [keys.new_empty(shape) for _ in range(5)]
    arrays = contiguous(*inputs[3:], *outputs)
    loops("rwkv_terms").terms_forward(*rows, *arrays, sizes, given[1], strides)
    return *outputs, keys.new_empty(len(keys), 0)


def _backward(
    given: Given, inputs: list[Tensor], kept: Tensor, *by_outputs: Tensor | None
) -> Tensors:
    rows, strides, sizes = _rows(given, inputs)
    shape = (*inputs[0].shape[:-1], *sizes[2:])
    wanted = [  # most often nobody reads the rates alone
        None if place == 2 and part is None else or_zeros(part, shape, inputs[0])
        for place, part in enumerate(by_outputs)
    ]
    found = [part.new_empty(part.shape) for part in inputs[:3]]
    found += [part.new_zeros(part.shape) for part in inputs[3:]]
    arrays = contiguous(*inputs[3:], *wanted, *found)
    loops("rwkv_terms").terms_backward(*rows, *arrays, sizes, given[1], strides)
    return tuple(found)


def _rows(
    given: Given, inputs: Sequence[Tensor]
) -> tuple[list[Tensor | None], tuple[int, ...], tuple[int, ...]]:
    """Rows of the three maps, their strides, and R, M, N and K."""
    keys, heads = inputs[0], given[0]
    rows, strides = rows_of_each(*inputs[:3], leading=keys.dim() - 1)
    lanes, width = len(keys), keys.shape[-1]
    return rows, strides, (lanes, keys.numel() // (lanes * width), heads, width // heads)
