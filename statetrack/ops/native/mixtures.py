"""Mixtures of rows with those one position before by a loop.

B batch, T time, D width, n mixtures.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    addresses_of,
    call,
    contiguous,
    loops,
    rows_of,
)


def mixed(
    inputs: Tensor, last: Tensor, shares: Tensor, more: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Mixtures x_t + s (x_{t-1} - x_t) of rows x [B, T, D] by every row s of shares [n, D].

    `last` [B, D] precedes the first row. To the shares `more` [B, T, n, D] are added. n tensors
    [B, T, D].
    """
    assert last.shape == (len(inputs), inputs.shape[-1]), "last is [B, D], inputs [B, T, D]"
    return call(inputs, _MIXED, last, shares, more, has_lanes=False)


def _forward(
    keep: bool, inputs: Tensor, last: Tensor, shares: Tensor, more: Tensor | None
) -> tuple[Tensor, ...]:
    outputs = [inputs.new_empty(inputs.shape) for _ in range(shares.shape[1])]
    rows, stride = rows_of(inputs, 3)
    arrays = contiguous(last, shares, more)
    sizes = _sizes(inputs, shares)
    loops("mixtures").mixed_forward(rows, *arrays, addresses_of(outputs), sizes, stride)
    return *outputs, inputs.new_empty(len(inputs), 0)


def _backward(given: list[Tensor | None], kept: Tensor, *by_outputs: Tensor | None) -> Tensors:
    inputs, last, shares, more = given
    assert inputs is not None and last is not None and shares is not None
    found = [None if part is None else part.new_empty(part.shape) for part in (inputs, last, more)]
    by_shares = shares.new_zeros(shares.shape)
    rows, stride = rows_of(inputs, 3)
    wanted = contiguous(*by_outputs)
    arrays = [*contiguous(last, shares, more), addresses_of(wanted)]
    results = (*found[:2], by_shares, found[2])
    sizes = _sizes(inputs, shares)
    loops("mixtures").mixed_backward(rows, *arrays, *results, sizes, stride)
    return results


_MIXED = Loop(_forward, _backward)


def _sizes(inputs: Tensor, shares: Tensor) -> tuple[int, ...]:
    """R, W, T, D and n."""
    return *inputs.shape, shares.shape[1]
