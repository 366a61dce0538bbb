"""The dense recurrence: one full matrix per symbol."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops import _all_symbols, _grouped
from statetrack.ops._lanes import check_normalise, in_full_precision, join_lanes, widened
from statetrack.ops.lookup import lane_symbols


def dense_recurrence(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None = None,
    *,
    normalise_every: int = 0,
) -> Tensor:
    """h_t = A(x_t) h_{t-1} (+ u_t), with one matrix A per symbol.

    operators [V, H, H], symbols [B, T], first [B, H], inputs [T, B, H] give the states
    [T, B, H].
    """
    assert operators.shape[1:] == (first.shape[-1],) * 2, "operators are [V, H, H], first [B, H]"
    assert symbols.shape[0] == first.shape[0], "symbols are [B, T], first is [B, H]"
    check_normalise(normalise_every, inputs)
    return LaneRecurrence.apply(
        widened(operators).unsqueeze(0),
        symbols.unsqueeze(0),
        widened(first).unsqueeze(0),
        None if inputs is None else widened(inputs).unsqueeze(1),
        normalise_every,
        1,
    )[0].squeeze(1)


class LaneRecurrence(torch.autograd.Function):
    """The dense recurrence of G lanes at once; `num_blocks` lanes in turn make up one word.

    operators [G, V, H, H], symbols [G, B, T], first [G, B, H], inputs [T, G, B, H] give the
    states [T, G, B, H], and [T + 1, G, B, H] with the first one, kept for the backward pass.
    """

    @staticmethod
    @in_full_precision
    def forward(
        operators: Tensor,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None,
        normalise_every: int,
        num_blocks: int,
    ) -> tuple[Tensor, Tensor]:
        kernel = _grouped if groups_pay(operators, symbols) else _all_symbols
        states = kernel.states(operators, symbols, first, inputs, normalise_every, num_blocks)
        return states[1:], states

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inputs[0], inputs[1], output[1])

    @staticmethod
    @once_differentiable
    @in_full_precision
    def backward(ctx: Any, gradient: Tensor, _: None) -> tuple[Tensor | None, ...]:
        operators, symbols, states = ctx.saved_tensors
        wants_operators, _, wants_first, wants_inputs, *_ = ctx.needs_input_grad
        kernel = _grouped if groups_pay(operators, symbols) else _all_symbols
        adjoints = kernel.adjoints(operators, symbols, gradient)
        return (
            operator_gradient(adjoints[1:], states[:-1], symbols, operators.shape[1])
            if wants_operators
            else None,
            None,
            adjoints[0] if wants_first else None,
            adjoints[1:] if wants_inputs else None,
            None,
            None,
        )

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        operators: Tensor,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None,
        normalise_every: int,
        num_blocks: int,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        results = LaneRecurrence.apply(
            join_lanes(operators, in_dims[0], size, 0),
            join_lanes(symbols, in_dims[1], size, 0),
            join_lanes(first, in_dims[2], size, 0),
            None if inputs is None else join_lanes(inputs, in_dims[3], size, 1),
            normalise_every,
            num_blocks,
        )
        return tuple(result.unflatten(1, (size, -1)) for result in results), (1, 1)


def groups_pay(operators: Tensor, symbols: Tensor) -> bool:
    """Whether words are best grouped by symbol, rather than multiplied by every operator."""
    num_symbols, hidden = operators.shape[1:3]
    return not operators.is_cuda and num_symbols > 3 and hidden > 128


def operator_gradient(
    adjoints: Tensor, previous: Tensor, symbols: Tensor, num_symbols: int
) -> Tensor:
    """dL/dA_v = sum of g_t h_{t-1}^T over all (t, b) with x_t = v, from [T, G, B, H] each.

    One matrix product per symbol, over all steps at once: [G, V, H, H].
    """
    num_lanes = len(symbols)
    keys, order = lane_symbols(symbols, num_symbols).flatten().sort(stable=True)
    counts = torch.bincount(keys, minlength=num_lanes * num_symbols).tolist()
    left = adjoints.flatten(0, 2).index_select(0, order).split(counts)
    right = previous.flatten(0, 2).index_select(0, order).split(counts)
    size = adjoints.shape[-1]
    total = adjoints.new_empty(len(counts), size, size)
    for product, g, h in zip(total.unbind(0), left, right, strict=True):
        torch.mm(g.t(), h, out=product)
    return total.unflatten(0, (num_lanes, num_symbols))
