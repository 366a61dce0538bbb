"""Tables with a row per symbol: computed from an embedding, and read for the symbols of words."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from statetrack.ops.lanes import (
    LaneFunction,
    apply,
    backward_pass,
    in_full_precision,
    in_lanes,
    widened,
)


def contract(weight: Tensor, embedding: Tensor) -> Tensor:
    """`sum_d weight[..., d] embedding[v, d]`: from `[*K, D]` and `[V, D]`, `[V, *K]`.

    With weight [H, H, D] these are the operators of the bilinear form, one per symbol. The axis D
    is the weight's last, because all three products (this one and both gradients) then access the
    weight contiguously: at H = D = 256 and 5 symbols that is two to four times faster than with
    the axis first.
    """
    assert weight.shape[-1] == embedding.shape[1], "weight is [*K, D], embedding is [V, D]"
    table: Tensor = apply(
        _Contraction, widened(weight).flatten(0, -2).unsqueeze(0), widened(embedding).unsqueeze(0)
    )
    return table.view(len(embedding), *weight.shape[:-1])


class _Contraction(LaneFunction):
    """weight [G, K, D], embedding [G, V, D] -> [G, V, K]."""

    axes = (0, 0)
    saved = (0, 1)
    result_axis = 0

    @staticmethod
    @in_full_precision
    def forward(weight: Tensor, embedding: Tensor) -> Tensor:
        return torch.bmm(weight, embedding.mT).mT.contiguous()

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        weight, embedding = ctx.saved_tensors
        wants_weight, wants_embedding = ctx.needs_input_grad
        return (
            torch.bmm(gradient.mT, embedding) if wants_weight else None,
            torch.bmm(gradient, weight) if wants_embedding else None,
        )


def lookup(table: Tensor, symbols: Tensor) -> Tensor:
    """Row `symbols[b, t]` of `table` `[V, *K]` at `[t, b]`: `[T, B, *K]`, contiguous.

    Of R replicas, with a table `[R, V, *K]` and symbols `[R, B, T]`: `[T, R, B, *K]`.
    """
    assert symbols.dim() in (2, 3), "symbols are [B, T] or [R, B, T]"
    own = symbols.dim() - 1
    rows: Tensor = apply(_Lookup, in_lanes(table.flatten(own), 2), in_lanes(symbols, 2))
    return rows.view(*symbols.movedim(-1, 0).shape, *table.shape[own:])


class _Lookup(LaneFunction):
    """table [G, V, K], symbols [G, B, T] -> [T, G, B, K]."""

    axes = (0, 0)

    @staticmethod
    def forward(table: Tensor, symbols: Tensor) -> Tensor:
        rows = lane_symbols(symbols, table.shape[1])
        return table.flatten(0, 1).index_select(0, rows.flatten()).view(*rows.shape, -1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        table, symbols = inputs
        ctx.save_for_backward(symbols)
        ctx.num_symbols = table.shape[1]

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (symbols,) = ctx.saved_tensors
        sum_rows = _sum_by_product if gradient.is_cuda else _sum_by_addition
        return sum_rows(gradient, symbols, ctx.num_symbols), None


def lane_symbols(symbols: Tensor, num_symbols: int) -> Tensor:
    """Symbols [G, B, T] as indices into the G * V rows of all lanes, time first: [T, G, B]."""
    offsets = torch.arange(len(symbols), device=symbols.device) * num_symbols
    return (symbols + offsets[:, None, None]).permute(2, 0, 1).contiguous()


def _sum_by_addition(gradient: Tensor, symbols: Tensor, num_symbols: int) -> Tensor:
    """The rows of `gradient` [T, G, B, K] summed by lane and symbol, [G, V, K], one by one.

    On a CPU it costs as much as a copy. On a GPU the order of additions, and so the rounding,
    would vary from call to call.
    """
    num_lanes, width = len(symbols), gradient.shape[-1]
    total = gradient.new_zeros(num_lanes * num_symbols, width)
    total.index_add_(0, lane_symbols(symbols, num_symbols).flatten(), gradient.flatten(0, 2))
    return total.view(num_lanes, num_symbols, width)


def _sum_by_product(gradient: Tensor, symbols: Tensor, num_symbols: int) -> Tensor:
    """The same sums as one matrix product with one-hot symbols."""
    read = one_hot(symbols.mT.flatten(1), num_symbols).to(gradient.dtype)  # [G, T * B, V]
    return torch.bmm(read.mT, gradient.transpose(0, 1).flatten(1, 2))
