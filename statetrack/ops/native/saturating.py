"""Recurrent networks of saturating units by loops: LSTM, GRU, Elman and second-order.

B batch, T time, V symbols, H units, G gates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, known, loops, or_zeros


def gated_network(
    table: Tensor, rows: Tensor, weights: Tensor, biases: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """A layer of an LSTM, a GRU or an Elman network: outputs [B, T, H] and the last state.

    The arguments of gates are x + U h, with x the row [G H] of a table that rows [B, T] name, and
    weights U [G H, H]: a table has a row for each symbol, or for each position. How many gates
    there are says which network it is:

        G = 4:  i, f, o = sigmoid(.), g = tanh(.) in the order i, f, g, o;  c' = f c + i g;
                h' = o tanh(c'),  with states h and c, [B, 2, H]
        G = 3:  r, z = sigmoid(.);  n = tanh(x_n + r (U_n h + b));  h' = (1 - z) n + z h,
                with biases b [H] and states [B, 1, H]
        G = 1:  h' = tanh(.), with states [B, 1, H]

    Without a state the first one is zero. All tensors may have an axis of R replicas first.
    """
    given = (rows.to(torch.int64), weights, biases, state)
    outputs, last = call(table, _GATED, *given, has_lanes=table.dim() == 3)
    return outputs, last


def _gated_forward(
    keep: bool,
    table: Tensor,
    rows: Tensor,
    weights: Tensor,
    biases: Tensor | None,
    state: Tensor | None,
) -> tuple[Tensor, ...]:
    sizes = lanes, words, steps, _, units, gates = _gated_sizes(table, rows, weights)
    outputs = table.new_empty(lanes, words, steps, units)
    last = table.new_empty(lanes, words, 2 if gates == 4 else 1, units)
    kept = table.new_empty(lanes, 0)
    if keep:
        width = loops("vectors").LANES
        parts = {4: 6, 3: 5, 1: 1}[gates]
        kept = table.new_empty(lanes, words, steps, parts, -(-units // width) * width)
    given = contiguous(weights, biases, state)
    arrays = [outputs, last, kept]
    places = known(rows.contiguous(), table.shape[1])
    loops("saturating").gated_forward(table.contiguous(), places, *given, *arrays, *sizes)
    return outputs, last, kept


def _gated_backward(
    inputs: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    table, rows, weights, biases, state = inputs
    assert table is not None and rows is not None and weights is not None
    sizes = lanes, words, steps, _, units, _ = _gated_sizes(table, rows, weights)
    by_outputs = or_zeros(by_outputs, (lanes, words, steps, units), table)
    by_table, by_weights = table.new_zeros(table.shape), weights.new_zeros(weights.shape)
    by_biases = None if biases is None else biases.new_zeros(biases.shape)
    by_first = None if state is None else state.new_empty(state.shape)
    given = contiguous(weights, state, kept, by_outputs, by_last)
    found = (by_table, by_weights, by_biases, by_first)
    arrays = contiguous(*found)
    loops("saturating").gated_backward(rows.contiguous(), *given, *arrays, *sizes)
    return by_table, None, by_weights, by_biases, by_first


def _gated_sizes(table: Tensor, rows: Tensor, weights: Tensor) -> tuple[int, ...]:
    units = weights.shape[-1]
    return *rows.shape, table.shape[1], units, table.shape[2] // units


_GATED = Loop(_gated_forward, _gated_backward)


def second_order_network(
    matrices: Tensor, biases: Tensor, symbols: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """States h_t = tanh(A(x_t) h_{t-1} + b(x_t)), [B, T, H], and the last one.

    Matrices A are [V, H, H], biases b [V, H], symbols x [B, T] and the first state [B, H].
    """
    given = (biases, symbols.to(torch.int64), state)
    states, last = call(matrices, _SECOND_ORDER, *given, has_lanes=False)
    return states, last


def _second_order_forward(
    keep: bool, matrices: Tensor, biases: Tensor, symbols: Tensor, state: Tensor
) -> tuple[Tensor, ...]:
    sizes = (*symbols.shape, *matrices.shape[1:3])
    states = state.new_empty(*symbols.shape, state.shape[-1])
    last = state.new_empty(state.shape)
    given = contiguous(matrices, biases)
    arrays = contiguous(state, states, last)
    numbers = known(symbols.contiguous(), matrices.shape[1])
    loops("saturating").second_order_forward(*given, numbers, *arrays, *sizes)
    return states, last, state.new_empty(len(state), 0)


def _second_order_backward(
    inputs: list[Tensor], states: Tensor, by_states: Tensor | None, by_last: Tensor | None
) -> Tensors:
    matrices, biases, symbols, state = inputs
    sizes = (*symbols.shape, *matrices.shape[1:3])
    by_states = or_zeros(by_states, states.shape, state)
    by_matrices, by_biases = (part.new_zeros(part.shape) for part in (matrices, biases))
    by_first = state.new_empty(state.shape)
    given = contiguous(state, states, by_states, by_last)
    arrays = [by_matrices, by_biases, by_first]
    loops("saturating").second_order_backward(
        matrices.contiguous(), symbols.contiguous(), *given, *arrays, *sizes
    )
    return by_matrices, by_biases, None, by_first


_SECOND_ORDER = Loop(_second_order_forward, _second_order_backward, keeps_outputs=True)
