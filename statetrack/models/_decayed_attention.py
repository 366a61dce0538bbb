"""A matrix state under a scalar decay, read for a whole chunk of positions by matrix products.

    S_t = exp(a_t) S_{t-1} + k_t v_t^T,    y_t = S_t^T q_t

Written out, with a(s, t) = a_{s+1} + .. + a_t,

    y_t = sum_{s <= t} exp(a(s, t)) (q_t . k_s) v_s + exp(a(0, t)) S_0^T q_t

which is attention with a decaying mask, and a read of the first state. It takes the place of T
steps that each touch the whole state (Dao & Gu 2024, arXiv:2405.21060, section 6).

B batch, H heads, T positions of the chunk, N width of keys and queries, P width of values.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.precision import in_full_precision

CHUNK = 32
"""Positions read at once: on a CPU 16 to 64 cost the same, fewer and more cost more."""


@in_full_precision
def decayed_attention(
    log_decays: Tensor, keys: Tensor, values: Tensor, queries: Tensor, first: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, H, T, P] and the last state [B, H, N, P], from the first one.

    log_decays [B, H, T] are at most 0; keys and queries [B, H, T, N] (or [B, 1, T, N], the same
    for every head); values [B, H, T, P].
    """
    spans = _sums_between(log_decays)  # [B, H, T, T]
    since_start = log_decays.cumsum(-1).exp().unsqueeze(-1)  # [B, H, T, 1]
    until_end = spans[..., -1, :].exp().unsqueeze(-1)  # [B, H, T, 1]
    weights = queries @ keys.mT * spans.exp()
    outputs = weights @ values + since_start * (queries @ first)
    last = since_start[..., -1:, :] * first + (keys * until_end).mT @ values
    return outputs, last


def _sums_between(terms: Tensor) -> Tensor:
    """sum_{s < r <= t} terms_r at [t, s], [..., T, T]; minus infinity above the diagonal.

    The terms are added one by one: a difference of running sums would lose the short spans
    after a strong decay.
    """
    size = terms.shape[-1]
    ones = torch.ones(size, size, dtype=torch.bool, device=terms.device)
    sums = torch.where(ones.tril(-1), terms.unsqueeze(-1), 0.0).cumsum(-2)
    return torch.where(ones.tril(), sums, -torch.inf)
