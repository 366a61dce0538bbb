"""The recurrences that flash-linear-attention has kernels for, in the conventions of this package.

Its kernels take [B, T, N, ...], gates as logarithms, a first state [B, N, K, V] and a `scale` of
queries that is 1 / sqrt(K) unless it is given; keys are normalised and values of beta are brought
into their range before the call. Of its chunked and recurrent kernels, the recurrent one is taken
wherever it has a backward pass: it has no matrix products, and computes in float32. Nothing else
of that library is used.

Source: Yang & Zhang (2024), flash-linear-attention, version 0.6, as the package `fla-core`.

B batch, T time, N heads, n keys per position, K key size, V value size, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from statetrack.ops.fla.calling import call, load

LARGEST_GATED_KEY = 256
"""The largest key size that the gated delta rule's kernel takes."""


def delta_rule(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    betas: Tensor,
    log_gates: Tensor | None,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """H <- alpha H, then H <- H + beta k (v - H^T k)^T for each of n keys, read as H^T q.

    queries [B, T, N, K], keys [B, T, n, N, K], values [B, T, n, N, V], betas [B, T, n, N] and
    log_gates [B, T, N] (None: no gates) give outputs [B, T, N, V] and the last state
    [B, N, K, V]. To the kernel, n keys are n positions: the first has the gate, the last the
    query, and the others read nothing.
    """
    num_keys = keys.shape[2]
    queries = functional.pad(queries.unsqueeze(2), (0, 0, 0, 0, num_keys - 1, 0))
    inputs = [part.flatten(1, 2) for part in (queries, keys, values, betas)]
    if log_gates is None:
        outputs, last = call(_delta_rule, state, *inputs)
    else:
        log_gates = functional.pad(log_gates.unsqueeze(2), (0, 0, 0, num_keys - 1))
        outputs, last = call(_gated_delta_rule, state, *inputs, log_gates.flatten(1, 2))
    return outputs[:, num_keys - 1 :: num_keys], last


def gated_attention(
    queries: Tensor, keys: Tensor, values: Tensor, log_gains: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = diag(a_t) S_{t-1} + k_t v_t^T, read as S_t^T q_t; log_gains [B, T, N, K]."""
    outputs, last = call(_gated_attention, state, queries, keys, values, log_gains)
    return outputs, last


def decayed_attention(
    queries: Tensor, keys: Tensor, values: Tensor, log_decays: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = exp(a_t) S_{t-1} + k_t v_t^T, read as S_t^T q_t; log_decays [B, T, N].

    Queries and keys [B, T, 1, K] are the same for every head.
    """
    shape = (*log_decays.shape, -1)
    queries, keys = queries.expand(shape), keys.expand(shape)
    outputs, last = call(_decayed_attention, state, queries, keys, values, log_decays)
    return outputs, last


def additive_attention(
    queries: Tensor, keys: Tensor, values: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = S_{t-1} + k_t v_t^T, read as S_t^T q_t: attention that decays by a factor of 1."""
    no_decay = queries.new_zeros(queries.shape[:-1])
    return decayed_attention(queries, keys, values, no_decay, state)


def gated_diagonal(gains: Tensor, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """h_t = a_t * h_{t-1} + u_t by coordinate, real: states [B, T, D] and the last, [B, D].

    A gain of 0 is replaced by the smallest positive number, whose logarithm is finite.
    """
    log_gains = gains.clamp_min(torch.finfo(gains.dtype).tiny).log()
    states, last = call(_diagonal, state, inputs, log_gains)
    return states, last


def turning_diagonal(
    moduli: Tensor, phases: Tensor, inputs: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """h_t = a_t e^{i theta} * h_{t-1} + u_t, for phases [D] that depend on no input.

    In a frame that rotates with the phases the gains are real: g_t = e^{-i theta t} h_t satisfies
    g_t = a_t g_{t-1} + e^{-i theta t} u_t. Angles are computed in float64, since t times the
    rounding error of theta would not be negligible in float32.
    """
    times = torch.arange(1, inputs.shape[1] + 1, device=inputs.device, dtype=torch.float64)
    angles = times.unsqueeze(-1) * phases.double()  # [T, D]
    turns = torch.complex(angles.cos().to(moduli.dtype), angles.sin().to(moduli.dtype))
    still = inputs * turns.conj()
    parts, _ = gated_diagonal(
        torch.cat([moduli, moduli], -1),
        torch.cat([still.real, still.imag], -1),
        torch.cat([state.real, state.imag], -1),
    )
    states = torch.complex(*parts.chunk(2, -1)) * turns
    return states, states[:, -1]


def _delta_rule(
    state: Tensor, queries: Tensor, keys: Tensor, values: Tensor, betas: Tensor
) -> tuple[Tensor, Tensor]:
    kernel = load("delta_rule", "fused_recurrent_delta_rule")
    return _from_state(kernel, state, queries, keys, values, beta=betas)


def _gated_delta_rule(
    state: Tensor, queries: Tensor, keys: Tensor, values: Tensor, betas: Tensor, log_gates: Tensor
) -> tuple[Tensor, Tensor]:
    kernel = load("gated_delta_rule", "chunk_gated_delta_rule")
    return _from_state(kernel, state, queries, keys, values, beta=betas, g=log_gates)


def _gated_attention(
    state: Tensor, queries: Tensor, keys: Tensor, values: Tensor, log_gains: Tensor
) -> tuple[Tensor, Tensor]:
    kernel = load("gla", "fused_recurrent_gla")
    return _from_state(kernel, state, queries, keys, values, gk=log_gains)


def _decayed_attention(
    state: Tensor, queries: Tensor, keys: Tensor, values: Tensor, log_decays: Tensor
) -> tuple[Tensor, Tensor]:
    kernel = load("simple_gla", "fused_recurrent_simple_gla")
    return _from_state(kernel, state, queries, keys, values, g=log_decays)


def _from_state(
    kernel: Callable[..., Any],
    state: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    **gates: Tensor,
) -> tuple[Tensor, Tensor]:
    """Outputs and the last state of a kernel that starts in `state`; queries are not scaled."""
    outputs, last = kernel(
        queries, keys, values, **gates, scale=1.0, initial_state=state, output_final_state=True
    )
    return outputs, last


def _diagonal(state: Tensor, inputs: Tensor, log_gains: Tensor) -> tuple[Tensor, Tensor]:
    kernel = load("hgrn", "fused_recurrent_hgrn")
    states, last = kernel(inputs, log_gains, initial_state=state, output_final_state=True)
    return states, last
