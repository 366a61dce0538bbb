"""The factored recurrence: symbol gains around one shared matrix (CP factors in rank space)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from statetrack.ops.lanes import (
    apply,
    backward_pass,
    check_normalise,
    is_due,
    join_lanes,
    normalise_,
)
from statetrack.ops.precision import in_full_precision, widened


def factored_recurrence(
    core: Tensor,
    gains: Tensor,
    first: Tensor,
    inputs: Tensor | None = None,
    *,
    normalise_every: int = 0,
) -> Tensor:
    """z_t = M (s_t * z_{t-1}) (+ v_t), with M `core` [K, K].

    gains [T, B, K], first [B, K], inputs [T, B, K] give the states [T, B, K]. A third-order
    tensor of CP rank K, A(x) = U diag(s_x) V^T, runs in this form with M = V^T U.
    """
    assert core.shape == (gains.shape[-1], gains.shape[-1]), "core is [K, K], gains are [T, B, K]"
    assert gains.shape[1:] == first.shape, "gains are [T, B, K], first is [B, K]"
    assert inputs is None or inputs.shape == gains.shape, "inputs are [T, B, K]"
    check_normalise(normalise_every, inputs)
    states: Tensor = apply(
        _Factored,
        widened(core).unsqueeze(0),
        widened(gains).unsqueeze(1),
        widened(first).unsqueeze(0),
        None if inputs is None else widened(inputs).unsqueeze(1),
        normalise_every,
    )[0]
    return states.squeeze(1)


class _Factored(torch.autograd.Function):
    """core [G, K, K], gains [T, G, B, K], first [G, B, K], inputs as gains -> states as gains.

    The second result is the states with the first one before them, kept for the backward pass.
    """

    @staticmethod
    @in_full_precision
    def forward(
        core: Tensor, gains: Tensor, first: Tensor, inputs: Tensor | None, normalise_every: int
    ) -> tuple[Tensor, Tensor]:
        states = first.new_empty(len(gains) + 1, *first.shape)
        states[0] = first
        steps = states.unbind(0)
        scaled = torch.empty_like(steps[0])
        transposed = core.mT
        for t, gain in enumerate(gains.unbind(0)):
            torch.mul(gain, steps[t], out=scaled)
            torch.bmm(scaled, transposed, out=steps[t + 1])
            if inputs is not None:
                steps[t + 1].add_(inputs[t])
            if is_due(t, normalise_every):
                normalise_(steps[t + 1], (-1,))
        return states[1:], states

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inputs[0], inputs[1], output[1])

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        core, gains, states = ctx.saved_tensors
        adjoints = torch.empty_like(states)  # of every state, the first one's included
        scaled_adjoints = torch.empty_like(gains)  # of gain * state
        adjoints[-1] = gradient[-1]
        steps, scaled = adjoints.unbind(0), scaled_adjoints.unbind(0)
        gain, direct = gains.unbind(0), gradient.unbind(0)
        for t in range(len(gain) - 1, -1, -1):
            torch.bmm(steps[t + 1], core, out=scaled[t])
            if t > 0:
                torch.addcmul(direct[t - 1], gain[t], scaled[t], out=steps[t])
            else:
                torch.mul(gain[0], scaled[0], out=steps[0])
        wants_core, wants_gains, wants_first, wants_inputs, _ = ctx.needs_input_grad
        return (
            _core_gradient(adjoints[1:], gains * states[:-1]) if wants_core else None,
            scaled_adjoints * states[:-1] if wants_gains else None,
            adjoints[0] if wants_first else None,
            adjoints[1:] if wants_inputs else None,
            None,
        )

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        core: Tensor,
        gains: Tensor,
        first: Tensor,
        inputs: Tensor | None,
        normalise_every: int,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        results = apply(
            _Factored,
            join_lanes(core, in_dims[0], size, 0),
            join_lanes(gains, in_dims[1], size, 1),
            join_lanes(first, in_dims[2], size, 0),
            None if inputs is None else join_lanes(inputs, in_dims[3], size, 1),
            normalise_every,
        )
        return tuple(result.unflatten(1, (size, -1)) for result in results), (1, 1)


def _core_gradient(adjoints: Tensor, scaled: Tensor) -> Tensor:
    """dL/dM = sum over t and b of g_t (s_t * z_{t-1})^T, from [T, G, B, K] each: [G, K, K]."""
    by_lane = adjoints.movedim(1, 0).flatten(1, 2)  # [G, T * B, K]
    return by_lane.mT @ scaled.movedim(1, 0).flatten(1, 2)
