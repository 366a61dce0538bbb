"""The delta rule by a loop.

B batch, W words, T time, N heads, n keys per position, K key size, V value size.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, array_of, call, loops, or_zeros, rows_of_each
from statetrack.ops.native.matrix_states import last_state, states_kept


def delta_rule(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    betas: Tensor,
    log_gates: Tensor | None,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """H <- alpha H, then H <- H + beta k (v - H^T k)^T for each of n keys, read as H^T q.

    queries [B, T, N, K], keys [B, T, n, N, K], values [B, T, n, N, V], betas [B, T, n, N] and
    log_gates [B, T, N], or [B, T, N, K] for a gate of every row (None: no gates), give outputs
    [B, T, N, V] and the last state [B, N, K, V].
    """
    if log_gates is not None and log_gates.dim() == 3:
        log_gates = log_gates.unsqueeze(-1)
    outputs, last = call(state, _DELTA, queries, keys, values, betas, log_gates)
    return outputs, last


def _delta_forward(
    keep: bool,
    state: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    betas: Tensor,
    log_gates: Tensor | None,
) -> tuple[Tensor, ...]:
    sizes = _delta_sizes(queries, keys, values, log_gates)
    words, steps, heads, _, _, value_size, _ = sizes
    outputs = state.new_empty(words, steps, heads, value_size)
    last, room = last_state(state, words)
    kept = states_kept(last, steps, steps * sizes[3], keep)
    given, strides = rows_of_each(queries, keys, values, betas, log_gates)
    arrays = [array_of(part, state) for part in (state, outputs, room, kept)]
    loops("delta_rule").delta_forward(*given, *arrays, *sizes, len(state), strides)
    return outputs, last, kept


def _delta_backward(
    inputs: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    state, queries, keys, values, betas, log_gates = inputs
    assert state is not None and queries is not None and keys is not None
    assert values is not None and betas is not None
    sizes = _delta_sizes(queries, keys, values, log_gates)
    words, steps, heads, _, _, value_size, _ = sizes
    given, strides = rows_of_each(queries, keys, values, betas, log_gates)
    by_outputs = or_zeros(by_outputs, (words, steps, heads, value_size), state)
    found = [None if part is None else part.new_zeros(part.shape) for part in inputs[1:]]
    by_first = state.new_empty(state.shape) if state.requires_grad else None
    tensors = (state, kept, by_outputs, by_last, *found, by_first)
    arrays = [array_of(part, state) for part in tensors]
    loops("delta_rule").delta_backward(*given, *arrays, *sizes, len(state), strides)
    return by_first, *found


_DELTA = Loop(_delta_forward, _delta_backward, repeats=True)


def _delta_sizes(
    queries: Tensor, keys: Tensor, values: Tensor, log_gates: Tensor | None
) -> tuple[int, ...]:
    words, steps, num_keys, heads, key_size = keys.shape
    gates = 0 if log_gates is None else log_gates.shape[-1]
    return words, steps, heads, num_keys, key_size, values.shape[-1], gates
