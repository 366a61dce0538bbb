"""Rotations of planes: angles add up, so all steps are computed at once by a cumulative sum."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from statetrack.ops.lanes import LaneFunction, apply, backward_pass
from statetrack.ops.precision import widened


def rotation_recurrence(angles: Tensor, first: Tensor) -> Tensor:
    """Every plane rotated by the sum of its angles up to each step.

    h_t = R(a_1 + .. + a_t) h_0 for each of N planes: angles [T, B, N] in radians and
    first [B, N, 2] give [T, B, N, 2]. Norms are preserved, so there is nothing to normalise.
    """
    assert first.shape == (*angles.shape[1:], 2), "first is [B, N, 2], angles are [T, B, N]"
    states: Tensor = apply(_Rotation, widened(angles), widened(first))[0]
    return states


class _Rotation(LaneFunction):
    """angles [T, *L], first [*L, 2] -> states [T, *L, 2], and complex rotations [T, *L] up to t.

    A plane is identified with the complex numbers, where a rotation by the angle a is exp(i a).
    """

    axes = (1, 0)
    saved = (1,)
    by_coordinate = True

    @staticmethod
    def forward(angles: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        total = _running_sum(angles)
        turns = torch.complex(total.cos(), total.sin())
        return torch.view_as_real(turns * _as_complex(first)), turns

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        first, turns = ctx.saved_tensors
        back = _as_complex(gradient) * turns.conj()  # seen from the first state, [T, *L]
        wants_angles, wants_first = ctx.needs_input_grad
        return (
            _sum_of_later((back * _as_complex(first).conj()).imag) if wants_angles else None,
            torch.view_as_real(back.sum(0)) if wants_first else None,
        )


def _running_sum(angles: Tensor) -> Tensor:
    """The sum of the angles up to each step; modulo 2 pi where there are many steps.

    The sum grows with T while its rounding error must stay far below the angle between two
    states, so long sums are accumulated in float64 and reduced to [0, 2 pi).
    """
    if len(angles) <= _LONGEST_PLAIN_SUM:
        return angles.cumsum(0)
    return angles.cumsum(0, dtype=torch.float64).remainder(2 * math.pi).to(angles.dtype)


def _sum_of_later(values: Tensor) -> Tensor:
    """The sum over each step and all later ones, [T, *L]."""
    return values.flip(0).cumsum(0).flip(0)


def _as_complex(planes: Tensor) -> Tensor:
    return torch.view_as_complex(planes.contiguous())


_LONGEST_PLAIN_SUM = 64  # steps of at most pi: float32 is then off by about 1e-5 rad
