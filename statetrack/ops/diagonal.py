"""Recurrences by coordinate: by a real or complex gain, by rotations of planes, or between bounds.

`gated_diagonal` and `turning_diagonal` take activations [B, T, D], and have a choice of kernels.
Angles of rotations add up, so `rotation_recurrence` computes all steps by a cumulative sum.

T time, B batch, H hidden, D width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from statetrack.ops import fla, native
from statetrack.ops.devices import KernelChoice, by_choice
from statetrack.ops.lanes import (
    LaneFunction,
    apply,
    backward_pass,
    check_normalise,
    is_due,
    normalise_,
    turned,
    widened,
)


def diagonal_recurrence(
    gains: Tensor, first: Tensor, inputs: Tensor | None = None, *, normalise_every: int = 0
) -> Tensor:
    """h_t = a_t * h_{t-1} (+ u_t) by coordinate, real or complex.

    gains [T, B, H], first [B, H], inputs [T, B, H] give the states [T, B, H]. A complex
    gradient is the conjugate Wirtinger derivative, as in torch.
    """
    assert gains.shape[1:] == first.shape, "gains are [T, B, H], first is [B, H]"
    assert inputs is None or inputs.shape == gains.shape, "inputs are [T, B, H]"
    assert gains.is_complex() == first.is_complex(), "all are real or all are complex"
    check_normalise(normalise_every, inputs)
    gains, first = widened(gains), widened(first)
    inputs = None if inputs is None else widened(inputs)
    states: Tensor = apply(_Diagonal, gains, first, inputs, normalise_every)[0]
    return states


def gated_diagonal(
    gains: Tensor, inputs: Tensor, state: Tensor, *, kernel: KernelChoice = "torch"
) -> tuple[Tensor, Tensor]:
    """The diagonal recurrence of activations: states [B, T, D] and the last one.

    For gains in [0, 1] and inputs [B, T, D], state [B, D]. Raises `SettingsError`
    where `kernel` cannot run.
    """
    compute = by_choice(kernel, state, _time_first, native.gated_diagonal, fla.gated_diagonal)
    return compute(gains, inputs, state)


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
    compute = by_choice(kernel, state, _turned, native.turning_diagonal, fla.turning_diagonal)
    return compute(moduli, phases, inputs, state)


def _turned(moduli: Tensor, phases: Tensor, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    return _time_first(turned(moduli, phases), inputs, state)


def _time_first(gains: Tensor, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    states = diagonal_recurrence(gains.transpose(0, 1), state, inputs.transpose(0, 1))
    return states.transpose(0, 1), states[-1]


class _Diagonal(LaneFunction):
    """gains [T, *L], first [*L], inputs [T, *L] -> states [T, *L], and [T + 1, *L] with first."""

    axes = (1, 0, 1)
    saved = (0,)
    by_coordinate = True

    @staticmethod
    def forward(
        gains: Tensor, first: Tensor, inputs: Tensor | None, normalise_every: int
    ) -> tuple[Tensor, Tensor]:
        states = gains.new_empty(len(gains) + 1, *first.shape)
        states[0] = first
        if normalise_every:
            _scan_normalised(gains, states, normalise_every)
        elif chunks_pay(gains):
            _scan_in_chunks(gains, inputs, states)
        else:
            terms = None if inputs is None else inputs.unbind(0)
            _scan(gains.unbind(0), terms, states.unbind(0))
        return states[1:], states

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gains, states = ctx.saved_tensors
        adjoints = _adjoints(gains.conj().resolve_conj(), gradient)
        wants_gains, wants_first, wants_inputs, _ = ctx.needs_input_grad
        return (
            adjoints[1:] * states[:-1].conj() if wants_gains else None,
            adjoints[0] if wants_first else None,
            adjoints[1:] if wants_inputs else None,
            None,
        )


def _scan(
    gains: Sequence[Tensor], inputs: Sequence[Tensor] | None, states: Sequence[Tensor]
) -> None:
    """Fill states[1:] from states[0], one step after the other."""
    for t, gain in enumerate(gains):
        if inputs is None:
            torch.mul(gain, states[t], out=states[t + 1])
        else:
            torch.addcmul(inputs[t], gain, states[t], out=states[t + 1])


def _scan_normalised(gains: Tensor, states: Tensor, normalise_every: int) -> None:
    """The same, each word's state divided by a power of two every `normalise_every` steps."""
    steps = states.unbind(0)
    for t, gain in enumerate(gains.unbind(0)):
        torch.mul(gain, steps[t], out=steps[t + 1])
        if is_due(t, normalise_every):
            normalise_(steps[t + 1], (-1,))


def _scan_in_chunks(gains: Tensor, inputs: Tensor | None, states: Tensor) -> None:
    """The same in about 2 sqrt(T) steps: all chunks in parallel, then joined.

    Within a chunk that starts from 0 the states are s_t, and from h they are s_t + p_t h, with
    p_t the product of the chunk's gains up to t; only the chunks' last states are sequential.
    """
    num_steps = len(gains)
    length = math.isqrt(num_steps)
    num_chunks = num_steps // length
    whole = num_chunks * length
    split = (num_chunks, length)
    factors = gains[:whole].unflatten(0, split).unbind(1)
    products = gains.new_empty(num_chunks, length, *gains.shape[1:])
    products[:, 0] = factors[0]
    _scan(factors[1:], None, products.unbind(1))
    chunks = states[1 : whole + 1].unflatten(0, split)
    starts = states.new_empty(num_chunks + 1, *states.shape[1:])
    starts[0] = states[0]
    if inputs is None:
        _scan(products[:, -1].unbind(0), None, starts.unbind(0))
        torch.mul(products, starts[:-1].unsqueeze(1), out=chunks)
    else:
        chunks[:, 0] = inputs[:whole:length]
        _scan(
            factors[1:],
            inputs[:whole].unflatten(0, split)[:, 1:].unbind(1),
            chunks.unbind(1),
        )
        _scan(products[:, -1].unbind(0), chunks[:, -1].unbind(0), starts.unbind(0))
        chunks.addcmul_(products, starts[:-1].unsqueeze(1))
    rest = None if inputs is None else inputs[whole:].unbind(0)
    _scan(gains[whole:].unbind(0), rest, states[whole:].unbind(0))


def _adjoints(conjugates: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the loss by every state, the first one's included: [T + 1, *L].

    g_t = dL/dh_t (direct) + conj(a_{t+1}) g_{t+1}: the same recurrence, backwards in time.
    """
    direct = torch.cat([torch.zeros_like(gradient[:1]), gradient])
    adjoints = torch.empty_like(direct)
    if chunks_pay(conjugates):
        backwards = torch.empty_like(direct)
        backwards[0] = direct[-1]
        _scan_in_chunks(conjugates.flip(0), direct[:-1].flip(0), backwards)
        return backwards.flip(0)
    adjoints[-1] = direct[-1]
    _scan(conjugates.unbind(0)[::-1], direct[:-1].unbind(0)[::-1], adjoints.unbind(0)[::-1])
    return adjoints


def chunks_pay(gains: Tensor) -> bool:
    """Whether a scan in chunks is faster for gains [T, *L].

    A step takes about 2 microseconds to launch, and then a time per byte; chunks need fewer
    launches and about three times the memory accesses. Measured on one core, they are 2 to 20
    times faster from 64 steps and up to 4 kB per step, and slower from 16 kB on. On a GPU a launch
    takes longer.
    """
    num_bytes = gains[0].numel() * gains.element_size()
    return len(gains) >= 64 and num_bytes <= (2**22 if gains.is_cuda else 2**13)


def clamped_recurrence(lower: Tensor, upper: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """h_t = max(min(r_t, h_{t-1}), s_t) by coordinate: states [B, T, D] and the last one.

    For lower bounds s and upper bounds r [B, T, D], and the state [B, D]. The gradient of a state
    that does not change is one by the state before it, also where that equals a bound; otherwise it
    is one by the bound whose value it takes.
    """
    bounds = (widened(part).transpose(0, 1) for part in (lower, upper))
    states = apply(_Clamped, *bounds, widened(state))[0]
    return states.transpose(0, 1), states[-1]


class _Clamped(LaneFunction):
    """Bounds [T, *L], first [*L] -> states [T, *L], and [T + 1, *L] with first."""

    axes = (1, 1, 0)
    saved = (0,)
    by_coordinate = True

    @staticmethod
    def forward(lower: Tensor, upper: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        states = lower.new_empty(len(lower) + 1, *first.shape)
        states[0] = first
        steps = states.unbind(0)
        for t, (low, high) in enumerate(zip(lower.unbind(0), upper.unbind(0), strict=True)):
            torch.minimum(high, steps[t], out=steps[t + 1])
            torch.maximum(steps[t + 1], low, out=steps[t + 1])
        return states[1:], states

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        lower, states = ctx.saved_tensors
        unchanged = (states[1:] == states[:-1]).to(gradient.dtype)
        adjoints = _adjoints(unchanged, gradient)
        by_bounds = adjoints[1:] * (1 - unchanged)
        by_lower = by_bounds * (states[1:] == lower)
        return by_lower, by_bounds - by_lower, adjoints[0]


_LONGEST_PLAIN_SUM = 64  # steps of at most pi: float32 is then off by about 1e-5 rad


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
