"""Linear attention: a matrix state of outer products of keys and values, read by queries.

    S_t = A_t S_{t-1} + k_t v_t^T,    y_t = S_t^T q_t

with A_t the identity (`additive_attention`), a scalar exp(a_t) (`decayed_attention`) or a gain for
each row, diag(a_t) (`gated_attention`). Words are taken in chunks, and the state is passed from
chunk to chunk.

B batch, T time, N heads, K size of keys and queries, V size of values, c positions of a chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops import fla, native
from statetrack.ops.devices import KernelChoice, by_choice
from statetrack.ops.diagonal import diagonal_recurrence
from statetrack.ops.lanes import in_full_precision

CHUNK = 32
"""Positions of a chunk: on a CPU 16 to 64 cost the same, fewer or more cost more."""


def additive_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    state: Tensor,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], from the first one, without decay.

    Inside a chunk it is masked attention (Katharopoulos et al. 2020, arXiv:2006.16236).

    Queries and keys are [B, T, N, K], values [B, T, N, V]. Raises `SettingsError` where `kernel`
    cannot run.
    """
    compute = by_choice(
        kernel, state, _added_chunks, native.additive_attention, fla.additive_attention
    )
    return compute(queries, keys, values, state)


@in_full_precision
def _added_chunks(
    queries: Tensor, keys: Tensor, values: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    pieces = (part.transpose(1, 2).split(CHUNK, 2) for part in (queries, keys, values))
    for query, key, value in zip(*pieces, strict=True):  # [B, N, c, size]
        among = (query @ key.mT).tril()
        outputs.append(among @ value + query @ state)
        state = state + key.mT @ value
    return torch.cat(outputs, 2).transpose(1, 2), state


def decayed_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decays: Tensor,
    state: Tensor,
    *,
    weights: Tensor | None = None,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], from the first one, with scalar decays.

    Queries and keys are [B, T, N, K] (or [B, T, 1, K], the same for every head), values
    [B, T, N, V], log_decays [B, T, N] at most 0. Values are multiplied by weights [B, T, N], if
    there are. Raises `SettingsError` where `kernel` cannot run.
    """
    compute = by_choice(
        kernel, state, _decayed_chunks, native.decayed_attention, fla.decayed_attention
    )
    if compute is native.decayed_attention:
        return native.decayed_attention(queries, keys, values, log_decays, state, weights=weights)
    if weights is not None:
        values = weights.unsqueeze(-1) * values
    return compute(queries, keys, values, log_decays, state)


def _decayed_chunks(
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
    """Outputs [B, N, c, V] and the last state, of one chunk.

    With a(s, t) = a_{s+1} + .. + a_t,

        y_t = sum_{s <= t} exp(a(s, t)) (q_t . k_s) v_s + exp(a(0, t)) S_0^T q_t

    which is attention with a decaying mask, plus a read of the first state. It replaces steps that
    each access the whole state (Dao & Gu 2024, arXiv:2405.21060, section 6).

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


def gated_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_gains: Tensor,
    state: Tensor,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], from the first one, gains by row.

    All of a chunk's outer products are computed at once; the states then follow by the diagonal
    recurrence, exactly for any gains (Yang et al. 2024, arXiv:2312.06635).

    Queries, keys and log_gains (at most 0) are [B, T, N, K], values [B, T, N, V]. Raises
    `SettingsError` where `kernel` cannot run.
    """
    compute = by_choice(kernel, state, _gated_chunks, native.gated_attention, fla.gated_attention)
    return compute(queries, keys, values, log_gains, state)


@in_full_precision
def _gated_chunks(
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
