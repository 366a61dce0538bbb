"""The factored recurrence: symbols' gains and one shared matrix (CP factors in rank space)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from statetrack.ops.lanes import (
    LaneFunction,
    apply,
    backward_pass,
    check_normalise,
    is_due,
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
    """z_t = s_t * p_{t-1} with p_t = M z_t (+ v_t), and M `core` [K, K].

    gains [T, B, K], first p_0 [B, K], inputs [T, B, K] give z [T, B, K]. A third-order tensor
    of CP rank K, A(x) = U diag(s_x) V^T, has this form with M = V^T U and p_t = V^T h_t:
    then h_t = U z_t (+ u_t), so z_t is all that a readout needs. The last input has no effect.
    """
    assert core.shape == (gains.shape[-1], gains.shape[-1]), "core is [K, K], gains are [T, B, K]"
    assert gains.shape[1:] == first.shape, "gains are [T, B, K], first is [B, K]"
    assert inputs is None or inputs.shape == gains.shape, "inputs are [T, B, K]"
    check_normalise(normalise_every, inputs)
    gated: Tensor = apply(
        _Factored,
        widened(core).unsqueeze(0),
        widened(gains).unsqueeze(1),
        widened(first).unsqueeze(0),
        None if inputs is None else widened(inputs).unsqueeze(1),
        normalise_every,
    )[0]
    return gated.squeeze(1)


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
