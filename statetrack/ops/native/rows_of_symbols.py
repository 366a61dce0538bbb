"""Rows of a table at symbols by a loop.

V symbols, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, known, loops


def rows_at(table: Tensor, symbols: Tensor) -> Tensor:
    """The rows [..., D] of a table [V, D] at symbols [...].

    Both may have an axis of R replicas first.
    """
    return call(table, _ROWS, symbols.to(torch.int64), has_lanes=table.dim() == 3)[0]


def _forward(keep: bool, table: Tensor, symbols: Tensor) -> tuple[Tensor, ...]:
    found = table.new_empty(*symbols.shape, table.shape[-1])
    numbers = known(symbols.contiguous(), table.shape[1])
    loops("rows_of_symbols").rows_forward(
        table.contiguous(), numbers, found, *_sizes(symbols, table)
    )
    return found, found.new_empty(len(found), 0)


def _backward(given: list[Tensor], kept: Tensor, by_found: Tensor) -> Tensors:
    table, symbols = given
    by_table, along = table.new_zeros(table.shape), by_found.contiguous()
    sizes = _sizes(symbols, table)
    loops("rows_of_symbols").rows_backward(symbols.contiguous(), along, by_table, *sizes)
    return by_table, None


_ROWS = Loop(_forward, _backward)


def _sizes(symbols: Tensor, table: Tensor) -> tuple[int, ...]:
    """R, M, V and D."""
    lanes, num_symbols, width = table.shape
    return lanes, symbols.numel() // lanes, num_symbols, width
