"""Sums of two rows of tables, one for a symbol and one for the symbol before, by a loop.

B batch, T time, V symbols, n tables, N width of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    addresses_of,
    call,
    contiguous,
    known,
    loops,
)


def at_pairs(tables: Sequence[Tensor], symbols: Tensor, num_symbols: int) -> tuple[Tensor, ...]:
    """Row x_t plus row V + x_{t-1} of tables [2 V + B, N], at symbols x [B, T]: n times [B, T, N].

    The first position of word b has row 2 V + b in place of that of a symbol before it; tables can
    be [2 V + 1, N], with one such row for all words.
    """
    assert len({len(table) for table in tables}) == 1, "tables have as many rows as each other"
    first, *others = tables
    loop = Loop(partial(_forward, num_symbols), partial(_backward, num_symbols))
    return call(first, loop, symbols, *others, has_lanes=False)


def _forward(
    num_symbols: int, keep: bool, first: Tensor, symbols: Tensor, *others: Tensor
) -> tuple[Tensor, ...]:
    tables, sizes = contiguous(first, *others), _sizes(first, symbols, num_symbols)
    widths = [first.shape[-1], *(part.shape[-1] for part in others)]
    outputs = [first.new_empty(*symbols.shape, width) for width in widths]
    symbols = known(symbols.contiguous(), num_symbols)
    addresses = (addresses_of(tables), symbols, torch.tensor(widths), addresses_of(outputs))
    loops("symbol_pairs").pairs_forward(tables[0], *addresses, (*sizes, len(widths)))
    return *outputs, first.new_empty(len(first), 0)


def _backward(
    num_symbols: int, given: list[Tensor], kept: Tensor, *by_outputs: Tensor | None
) -> Tensors:
    first, symbols, *others = given
    found = [part.new_zeros(part.shape) for part in (first, *others)]
    widths = torch.tensor([part.shape[-1] for part in found])
    wanted, sizes = contiguous(*by_outputs), _sizes(first, symbols, num_symbols)
    addresses = (symbols.contiguous(), widths, addresses_of(wanted), addresses_of(found))
    loops("symbol_pairs").pairs_backward(found[0], *addresses, (*sizes, len(found)))
    return found[0], None, *found[1:]


def _sizes(table: Tensor, symbols: Tensor, num_symbols: int) -> tuple[int, ...]:
    """R, W, T, V and the rows for the starts of words."""
    starts = table.shape[1] - 2 * num_symbols
    assert starts in (1, symbols.shape[1]), "tables are [2 V + B, N] or [2 V + 1, N]"
    return *symbols.shape, num_symbols, starts
