"""Rows of tables at symbols by a loop.

V symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, known, loops


def rows_at(table: Tensor, symbols: Tensor) -> Tensor:
    """The rows of a table [V, ...] at symbols [B, T]: [B, T, ...].

    Both may have an axis of R replicas first.
    """
    return rows_at_each([table], symbols)[0]


def rows_at_each(tables: Sequence[Tensor], symbols: Tensor) -> tuple[Tensor, ...]:
    """The rows of several tables of one type at the same symbols."""
    first, *others = tables
    given = symbols.to(torch.int64), *others
    return call(first, _ROWS, *given, has_lanes=symbols.dim() == 3)


def _forward(keep: bool, first: Tensor, symbols: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    numbers, found = known(symbols.contiguous(), first.shape[1]), []
    for table in (first, *others):
        rows = table.new_empty(*symbols.shape, *table.shape[2:])
        sizes = _sizes(symbols, table)
        loops("rows_of_symbols").rows_forward(table.contiguous(), numbers, rows, sizes)
        found.append(rows)
    return *found, first.new_empty(first.shape[0], 0)


def _backward(given: list[Tensor], kept: Tensor, *gradients: Tensor | None) -> Tensors:
    first, symbols, *others = given
    numbers, found = symbols.contiguous(), list[Tensor | None]()
    for table, along in zip((first, *others), gradients, strict=True):
        if along is None:
            found.append(None)
            continue
        by_table, sizes = table.new_zeros(table.shape), _sizes(symbols, table)
        loops("rows_of_symbols").rows_backward(numbers, along.contiguous(), by_table, sizes)
        found.append(by_table)
    return found[0], None, *found[1:]


_ROWS = Loop(_forward, _backward)


def _sizes(symbols: Tensor, table: Tensor) -> tuple[int, ...]:
    """R, M, V and D."""
    lanes, num_symbols = table.shape[:2]
    return lanes, symbols.numel() // lanes, num_symbols, table.shape[2:].numel()
