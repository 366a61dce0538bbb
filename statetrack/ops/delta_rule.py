"""The delta rule: a matrix state that is corrected along one key after the other.

    H_t = alpha_t (I - beta_t k_t k_t^T) H_{t-1} + beta_t k_t v_t^T,    o_t = H_t^T q_t

for one key per position; with n keys, the gate alpha_t is applied first and then n such
corrections, one after the other. The gates alpha_t are given as logarithms.

The scan works on chunks (Yang et al. 2024, arXiv:2406.06484; Yang, Kautz & Hatamizadeh 2024,
arXiv:2412.06464). With G_t the sum of a chunk's log-gates up to t, every correction adds
k_i u_i^T for one row u_i, and these rows solve a triangular system:

    u_i = beta_i (v_i - e^{G_i} H_0^T k_i - sum_{j < i} e^{G_i - G_j} (k_i . k_j) u_j)

so that the systems of all chunks are solved at once, and only the states between chunks are
sequential.

B batch, T time, N heads, n keys per position, K key size, V value size, M chunks, c positions
of a chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from statetrack.ops import fla, native
from statetrack.ops.devices import KernelChoice, by_choice
from statetrack.ops.lanes import in_full_precision

CHUNK_POSITIONS, CHUNK_ROWS = 16, 32
"""The most positions of a chunk, and the most corrections (positions times keys)."""


def delta_rule(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    betas: Tensor,
    log_gates: Tensor | None,
    state: Tensor,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], of all positions.

    Queries are [B, T, N, K], keys [B, T, n, N, K], values [B, T, n, N, V], betas [B, T, n, N],
    log_gates [B, T, N] at most 0, or None for gates of 1. Raises `SettingsError` where `kernel`
    cannot run.
    """
    gated_size = 0 if log_gates is None else keys.shape[-1]
    by_fla = None if gated_size > fla.LARGEST_GATED_KEY else fla.delta_rule
    compute = by_choice(kernel, state, _scan, native.delta_rule, by_fla)
    return compute(queries, keys, values, betas, log_gates, state)


@in_full_precision
def delta_rule_step(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    betas: Tensor,
    log_gates: Tensor | None,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """Outputs [B, N, V] and the next state [B, N, K, V], at one position: the equation itself."""
    if log_gates is not None:
        state = log_gates.exp()[..., None, None] * state
    for key, value, beta in zip(keys.unbind(1), values.unbind(1), betas.unbind(1), strict=True):
        errors = value - torch.einsum("bnk,bnkv->bnv", key, state)
        state = state + torch.einsum("bn,bnk,bnv->bnkv", beta, key, errors)
    return torch.einsum("bnk,bnkv->bnv", queries, state), state


@in_full_precision
def _scan(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    betas: Tensor,
    log_gates: Tensor | None,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    num_steps, num_keys = keys.shape[1:3]
    if log_gates is None:
        log_gates = betas.new_zeros(()).expand(queries.shape[:-1])
    length = min(num_steps, CHUNK_POSITIONS, max(1, CHUNK_ROWS // num_keys))
    padding = -num_steps % length
    queries, log_gates = (
        _in_chunks(part, padding, length) for part in (queries, log_gates)
    )  # [M, B, N, c, K] and [M, B, N, c]
    keys, values, betas = (
        _in_chunks(part, padding, length).flatten(3, 4)
        for part in (keys.movedim(2, 3), values.movedim(2, 3), betas.movedim(2, 3))
    )  # [M, B, N, c n, K], [M, B, N, c n, V] and [M, B, N, c n]

    sums = log_gates.cumsum(-1)
    decays = _lower_triangle(sums.unsqueeze(-1) - sums.unsqueeze(-2), num_keys)
    gates = sums.exp()
    row_gates = _repeat(gates, num_keys, -1)
    system = (betas.unsqueeze(-1) * _repeat(decays, num_keys, -2) * (keys @ keys.mT)).tril(-1)
    known = betas.unsqueeze(-1) * torch.cat([values, row_gates.unsqueeze(-1) * keys], -1)
    rows = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)
    from_values, from_state = rows.split([values.shape[-1], keys.shape[-1]], -1)
    read = decays * (queries @ keys.mT)  # [M, B, N, c, c n]
    carried = gates.unsqueeze(-1) * queries
    written = (decays[..., -1, :].unsqueeze(-1) * keys).mT
    kept = gates[..., -1, None, None]

    outputs = []
    for m in range(len(queries)):
        rows = from_values[m] - from_state[m] @ state
        outputs.append(carried[m] @ state + read[m] @ rows)
        state = kept[m] * state + written[m] @ rows
    joined = torch.stack(outputs, 2).flatten(2, 3)  # [B, N, M c, V]
    return joined[:, :, :num_steps].transpose(1, 2), state


def _in_chunks(part: Tensor, padding: int, length: int) -> Tensor:
    """[B, T, N, ...] as [M, B, N, c, ...], with zeros, which change nothing, at the end."""
    if padding:
        part = functional.pad(part, (0, 0) * (part.dim() - 2) + (0, padding))
    chunks: Tensor = part.unflatten(1, (-1, length))
    return chunks.movedim(1, 0).transpose(2, 3)


def _lower_triangle(exponents: Tensor, num_keys: int) -> Tensor:
    """The exponentials of [..., c, c] on and below the diagonal, columns repeated: [..., c, c n].

    Entries above the diagonal could overflow, so they are removed before the exponential.
    """
    size = exponents.shape[-1]
    above = torch.ones(size, size, dtype=torch.bool, device=exponents.device).triu(1)
    return _repeat(exponents.masked_fill(above, -torch.inf).exp(), num_keys, -1)


def _repeat(part: Tensor, times: int, axis: int) -> Tensor:
    """Every entry along an axis (counted from the end) repeated consecutively."""
    return part if times == 1 else part.repeat_interleave(times, axis)
