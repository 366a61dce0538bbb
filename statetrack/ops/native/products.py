"""Linear maps of many rows by oneDNN, whose products use wider registers than MKL's on some CPUs.

R replicas, M rows, K and N sizes of inputs and outputs.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call

LEAST_ROWS = 256
"""From so many rows on, one product takes longer than its call."""


def onednn_pays(dtype: torch.dtype) -> bool:
    """Whether oneDNN computes products of a type by instructions that MKL may not use.

    MKL, of which torch's products are made, uses AVX-512 on CPUs of Intel alone.
    """
    return dtype == torch.float32 and _has_wider_instructions()


@cache
def _has_wider_instructions() -> bool:
    return has_onednn() and torch.backends.cpu.get_cpu_capability() == "AVX512"


def has_onednn() -> bool:
    """Whether torch has oneDNN's product, under the name that its compiler calls it by."""
    is_there: bool = torch.backends.mkldnn.is_available()
    return is_there and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b of rows x [..., K], with W [N, K] and b [N]: [..., N], in float32."""
    given = (weight.unsqueeze(0), None if bias is None else bias.unsqueeze(0))
    return call(inputs.unsqueeze(0), _LINEAR, *given)[0].squeeze(0)


def _forward(keep: bool, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    rows, biases = inputs.flatten(1, -2), [None] * len(weight) if bias is None else bias
    found = _together([_product(*each) for each in zip(rows, weight, biases, strict=True)])
    return found.unflatten(1, inputs.shape[1:-1]), inputs.new_empty(len(inputs), 0)


def _backward(given: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    inputs, weight, bias = given
    rows, wanted = inputs.flatten(1, -2), by_outputs.contiguous().flatten(1, -2)
    lanes = list(zip(rows, wanted, weight, strict=True))
    by_rows = _together([_product(out, matrix.T) for _, out, matrix in lanes])
    by_weight = _together([_summed(out, row) for row, out, _ in lanes])
    return by_rows.view(inputs.shape), by_weight, None if bias is None else wanted.sum(1)


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Rows [M, K] times the transpose of [N, K], plus a bias [N]."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return found


def _summed(left: Tensor, right: Tensor) -> Tensor:
    """The sum over rows [M, N] and [M, K] of their outer products: [N, K].

    oneDNN copies one side into another order, and is faster where that is the larger one.
    """
    if left.shape[1] > right.shape[1]:
        return _product(right.T, left.T).T
    return _product(left.T, right.T)


def _together(lanes: list[Tensor]) -> Tensor:
    return lanes[0].unsqueeze(0) if len(lanes) == 1 else torch.stack(lanes)


_LINEAR = Loop(_forward, _backward)
