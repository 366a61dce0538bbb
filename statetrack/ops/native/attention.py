"""Attention without a softmax by loops.

B batch, T time, N heads, K key size, V value size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import call
from statetrack.ops.native.matrix_states import matrix_loop


def additive_attention(
    queries: Tensor, keys: Tensor, values: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = S_{t-1} + k_t v_t^T, read as S_t^T q_t."""
    outputs, last = call(state, _DECAYED, queries, keys, values, None, None)
    return outputs, last


def decayed_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_decays: Tensor,
    state: Tensor,
    *,
    weights: Tensor | None = None,
    summed: bool = False,
) -> tuple[Tensor, Tensor]:
    """S_t = exp(a_t) S_{t-1} + w_t k_t v_t^T, read as S_t^T q_t; log_decays, weights [B, T, N].

    Queries and keys can be [B, T, 1, K], the same for every head. No weights are ones. With
    `summed` a 1 is added behind each value.
    """
    loop = _SUMMED if summed else _DECAYED
    outputs, last = call(state, loop, queries, keys, values, log_decays, weights)
    return outputs, last


def gated_attention(
    queries: Tensor, keys: Tensor, values: Tensor, log_gains: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = diag(a_t) S_{t-1} + k_t v_t^T, read as S_t^T q_t; log_gains [B, T, N, K]."""
    return _attention(state, queries, keys, values, log_gains)


def attention_before(
    queries: Tensor, keys: Tensor, values: Tensor, log_gains: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """The same, where a position reads the state before it: S_{t-1}^T q_t."""
    outputs, last = call(state, _BEFORE, queries, keys, values, log_gains, None, None)
    return outputs, last


def replacing_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_gains: Tensor,
    removals: Tensor,
    replacements: Tensor,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """S_t = diag(a_t) S_{t-1} - p_t (S_{t-1}^T r_t)^T + k_t v_t^T, read as S_t^T q_t.

    All are [B, T, N, size], the log-gains a, removals r and replacements p of the size of keys.
    """
    return _attention(state, queries, keys, values, log_gains, removals, replacements)


def _attention(state: Tensor, *sequences: Tensor | None) -> tuple[Tensor, Tensor]:
    more = (None,) * (6 - len(sequences))
    outputs, last = call(state, _ATTENTION, *sequences, *more)
    return outputs, last


def _decayed_sizes(ones: int, sequences: Sequence[Tensor | None]) -> tuple[int, ...]:
    *sizes, size, _ = _attention_sizes(sequences)
    return *sizes, size, size + ones, 0 if sequences[3] is None else 1


def _attention_sizes(sequences: Sequence[Tensor | None]) -> tuple[int, ...]:
    keys, values, gates = sequences[1:4]
    assert keys is not None and values is not None
    words, steps, heads, value_size = values.shape
    num_gates = 0 if gates is None else gates.shape[-1]
    return words, steps, heads, *keys.shape[2:], value_size, num_gates


def _rows_removed(sequences: Sequence[Tensor | None]) -> int:
    values, replacements = sequences[2], sequences[-1]
    return 0 if values is None or replacements is None else values.shape[1]


_ATTENTION, _BEFORE = (
    matrix_loop(
        "attention", "attention", _attention_sizes, _rows_removed, flags=(early,), adds=False
    )
    for early in (False, True)
)
_DECAYED, _SUMMED = (
    matrix_loop(
        "decayed_attention", "decayed", partial(_decayed_sizes, ones), lambda _: 0, adds=False
    )
    for ones in (0, 1)
)
