"""Kernels of flash-linear-attention in place of torch's own operations, where they can run.

A scan in torch launches hundreds of small operations per word; a kernel is one launch. It runs on
CUDA, in float32, and multiplies in float32: on recent GPUs Triton uses TF32 (a 10-bit mantissa) for
matrix products, which is not precise enough for a state that is kept over hundreds of steps. So
TF32 is switched off, unless the environment variable `TRITON_F32_DEFAULT` is set.

Kernels take [B, T, N, ...], gates as logarithms, a first state [B, N, K, V] and a `scale` of
queries that is 1 / sqrt(K) unless it is given; keys are normalised and values of beta are brought
into their range before the call. Of its chunked and recurrent kernels, the recurrent one is taken
wherever it has a backward pass: it has no matrix products. Each recurrence here has the arguments
of the function of the same name in `statetrack.ops`. Nothing else of that library is used.

Source: Yang & Zhang (2024), flash-linear-attention, version 0.6, as the package `fla-core`.

B batch, T time, N heads, n keys per position, K key size, V value size, D width.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from statetrack.ops.lanes import (
    apply,
    in_full_precision,
    join_lanes,
    refusing_second_derivatives,
)
from statetrack.registry import missing_kernels

OLDEST_GPU = (8, 0)
"""The least compute capability that Triton supports."""


def why_not(device: torch.device, dtype: torch.dtype = torch.float32) -> str | None:
    """Why the kernels cannot run on tensors of a device and type; None if they can."""
    if (problem := missing_kernels()) is not None:
        return problem
    if device.type != "cuda":
        return f"its kernels run on CUDA only, and the device is {device}"
    if torch.cuda.get_device_capability(device) < OLDEST_GPU:
        return f"Triton needs a GPU of compute capability {OLDEST_GPU[0]}.{OLDEST_GPU[1]} or more"
    return None if dtype == torch.float32 else f"its kernels get float32, not {dtype}"


# --- calls ---

Kernel = Callable[..., tuple[Tensor, ...]]


def load(module: str, name: str) -> Callable[..., Any]:
    """A function of flash-linear-attention's `ops`, imported when it is first needed."""
    os.environ.setdefault("TRITON_F32_DEFAULT", "ieee")
    function: Callable[..., Any] = getattr(importlib.import_module(f"fla.ops.{module}"), name)
    return function


@in_full_precision
def call(kernel: Kernel, *inputs: Tensor) -> tuple[Tensor, ...]:
    """The results of a kernel that maps tensors [B, ...] to tensors [B, ...], also in `vmap`."""
    results: tuple[Tensor, ...] = apply(_Kernel, kernel, [], *inputs)
    return results


class _Kernel(torch.autograd.Function):
    """A kernel with its own backward pass, which `vmap` calls once for all replicas.

    It takes activations only, with the batch first, which the replica axis is merged into.

    `vmap` cannot trace a kernel, and an autograd function may save only its own inputs and
    outputs. So the kernel runs on leaves, and `graph` holds leaves and results for the backward
    pass.
    """

    @staticmethod
    def forward(kernel: Kernel, graph: list[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        differentiable = any(part.requires_grad for part in inputs)
        # all or none: the backward pass of some kernels assumes that the first state, if given,
        # requires a gradient
        leaves = [part.detach().requires_grad_(differentiable) for part in inputs]
        with torch.set_grad_enabled(differentiable):
            results = kernel(*leaves)
        graph.extend((leaves, results))
        return tuple(result.detach() for result in results)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)
        ctx.graph = inputs[1]

    @staticmethod
    @refusing_second_derivatives
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        leaves, results = ctx.graph
        given = [pair for pair in zip(results, gradients, strict=True) if pair[1] is not None]
        if not given:
            return (None,) * len(ctx.needs_input_grad)
        outputs, incoming = zip(*given, strict=True)
        by_leaf = torch.autograd.grad(outputs, leaves, incoming, allow_unused=True)
        return None, None, *by_leaf

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        kernel: Kernel,
        graph: list[Any],
        *inputs: Tensor,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        together = [
            join_lanes(part, mapped, size, 0)
            for part, mapped in zip(inputs, in_dims[2:], strict=True)
        ]
        results = apply(_Kernel, kernel, [], *together)
        return tuple(part.unflatten(0, (size, -1)) for part in results), (0,) * len(results)


# --- recurrences ---

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
