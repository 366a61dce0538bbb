"""Attention without a softmax by loops.

B batch, T time, N heads, K key size, V value size.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, array_of, call, loops, or_zeros, rows_of_each
from statetrack.ops.native.matrix_states import last_state, states_kept


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
) -> tuple[Tensor, Tensor]:
    """S_t = exp(a_t) S_{t-1} + w_t k_t v_t^T, read as S_t^T q_t; log_decays, weights [B, T, N].

    Queries and keys can be [B, T, 1, K], the same for every head. No weights are ones.
    """
    outputs, last = call(state, _DECAYED, queries, keys, values, log_decays, weights)
    return outputs, last


def gated_attention(
    queries: Tensor, keys: Tensor, values: Tensor, log_gains: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = diag(a_t) S_{t-1} + k_t v_t^T, read as S_t^T q_t; log_gains [B, T, N, K]."""
    return _attention(state, queries, keys, values, log_gains)


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


def _attention_forward(keep: bool, state: Tensor, *sequences: Tensor | None) -> tuple[Tensor, ...]:
    sizes = _attention_sizes(sequences)
    words, steps, heads, _, _, value_size, _ = sizes
    outputs = state.new_empty(words, steps, heads, value_size)
    last, room = last_state(state, words)
    corrections = 0 if sequences[-1] is None else steps
    kept = states_kept(last, steps, corrections, keep)
    given, strides = rows_of_each(*sequences)
    arrays = [array_of(part, state) for part in (state, outputs, room, kept)]
    loops("attention").attention_forward(*given, *arrays, *sizes, len(state), strides)
    return outputs, last, kept


def _attention_backward(
    inputs: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    state, *sequences = inputs
    assert state is not None
    sizes = _attention_sizes(sequences)
    words, steps, heads, _, _, value_size, _ = sizes
    given, strides = rows_of_each(*sequences)
    by_outputs = or_zeros(by_outputs, (words, steps, heads, value_size), state)
    found = [None if part is None else part.new_zeros(part.shape) for part in sequences]
    by_first = state.new_empty(state.shape) if state.requires_grad else None
    tensors = (state, kept, by_outputs, by_last, *found, by_first)
    arrays = [array_of(part, state) for part in tensors]
    loops("attention").attention_backward(*given, *arrays, *sizes, len(state), strides)
    return by_first, *found


_ATTENTION = Loop(_attention_forward, _attention_backward, repeats=True)


def _decayed_forward(keep: bool, state: Tensor, *sequences: Tensor | None) -> tuple[Tensor, ...]:
    sizes = _decayed_sizes(sequences)
    words, steps, heads, _, _, value_size, _ = sizes
    outputs = state.new_empty(words, steps, heads, value_size)
    last, room = last_state(state, words)
    kept = states_kept(last, steps, 0, keep)
    given, strides = rows_of_each(*sequences)
    arrays = [array_of(part, state) for part in (state, outputs, room, kept)]
    loops("decayed_attention").decayed_forward(*given, *arrays, *sizes, len(state), strides)
    return outputs, last, kept


def _decayed_backward(
    inputs: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    state, *sequences = inputs
    assert state is not None
    sizes = _decayed_sizes(sequences)
    words, steps, heads, _, _, value_size, _ = sizes
    given, strides = rows_of_each(*sequences)
    by_outputs = or_zeros(by_outputs, (words, steps, heads, value_size), state)
    found = [None if part is None else part.new_empty(part.shape) for part in sequences]
    by_first = state.new_empty(state.shape) if state.requires_grad else None
    tensors = (state, kept, by_outputs, by_last, *found, by_first)
    arrays = [array_of(part, state) for part in tensors]
    loops("decayed_attention").decayed_backward(*given, *arrays, *sizes, len(state), strides)
    return by_first, *found


_DECAYED = Loop(_decayed_forward, _decayed_backward, repeats=True)


def _decayed_sizes(sequences: Sequence[Tensor | None]) -> tuple[int, ...]:
    *sizes, _ = _attention_sizes(sequences)
    return *sizes, 0 if sequences[3] is None else 1


def _attention_sizes(sequences: Sequence[Tensor | None]) -> tuple[int, ...]:
    keys, values, gates = sequences[1:4]
    assert keys is not None and values is not None
    words, steps, heads, value_size = values.shape
    num_gates = 0 if gates is None else gates.shape[-1]
    return words, steps, heads, *keys.shape[2:], value_size, num_gates
