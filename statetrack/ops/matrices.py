"""The recurrence by matrices: one full matrix per symbol, small ones block by block, or factors.

The factors are those of a CP tensor: gains by symbol and one shared matrix, in rank space.

All shapes may have an axis of R replicas, first, or after the axis of time: [R, V, H, H] for
operators [V, H, H], and [T, R, B, H] for states [T, B, H].
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from statetrack.ops import _all_symbols, _grouped
from statetrack.ops.lanes import (
    LaneFunction,
    apply,
    backward_pass,
    check_normalise,
    in_full_precision,
    in_lanes,
    is_due,
    normalise_,
    widened,
)
from statetrack.ops.symbol_tables import lookup

# Up to this size, b operations on all blocks are faster than a small product per block and symbol:
# 1.5 (5 symbols) to 5 times (50 symbols) at size 8, and slower at size 16.
LARGEST_BY_COORDINATE = 8

_SLAB_NUMBERS = 2**22  # 16 MB in float32


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
    assert operators.shape[-2:] == (first.shape[-1],) * 2, "operators are [V, H, H], first [B, H]"
    assert symbols.shape[:-1] == first.shape[:-1], "symbols are [B, T], first is [B, H]"
    check_normalise(normalise_every, inputs)
    states = lane_recurrence(
        in_lanes(widened(operators), 3),
        in_lanes(symbols, 2),
        in_lanes(widened(first), 2),
        None if inputs is None else in_lanes(widened(inputs), 3, 1),
        normalise_every,
        1,
    )
    return states.view(-1, *first.shape)


def lane_recurrence(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None,
    normalise_every: int,
    num_blocks: int,
) -> Tensor:
    """The dense recurrence of G lanes at once; `num_blocks` consecutive lanes make up one word.

    operators [G, V, H, H], symbols [G, B, T], first [G, B, H], inputs [T, G, B, H] give the
    states [T, G, B, H].
    """
    states: Tensor
    states, _ = apply(
        _LaneRecurrence, operators, symbols, first, inputs, normalise_every, num_blocks
    )
    return states


class _LaneRecurrence(LaneFunction):
    """The states [T, G, B, H], and [T + 1, G, B, H] with the first one for the backward pass."""

    axes = (0, 0, 0, 1)
    saved = (0, 1)

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
        kernel = _kernel(operators)
        states = kernel.states(operators, symbols, first, inputs, normalise_every, num_blocks)
        return states[1:], states

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        operators, symbols, states = ctx.saved_tensors
        wants_operators, _, wants_first, wants_inputs, *_ = ctx.needs_input_grad
        kernel = _kernel(operators)
        adjoints = kernel.adjoints(operators, symbols, gradient)
        return (
            kernel.operator_gradient(adjoints[1:], states[:-1], symbols, operators.shape[1])
            if wants_operators
            else None,
            None,
            adjoints[0] if wants_first else None,
            adjoints[1:] if wants_inputs else None,
            None,
            None,
        )


def _kernel(operators: Tensor) -> ModuleType:
    """The module with the faster `states`, `adjoints` and `operator_gradient` on this device.

    Grouping reads the symbols on the host, so it is used on a CPU only.
    """
    return _grouped if operators.device.type == "cpu" else _all_symbols


def block_recurrence(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None = None,
    *,
    normalise_every: int = 0,
) -> Tensor:
    """h_t = A(x_t) h_{t-1} (+ u_t) for each of N blocks.

    operators [V, N, b, b], symbols [B, T], first [B, N, b], inputs [T, B, N, b] give the
    states [T, B, N, b].
    """
    num_blocks, size = first.shape[-2:]
    assert operators.shape[-3:] == (num_blocks, size, size), "operators are [V, N, b, b]"
    assert symbols.shape[:-1] == first.shape[:-2], "symbols are [B, T], first is [B, N, b]"
    check_normalise(normalise_every, inputs)
    operators, first = widened(operators), widened(first)
    inputs = None if inputs is None else widened(inputs)
    recurrence = _by_coordinate if size <= LARGEST_BY_COORDINATE else _by_matrix_products
    return recurrence(operators, symbols, first, inputs, normalise_every)


def _by_matrix_products(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None,
    normalise_every: int,
) -> Tensor:
    """The dense recurrence, with one lane per block, of every replica."""
    replicas, (batch, num_blocks, _) = first.shape[:-3], first.shape[-3:]
    words = symbols.unsqueeze(-3).expand(*replicas, num_blocks, batch, -1)
    states = lane_recurrence(
        operators.transpose(-3, -4).flatten(0, -4),
        words.flatten(0, -3),
        first.transpose(-2, -3).flatten(0, -3),
        None if inputs is None else inputs.transpose(-2, -3).flatten(1, -3),
        normalise_every,
        num_blocks,
    )
    by_word: Tensor = states.unflatten(1, (*replicas, num_blocks)).transpose(-2, -3)
    return by_word.contiguous()


def _by_coordinate(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None,
    normalise_every: int,
) -> Tensor:
    """Elementwise operations, each on one coordinate of all blocks: b of them per step.

    The operators of every step are gathered for every word; without gradients, which need all of
    them at once, for a limited number of steps at a time.
    """
    num_steps = symbols.shape[-1]
    length = num_steps if torch.is_grad_enabled() else _slab_length(first)
    length += -length % max(1, normalise_every)
    table = operators.transpose(-1, -3)  # [V, b (from), b (to), N]
    state = first.transpose(-1, -2)
    slabs = []
    for start in range(0, num_steps, length):
        slab = slice(start, start + length)
        columns = lookup(table, symbols[..., slab])  # [T, B, b (from), b (to), N]
        terms = None if inputs is None else inputs[slab].transpose(-1, -2)
        slabs.append(apply(_Coordinates, columns, state, terms, normalise_every)[0])
        state = slabs[-1][-1]
    return torch.cat(slabs).transpose(-1, -2).contiguous()


def _slab_length(states: Tensor) -> int:
    """The number of steps whose operators are gathered for every word at once."""
    return max(1, _SLAB_NUMBERS // (states.numel() * states.shape[-1]))


class _Coordinates(LaneFunction):
    """columns [T, *L, b, b, N], first [*L, b, N], inputs [T, *L, b, N] -> states as inputs.

    The second result is the states with the first one before them, kept for the backward pass.
    """

    axes = (1, 0, 1)
    saved = (0,)
    by_coordinate = True

    @staticmethod
    def forward(
        columns: Tensor, first: Tensor, inputs: Tensor | None, normalise_every: int
    ) -> tuple[Tensor, Tensor]:
        states = first.new_empty(len(columns) + 1, *first.shape)
        states[0] = first
        steps = states.unbind(0)
        terms = (None,) * len(columns) if inputs is None else inputs.unbind(0)
        matrices = _by_step(columns.unbind(-3))
        for t, factors in enumerate(_by_step(_parts(states[:-1]))):
            _sum_products(matrices[t], factors, terms[t], steps[t + 1])
            if is_due(t, normalise_every):
                normalise_(steps[t + 1], (-2, -1))
        return states[1:], states

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        columns, states = ctx.saved_tensors
        adjoints = _adjoints(columns, gradient)
        wants_columns, wants_first, wants_inputs, _ = ctx.needs_input_grad
        return (
            adjoints[1:].unsqueeze(-3) * states[:-1].unsqueeze(-2) if wants_columns else None,
            adjoints[0] if wants_first else None,
            adjoints[1:] if wants_inputs else None,
            None,
        )


def _adjoints(columns: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the loss by every state, the first one's included: [T + 1, *L, b, N].

    g_t = dL/dh_t (direct) + A(x_{t+1})^T g_{t+1}.
    """
    adjoints = gradient.new_empty(len(gradient) + 1, *gradient.shape[1:])
    adjoints[-1] = gradient[-1]
    steps = adjoints.unbind(0)
    direct = (None, *gradient.unbind(0))
    matrices = _by_step(columns.unbind(-2))
    factors = _by_step(_parts(adjoints[1:]))
    for t in range(len(gradient) - 1, -1, -1):
        _sum_products(matrices[t], factors[t], direct[t], steps[t])
    return adjoints


def _parts(states: Tensor) -> tuple[Tensor, ...]:
    """The b coordinates of states [T, *L, b, N], each [T, *L, 1, N]."""
    return states.unsqueeze(-2).unbind(-3)


def _by_step(parts: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """For each step, its slice of every part."""
    return list(zip(*(part.unbind(0) for part in parts), strict=True))


def _sum_products(
    matrices: Sequence[Tensor], factors: Sequence[Tensor], term: Tensor | None, out: Tensor
) -> None:
    """The sum of the products of matrices and factors, plus the term unless it is None."""
    if term is None:
        torch.mul(matrices[0], factors[0], out=out)
    else:
        torch.addcmul(term, matrices[0], factors[0], out=out)
    for matrix, factor in zip(matrices[1:], factors[1:], strict=True):
        out.addcmul_(matrix, factor)


def factored_recurrence(
    core: Tensor,
    gains: Tensor,
    first: Tensor,
    inputs: Tensor | None = None,
    *,
    normalise_every: int = 0,
) -> Tensor:
    """z_t = s_t * p_{t-1} with p_t = M z_t (+ v_t), and M `core` [K, K].

    gains [T, B, K], first p_0 [B, K], inputs [T, B, K] give z [T, B, K]. A third-order tensor
    of CP rank K, A(x) = U diag(s_x) V^T, has this form with M = V^T U and p_t = V^T h_t:
    then h_t = U z_t (+ u_t), so z_t is all that a readout needs. The last input has no effect.
    """
    assert core.shape[-2:] == (gains.shape[-1],) * 2, "core is [K, K], gains are [T, B, K]"
    assert gains.shape[1:] == first.shape, "gains are [T, B, K], first is [B, K]"
    assert inputs is None or inputs.shape == gains.shape, "inputs are [T, B, K]"
    check_normalise(normalise_every, inputs)
    gated: Tensor = apply(
        _Factored,
        in_lanes(widened(core), 2),
        in_lanes(widened(gains), 3, 1),
        in_lanes(widened(first), 2),
        None if inputs is None else in_lanes(widened(inputs), 3, 1),
        normalise_every,
    )[0]
    return gated.view(gains.shape)


class _Factored(LaneFunction):
    """core [G, K, K], gains [T, G, B, K], first [G, B, K], inputs as gains -> z as gains.

    The second result is p_0 .. p_{T-1}, kept for the backward pass.
    """

    axes = (0, 1, 0, 1)
    saved = (0, 1)
    saves_result = True

    @staticmethod
    @in_full_precision
    def forward(
        core: Tensor, gains: Tensor, first: Tensor, inputs: Tensor | None, normalise_every: int
    ) -> tuple[Tensor, Tensor]:
        gated, states = torch.empty_like(gains), torch.empty_like(gains)
        states[0] = first
        steps, outputs, transposed = states.unbind(0), gated.unbind(0), core.mT
        for t, gain in enumerate(gains.unbind(0)):
            torch.mul(gain, steps[t], out=outputs[t])
            if is_due(t, normalise_every):
                normalise_(outputs[t], (-1,))
            if t + 1 == len(steps):
                break
            torch.bmm(outputs[t], transposed, out=steps[t + 1])
            if inputs is not None:
                steps[t + 1].add_(inputs[t])
        return gated, states

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        core, gains, gated, states = ctx.saved_tensors
        adjoints, of_states = torch.empty_like(gated), torch.empty_like(gated)
        steps, before = adjoints.unbind(0), of_states.unbind(0)  # of z_t, of p_{t-1}
        gain, direct = gains.unbind(0), gradient.unbind(0)
        steps[-1].copy_(direct[-1])
        for t in range(len(gain) - 1, -1, -1):
            torch.mul(gain[t], steps[t], out=before[t])
            if t > 0:
                torch.baddbmm(direct[t - 1], before[t], core, out=steps[t - 1])
        wants_core, wants_gains, wants_first, wants_inputs, _ = ctx.needs_input_grad
        later = of_states[1:]  # of p_1 .. p_{T-1}
        return (
            _core_gradient(later, gated[:-1]) if wants_core else None,
            adjoints * states if wants_gains else None,
            before[0] if wants_first else None,
            torch.cat([later, torch.zeros_like(gated[:1])]) if wants_inputs else None,
            None,
        )


def _core_gradient(adjoints: Tensor, gated: Tensor) -> Tensor:
    """dL/dM = sum over t and b of (dL/dp_t) z_t^T, from [T - 1, G, B, K] each: [G, K, K]."""
    by_lane = adjoints.movedim(1, 0).flatten(1, 2)  # [G, T * B, K]
    return by_lane.mT @ gated.movedim(1, 0).flatten(1, 2)
