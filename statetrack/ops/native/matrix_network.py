"""A network of saturating units whose state is a matrix, by a loop.

B batch, T time, N heads, K rows of a state, P columns.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    call,
    contiguous,
    loops,
    or_zeros,
    require_shape,
)


def matrix_network(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    forget: Tensor,
    weights: Tensor,
    state: Tensor,
) -> tuple[Tensor, Tensor]:
    """What is read, [B, T, N, P], of states H, and the last of them, [B, N, K, P].

        H' = f H + (1 - f) tanh(H W + k v^T),    y = H'^T q

    Queries q and keys k are [B, T, N, K], values v [B, T, N, P], gates f [B, T, N], W [N, P, P].
    """
    others = (keys, values, forget, weights, state)
    outputs, last = call(queries, _LOOP, *others, has_lanes=False)
    return outputs, last


def _forward(
    keep: bool,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    forget: Tensor,
    weights: Tensor,
    state: Tensor,
) -> tuple[Tensor, ...]:
    sizes = lanes, words, steps, heads, rows, columns = (*queries.shape, values.shape[-1])
    require_shape(state, lanes, words, heads, rows, columns)
    outputs, last = values.new_empty(values.shape), state.new_empty(state.shape)
    kept = state.new_empty(lanes, 0)
    if keep:
        width = loops("vectors").LANES
        padded = -(-columns // width) * width
        kept = state.new_empty(lanes, words, heads, 2 * steps + 1, rows, padded)
    given = contiguous(queries, keys, values, forget, weights, state)
    loops("matrix_network").matrix_network_forward(*given, outputs, last, kept, sizes)
    return outputs, last, kept


def _backward(
    inputs: list[Tensor], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    queries, keys, values, forget, weights, state = inputs
    sizes = (*queries.shape, values.shape[-1])
    given = contiguous(queries, keys, values, forget, weights, kept)
    by_results = or_zeros(by_outputs, values.shape, values), *contiguous(by_last)
    found = (
        *(part.new_zeros(part.shape) for part in (queries, keys)),
        *(part.new_empty(part.shape) for part in (values, forget)),
        weights.new_zeros(weights.shape),
        state.new_empty(state.shape),
    )
    loops("matrix_network").matrix_network_backward(*given, *by_results, *found, sizes)
    return found


_LOOP = Loop(_forward, _backward)
