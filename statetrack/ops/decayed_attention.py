"""Decayed attention: a matrix state with a scalar decay per step, computed chunk by chunk.

    S_t = exp(a_t) S_{t-1} + k_t v_t^T,    y_t = S_t^T q_t

Within a chunk, with a(s, t) = a_{s+1} + .. + a_t,

    y_t = sum_{s <= t} exp(a(s, t)) (q_t . k_s) v_s + exp(a(0, t)) S_0^T q_t

which is attention with a decaying mask, plus a read of the first state. It replaces T steps that
each access the whole state (Dao & Gu 2024, arXiv:2405.21060, section 6).

B batch, T time, N heads, K size of keys and queries, V size of values, c positions of a chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.fla import KernelChoice, adapters, by_kernel
from statetrack.ops.precision import in_full_precision

CHUNK = 32
"""Positions of a chunk: on a CPU 16 to 64 cost the same, fewer or more cost more."""


def decayed_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decays: Tensor,
    state: Tensor,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], from the first one.

    Queries and keys are [B, T, N, K] (or [B, T, 1, K], the same for every head), values
    [B, T, N, V], log_decays [B, T, N] at most 0. Raises `SettingsError` where `kernel` cannot run.
    """
    compute = adapters.decayed_attention if by_kernel(kernel, state) else _in_chunks
    return compute(queries, keys, values, log_decays, state)


def _in_chunks(
    queries: Tensor, keys: Tensor, values: Tensor, log_decays: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    sequences = (queries, keys, values, log_decays)
    pieces = (sequence.transpose(1, 2).split(CHUNK, 2) for sequence in sequences)
    for query, key, value, decay in zip(*pieces, strict=True):
        output, state = decayed_chunk(query, key, value, decay, state)
        outputs.append(output)
    return torch.cat(outputs, 2).transpose(1, 2), state


@in_full_precision
def decayed_chunk(
    queries: Tensor, keys: Tensor, values: Tensor, log_decays: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, N, c, V] and the last state, of one chunk: the equation above.

    Positions are last but one: queries and keys [B, N, c, K], values [B, N, c, V], log_decays
    [B, N, c].
    """
    spans = sums_between(log_decays)  # [B, N, c, c]
    since_start = log_decays.cumsum(-1).exp().unsqueeze(-1)  # [B, N, c, 1]
    until_end = spans[..., -1, :].exp().unsqueeze(-1)  # [B, N, c, 1]
    weights = queries @ keys.mT * spans.exp()
    outputs = weights @ values + since_start * (queries @ state)
    last = since_start[..., -1:, :] * state + (keys * until_end).mT @ values
    return outputs, last


def sums_between(terms: Tensor) -> Tensor:
    """sum_{s < r <= t} terms_r at [t, s], [..., T, T]; minus infinity above the diagonal.

    The terms are added one by one: after a strong decay, a difference of cumulative sums would
    lose the precision of short spans.
    """
    size = terms.shape[-1]
    ones = torch.ones(size, size, dtype=torch.bool, device=terms.device)
    sums = torch.where(ones.tril(-1), terms.unsqueeze(-1), 0.0).cumsum(-2)
    return torch.where(ones.tril(), sums, -torch.inf)
