"""Rotations of planes: angles add, so no step has to wait for the one before."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from statetrack.ops._lanes import widened


def rotation_recurrence(angles: Tensor, first: Tensor) -> Tensor:
    """Every plane turned by the sum of its angles so far.

    h_t = R(a_1 + .. + a_t) h_0 for each of N planes: angles [T, B, N] in radians and
    first [B, N, 2] give [T, B, N, 2]. Lengths are kept, so there is nothing to normalise.
    """
    assert first.shape == (*angles.shape[1:], 2), "first is [B, N, 2], angles are [T, B, N]"
    angles, first = widened(angles), widened(first)
    total = _running_sum(angles)
    cos, sin = total.cos(), total.sin()
    x, y = first.unbind(-1)
    return torch.stack([cos * x - sin * y, sin * x + cos * y], -1)


def _running_sum(angles: Tensor) -> Tensor:
    """The sum of the angles up to each step, in one turn where it is long.

    The sum grows with T while its rounding error must stay far below the angle between two
    states, so long sums are accumulated in float64 and brought back to [0, 2 pi).
    """
    if len(angles) <= _LONGEST_EXACT_SUM:
        return angles.cumsum(0)
    return angles.cumsum(0, dtype=torch.float64).remainder(2 * math.pi).to(angles.dtype)


_LONGEST_EXACT_SUM = 64  # steps of at most pi: a float32 sum is then off by 1e-5 rad at most
