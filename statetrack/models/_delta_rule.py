"""The delta rule: a matrix of associations, corrected along one key after the other.

    H_t = alpha_t (I - beta_t k_t k_t^T) H_{t-1} + beta_t k_t v_t^T,    o_t = H_t^T q_t

for one key a position; with n keys, the gate alpha_t acts first and then n such corrections
follow one another. The gates alpha_t are given as logarithms.

The scan works on chunks (Yang et al. 2024, arXiv:2406.06484; Yang, Kautz & Hatamizadeh 2024,
arXiv:2412.06464). With G_t the sum of the log-gates of a chunk so far, every correction adds
k_i u_i^T for one row u_i, and these rows solve a triangular system:

    u_i = beta_i (v_i - e^{G_i} H_0^T k_i - sum_{j < i} e^{G_i - G_j} (k_i . k_j) u_j)

so that all chunks are solved side by side, and only the states between chunks wait for each
other.

B batch, T time, N heads, n keys a position, K key size, V value size, M chunks, c positions
of a chunk.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from statetrack.ops.precision import in_full_precision

CHUNK_POSITIONS, CHUNK_ROWS = 16, 32
"""A chunk has at most so many positions, and at most so many corrections (positions times keys)."""


class DeltaFactors(NamedTuple):
    """What a delta rule does at some positions; the leading axes are [B, T], or [B] for one."""

    queries: Tensor  # [..., N, K]
    keys: Tensor  # [..., n, N, K]
    values: Tensor  # [..., n, N, V]
    betas: Tensor  # [..., n, N]
    log_gates: Tensor  # [..., N]

    def transition(self) -> Tensor:
        """The matrices by which states are multiplied, from the left: [..., N, K, K]."""
        identity = torch.eye(self.keys.shape[-1], dtype=self.keys.dtype, device=self.keys.device)
        product = self.log_gates.exp()[..., None, None] * identity
        for keys, betas in zip(self.keys.unbind(-3), self.betas.unbind(-2), strict=True):
            read = torch.einsum("...k,...kl->...l", keys, product)
            product = product - betas[..., None, None] * keys.unsqueeze(-1) * read.unsqueeze(-2)
        return product


@in_full_precision
def delta_step(factors: DeltaFactors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, N, V] and the next state [B, N, K, V], at one position."""
    state = factors.log_gates.exp()[..., None, None] * state
    corrections = zip(
        factors.keys.unbind(1), factors.values.unbind(1), factors.betas.unbind(1), strict=True
    )
    for keys, values, betas in corrections:
        errors = values - torch.einsum("bnk,bnkv->bnv", keys, state)
        state = state + torch.einsum("bn,bnk,bnv->bnkv", betas, keys, errors)
    return torch.einsum("bnk,bnkv->bnv", factors.queries, state), state


@in_full_precision
def delta_scan(factors: DeltaFactors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], of all positions."""
    num_steps, num_keys = factors.keys.shape[1:3]
    length = min(num_steps, CHUNK_POSITIONS, max(1, CHUNK_ROWS // num_keys))
    padding = -num_steps % length
    queries, log_gates = (
        _in_chunks(part, padding, length) for part in (factors.queries, factors.log_gates)
    )  # [M, B, N, c, K] and [M, B, N, c]
    keys, values, betas = (
        _in_chunks(part, padding, length).flatten(3, 4)
        for part in (
            factors.keys.movedim(2, 3),
            factors.values.movedim(2, 3),
            factors.betas.movedim(2, 3),
        )
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

    Those above it could overflow, so they are removed before.
    """
    size = exponents.shape[-1]
    above = torch.ones(size, size, dtype=torch.bool, device=exponents.device).triu(1)
    return _repeat(exponents.masked_fill(above, -torch.inf).exp(), num_keys, -1)


def _repeat(part: Tensor, times: int, axis: int) -> Tensor:
    """Every entry along an axis (counted from the end) so many times in a row."""
    return part if times == 1 else part.repeat_interleave(times, axis)
