"""Initial time steps of state space models, drawn so that time scales of all lengths occur.

    dt = exp(u),  u uniform in [log least, log largest]

(Gu & Dao 2023, arXiv:2312.00752, section 3.6.) A layer that computes its time steps by a softplus
initialises its bias with the inverse softplus of such a draw.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LEAST, LARGEST = 1e-3, 1e-1


def draw_time_steps(size: int) -> Tensor:
    """Time steps [size], log-uniform between 0.001 and 0.1."""
    low, high = math.log(LEAST), math.log(LARGEST)
    return torch.exp(low + (high - low) * torch.rand(size))


def inverse_softplus(positive: Tensor) -> Tensor:
    """The x with log(1 + exp(x)) = positive."""
    return positive + torch.log(-torch.expm1(-positive))
