"""A gated delta product, step by step and chunk by chunk, without a fault and with each known one.

    S <- exp(g_t) S,    S <- S + beta_{t,j} k_{t,j} (v_{t,j} - S^T k_{t,j})^T  for each key j
    o_t = scale S^T q_t

is written here from the equations and shares no code with the package. A fault is an option of it,
`Faults`; the functions below it are the kernels that `check_kernel.py` is given, by name. k is
[B, T, n, N, K] or, for one key, [B, T, N, K]. Chunks are of `CHUNK` positions.

B words, T time, N heads, n keys a position, K key size, V value size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

CHUNK = 64


def bfloat16(x: Tensor) -> Tensor:
    return x.to(torch.bfloat16).to(x.dtype)


def tf32(x: Tensor) -> Tensor:
    """Rounded to ten bits of mantissa, ties to even."""
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp(torch.round(mantissa * 2**11) / 2**11, exponent)


def as_it_is(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True)
class Faults:
    """What a kernel does wrong; by default nothing."""

    beta_scale: float = 1.0
    """What beta is multiplied by: 1/2 where the flag for negative eigenvalues is ignored."""
    beta: Callable[[Tensor], Tensor] = as_it_is
    gates: Callable[[Tensor], Tensor] = as_it_is
    state: Callable[[Tensor], Tensor] = as_it_is
    products: Callable[[Tensor], Tensor] = as_it_is
    inverse: Callable[[Tensor], Tensor] = as_it_is
    reversed_keys: bool = False
    misses_resets: bool = False
    drops_state_at_chunks: bool = False
    strict_guard: bool = False
    """A guard before exp lets only differences of log gates below 0 pass, and not 0 itself."""
    error_before_gate: bool = False
    """The error v - S^T k is of the state before it decays."""


def _prepared(faults: Faults, given: dict[str, Any]) -> tuple[Tensor, ...]:
    q, k, v, beta, g = (given.get(name) for name in ("q", "k", "v", "beta", "g"))
    if k.dim() == 4:
        k, v, beta = k.unsqueeze(2), v.unsqueeze(2), beta.unsqueeze(2)
    if faults.reversed_keys:
        k, v, beta = k.flip(2), v.flip(2), beta.flip(2)
    g = q.new_zeros(q.shape[:3]) if g is None else faults.gates(g)
    return q, k, v, faults.beta(beta * faults.beta_scale), g


def _segments(length: int, cu_seqlens: Tensor | None, faults: Faults) -> list[tuple[int, int]]:
    """The words that stand one after the other."""
    if cu_seqlens is None or faults.misses_resets:
        return [(0, length)]
    ends = cu_seqlens.tolist()
    return list(itertools.pairwise(ends))


def recurrent(
    faults: Faults = Faults(),
    *,
    scale: float,
    state: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    """Position by position."""
    q, k, v, beta, g = _prepared(faults, given)
    outputs, product = [], faults.products
    for begin, end in _segments(q.shape[1], cu_seqlens, faults):
        memory = q.new_zeros(q.shape[0], *q.shape[2:], v.shape[-1]) if state is None else state
        for t in range(begin, end):
            decay = g[:, t].exp()[..., None, None]
            if not faults.error_before_gate:
                memory = decay * memory
            for j in range(k.shape[2]):
                key = k[:, t, j].unsqueeze(-1)
                known = (product(key) * product(memory)).sum(-2)
                error = beta[:, t, j].unsqueeze(-1) * (v[:, t, j] - known)
                if faults.error_before_gate and j == 0:
                    memory = decay * memory
                memory = memory + key * error.unsqueeze(-2)
            memory = faults.state(memory)
            outputs.append(scale * (product(q[:, t].unsqueeze(-1)) * product(memory)).sum(-2))
    return torch.stack(outputs, 1), memory


def chunked(
    faults: Faults = Faults(),
    *,
    scale: float,
    state: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    """Chunk by chunk: the rows that a chunk writes solve a triangular system."""
    q, k, v, beta, g = _prepared(faults, given)
    outputs, n = [], k.shape[2]
    for begin, end in _segments(q.shape[1], cu_seqlens, faults):
        memory = q.new_zeros(q.shape[0], *q.shape[2:], v.shape[-1]) if state is None else state
        for first in range(begin, end, CHUNK):
            part = slice(first, min(first + CHUNK, end))
            if faults.drops_state_at_chunks and first > begin:
                memory = torch.zeros_like(memory)
            # [B, N, T n, ..]: the keys of a position one after the other, the first has the gate
            keys, values, betas = (
                each[:, part].flatten(1, 2).transpose(1, 2) for each in (k, v, beta)
            )
            sums = torch.nn.functional.pad(g[:, part].unsqueeze(2), (0, 0, 0, n - 1))
            sums = sums.flatten(1, 2).transpose(1, 2).cumsum(-1)
            queries, last = q[:, part].transpose(1, 2), slice(n - 1, None, n)
            apart = sums.unsqueeze(-1) - sums.unsqueeze(-2)
            passes = apart < 0 if faults.strict_guard else apart <= 0
            among = torch.where(passes, apart, -torch.inf).exp()
            system = (betas.unsqueeze(-1) * (keys @ keys.mT) * among).tril(-1)
            eye = torch.eye(keys.shape[2], dtype=q.dtype)
            inverse = torch.linalg.solve_triangular(system + eye, eye, upper=False)
            inverse = faults.inverse(inverse)
            decay = sums.exp().unsqueeze(-1)
            rows = inverse @ (betas.unsqueeze(-1) * (values - decay * (keys @ memory)))
            reads = (queries @ keys.mT) * apart.clamp_max(0).exp()[:, :, last]
            reads = reads * _seen(len(eye), n).to(q)
            outputs.append(scale * (decay[:, :, last] * (queries @ memory) + reads @ rows))
            memory = decay[:, :, -1:] * memory + (keys * apart[:, :, -1, :, None].exp()).mT @ rows
            memory = faults.state(memory)
    return torch.cat(outputs, 2).transpose(1, 2), memory


def _seen(size: int, n: int) -> Tensor:
    """Which rows a position's output contains: those of positions up to it."""
    position = torch.arange(size) // n
    return position <= torch.arange(size // n).unsqueeze(-1)


# --- the kernels that check_kernel.py is given ---

right_step_by_step = partial(recurrent, Faults())
right_in_chunks = partial(chunked, Faults())
negative_eigenvalues_ignored = partial(recurrent, Faults(beta_scale=0.5))
state_in_bfloat16 = partial(recurrent, Faults(state=bfloat16))
state_in_bfloat16_between_chunks = partial(chunked, Faults(state=bfloat16))
gates_in_bfloat16 = partial(chunked, Faults(gates=bfloat16))
state_dropped_at_chunks = partial(chunked, Faults(drops_state_at_chunks=True))
beta_in_bfloat16 = partial(recurrent, Faults(beta=bfloat16))
reflections_reversed = partial(recurrent, Faults(reversed_keys=True))
reset_missed = partial(chunked, Faults(misses_resets=True))
guard_drops_equal_gates = partial(chunked, Faults(strict_guard=True))
inverse_in_bfloat16 = partial(chunked, Faults(inverse=bfloat16))
products_in_tf32 = partial(recurrent, Faults(products=tf32))
error_before_gate = partial(recurrent, Faults(error_before_gate=True))
