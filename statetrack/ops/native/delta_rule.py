"""The delta rule by a loop.

B batch, W words, T time, N heads, n keys per position, K key size, V value size.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from statetrack.ops.native.calls import call
from statetrack.ops.native.matrix_states import matrix_loop


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


def _delta_sizes(sequences: Sequence[Tensor | None]) -> tuple[int, ...]:
    _, keys, values, _, log_gates = sequences
    assert keys is not None and values is not None
    words, steps, num_keys, heads, key_size = keys.shape
    gates = 0 if log_gates is None else log_gates.shape[-1]
    return words, steps, heads, num_keys, key_size, values.shape[-1], gates


def _errors(sequences: Sequence[Tensor | None]) -> int:
    keys = sequences[1]
    return 0 if keys is None else keys.shape[1] * keys.shape[2]


_DELTA = matrix_loop("delta_rule", "delta", _delta_sizes, _errors)
