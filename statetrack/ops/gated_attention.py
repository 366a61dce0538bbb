"""Gated attention: a matrix state, each row of which decays by its own gain.

    S_t = diag(a_t) S_{t-1} + k_t v_t^T,    y_t = S_t^T q_t

All of a chunk's outer products are computed at once; the states then follow by the diagonal
recurrence, exactly for any gains (Yang et al. 2024, arXiv:2312.06635).

B batch, T time, N heads, K size of keys and queries, V size of values, c positions of a chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.diagonal import diagonal_recurrence
from statetrack.ops.fla import KernelChoice, adapters, by_kernel
from statetrack.ops.precision import in_full_precision

CHUNK = 32
"""Positions whose outer products are held at once."""


def gated_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_gains: Tensor,
    state: Tensor,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], from the first one.

    Queries, keys and log_gains (at most 0) are [B, T, N, K], values [B, T, N, V]. Raises
    `SettingsError` where `kernel` cannot run.
    """
    compute = adapters.gated_attention if by_kernel(kernel, state) else _in_chunks
    return compute(queries, keys, values, log_gains, state)


@in_full_precision
def _in_chunks(
    queries: Tensor, keys: Tensor, values: Tensor, log_gains: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    parts = (queries, keys, values, log_gains.exp())
    pieces = (part.transpose(0, 1).split(CHUNK) for part in parts)
    for query, key, value, gain in zip(*pieces, strict=True):  # [c, B, N, size]
        products = key.unsqueeze(-1) * value.unsqueeze(-2)  # [c, B, N, K, V]
        spread = gain.unsqueeze(-1).expand_as(products)
        states = diagonal_recurrence(spread, state, products)
        outputs.append(torch.einsum("tbnk,tbnkv->tbnv", query, states))
        state = states[-1]
    return torch.cat(outputs).transpose(0, 1), state
