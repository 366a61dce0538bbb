"""Additive attention: a running sum of outer products of keys and values, read by queries.

    S_t = S_{t-1} + k_t v_t^T,    y_t = S_t^T q_t

Words are taken in chunks: inside a chunk it is masked attention, and the state is passed from
chunk to chunk (Katharopoulos et al. 2020, arXiv:2006.16236).

B batch, T time, N heads, K size of keys and queries, V size of values, c positions of a chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.fla import KernelChoice, adapters, by_kernel
from statetrack.ops.precision import in_full_precision

CHUNK = 32
"""Positions of a chunk, inside which the recurrence is computed as attention."""


def additive_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    state: Tensor,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], from the first one.

    Queries and keys are [B, T, N, K], values [B, T, N, V]. Raises `SettingsError` where `kernel`
    cannot run.
    """
    compute = adapters.additive_attention if by_kernel(kernel, state) else _in_chunks
    return compute(queries, keys, values, state)


@in_full_precision
def _in_chunks(
    queries: Tensor, keys: Tensor, values: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    pieces = (part.transpose(1, 2).split(CHUNK, 2) for part in (queries, keys, values))
    for query, key, value in zip(*pieces, strict=True):  # [B, N, c, size]
        among = (query @ key.mT).tril()
        outputs.append(among @ value + query @ state)
        state = state + key.mT @ value
    return torch.cat(outputs, 2).transpose(1, 2), state
