"""The definition of every recurrence, in two lines each: the fast ones are tested against it.

T time, B batch, V symbols, H hidden, N blocks, b block size, K rank. Differentiated by torch,
one replica at a time. There is no `normalise_every`: rescaling is not part of the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import torch
from torch import Tensor


def lookup(table: Tensor, symbols: Tensor) -> Tensor:
    """Row `symbols[b, t]` of `table` [V, ...] at [t, b]: [T, B, ...]."""
    return table[symbols.t()]


def dense_recurrence(
    operators: Tensor, symbols: Tensor, first: Tensor, inputs: Tensor | None = None
) -> Tensor:
    """h_t = A(x_t) h_{t-1} + u_t, with A [V, H, H], h_0 [B, H], u [T, B, H]."""
    chosen = lookup(operators, symbols)  # [T, B, H, H]
    return _unrolled(
        lambda t, state: torch.einsum("bij,bj->bi", chosen[t], state), len(chosen), first, inputs
    )


def block_recurrence(
    operators: Tensor, symbols: Tensor, first: Tensor, inputs: Tensor | None = None
) -> Tensor:
    """The same for each of N blocks, with A [V, N, b, b], h_0 [B, N, b], u [T, B, N, b]."""
    chosen = lookup(operators, symbols)  # [T, B, N, b, b]
    return _unrolled(
        lambda t, state: torch.einsum("bnij,bnj->bni", chosen[t], state), len(chosen), first, inputs
    )


def diagonal_recurrence(gains: Tensor, first: Tensor, inputs: Tensor | None = None) -> Tensor:
    """h_t = a_t * h_{t-1} + u_t by coordinate, with a and u [T, B, H], h_0 [B, H]."""
    return _unrolled(lambda t, state: gains[t] * state, len(gains), first, inputs)


def clamped_recurrence(lower: Tensor, upper: Tensor, first: Tensor) -> Tensor:
    """h_t = max(min(r_t, h_{t-1}), s_t) by coordinate, with bounds [B, T, H], h_0 [B, H]."""
    bounds = zip(lower.unbind(1), upper.unbind(1), strict=True)
    clamp = lambda h, at: torch.maximum(torch.minimum(at[1], h), at[0])  # noqa: E731
    return torch.stack([*accumulate(bounds, clamp, initial=first)][1:], 1)


def factored_recurrence(
    core: Tensor, gains: Tensor, first: Tensor, inputs: Tensor | None = None
) -> Tensor:
    """z_t = s_t * p_{t-1} with p_t = M z_t + v_t; M [K, K], s and v [T, B, K], p_0 [B, K]."""
    step = lambda t, state: (gains[t] * state) @ core.t()  # noqa: E731
    states = _unrolled(step, len(gains), first, inputs)
    return gains * torch.cat([first.unsqueeze(0), states[:-1]])


def rotation_recurrence(angles: Tensor, first: Tensor) -> Tensor:
    """N planes rotated by angles [T, B, N], from h_0 [B, N, 2]."""
    cos, sin = angles.cos(), angles.sin()
    turns = torch.stack([cos, -sin, sin, cos], -1).unflatten(-1, (2, 2))
    return _unrolled(
        lambda t, state: torch.einsum("bnij,bnj->bni", turns[t], state), len(angles), first, None
    )


def _unrolled(
    step: Callable[[int, Tensor], Tensor], num_steps: int, first: Tensor, inputs: Tensor | None
) -> Tensor:
    states = [first]
    for t in range(num_steps):
        state = step(t, states[-1])
        states.append(state if inputs is None else state + inputs[t])
    return torch.stack(states[1:])
