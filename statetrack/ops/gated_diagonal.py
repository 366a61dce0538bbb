"""The gated diagonal recurrence of activations, real or rotating by constant phases.

    h_t = a_t * h_{t-1} + u_t        or        h_t = a_t e^{i theta} * h_{t-1} + u_t

It differs from `diagonal_recurrence` in its layout, [B, T, D], and in its choice of kernels.

B batch, T time, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.diagonal import diagonal_recurrence
from statetrack.ops.fla import KernelChoice, adapters, by_kernel


def gated_diagonal(
    gains: Tensor, inputs: Tensor, state: Tensor, *, kernel: KernelChoice = "torch"
) -> tuple[Tensor, Tensor]:
    """States [B, T, D] and the last one, for gains in [0, 1] and inputs [B, T, D], state [B, D].

    Raises `SettingsError` where `kernel` cannot run.
    """
    if by_kernel(kernel, state):
        return adapters.gated_diagonal(gains, inputs, state)
    return _scan(gains, inputs, state)


def turning_diagonal(
    moduli: Tensor,
    phases: Tensor,
    inputs: Tensor,
    state: Tensor,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """The same for gains of the given moduli [B, T, D] and phases [D]; states are complex.

    Raises `SettingsError` where `kernel` cannot run.
    """
    if by_kernel(kernel, state):
        return adapters.turning_diagonal(moduli, phases, inputs, state)
    return _scan(torch.polar(moduli, phases.expand_as(moduli)), inputs, state)


def _scan(gains: Tensor, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    states = diagonal_recurrence(gains.transpose(0, 1), state, inputs.transpose(0, 1))
    return states.transpose(0, 1), states[-1]
