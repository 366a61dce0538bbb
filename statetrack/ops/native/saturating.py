"""Recurrent networks of saturating units by loops: LSTM, GRU, Elman and second-order.

B batch, T time, V symbols, D width, H units, G gates, C labels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    call,
    contiguous,
    known,
    loops,
    or_zeros,
    require_shape,
)
from statetrack.ops.native.linear import map_rows, map_rows_backward

Maps = tuple[Tensor, Tensor, Tensor, Tensor]
"""Weights W and U, and the biases b and c beside each, of a layer's gates W x + b + U h + c."""


def gated_network(
    inputs: Tensor,
    rows: Tensor,
    maps: Maps,
    state: Tensor | None = None,
    readout: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """A layer of an LSTM, a GRU or an Elman network: outputs [B, T, H] and the last state.

    The arguments of gates are W x + b + U h + c, with x the one of some inputs [N, D] that rows
    [B, T] name: there is one for each symbol, or for each position. W is [G H, D], U [G H, H], and
    b and c are [G H]. How many gates there are says which network it is:

        G = 4:  i, f, o = sigmoid(.), g = tanh(.) in the order i, f, g, o;  c' = f c + i g;
                h' = o tanh(c'),  with states h and c, [B, 2, H]
        G = 3:  r, z = sigmoid(.);  n = tanh(W_n x + b_n + r (U_n h + c_n));
                h' = (1 - z) n + z h,  with states [B, 1, H]
        G = 1:  h' = tanh(.), with states [B, 1, H]

    Without a state the first one is zero. A readout, of weights [C, H] and biases [C], makes of the
    outputs logits [B, T, C]. All tensors may have an axis of R replicas first.
    """
    given = rows.to(torch.int64), *maps, state, *(readout or (None, None))
    outputs, last = call(inputs, _GATED, *given, has_lanes=inputs.dim() == 3)
    return outputs, last


def _gated_forward(
    keep: bool,
    inputs: Tensor,
    rows: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    more: Tensor,
    state: Tensor | None,
    *readout: Tensor | None,
) -> tuple[Tensor, ...]:
    sizes = lanes, words, steps, _, units, gates = _gated_sizes(inputs, rows, recurrent)
    outputs = inputs.new_empty(lanes, words, steps, units)
    last = inputs.new_empty(lanes, words, 2 if gates == 4 else 1, units)
    if state is not None:
        require_shape(state, *last.shape)
    kept = inputs.new_empty(lanes, 0)
    if keep:
        width = loops("vectors").LANES
        parts = {4: 6, 3: 5, 1: 1}[gates]
        kept = inputs.new_empty(lanes, words, steps, parts, -(-units // width) * width)
    joined, apart = bias + more, None
    if gates == 3:  # the reset gate multiplies the bias of the new state
        new = slice(2 * units, None)
        joined[:, new], apart = bias[:, new], more[:, new]
    table = map_rows(inputs, weight, joined)
    places = known(rows.contiguous(), table.shape[1])
    arrays = [*contiguous(recurrent, apart, state), outputs, last, kept]
    loops("saturating").gated_forward(table, places, *arrays, sizes)
    weights, biases = readout
    return outputs if weights is None else map_rows(outputs, weights, biases), last, kept


def _gated_backward(
    given: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    inputs, rows, weight, recurrent, bias, _, state, *readout = given
    assert inputs is not None and rows is not None and weight is not None and recurrent is not None
    sizes = lanes, words, steps, _, units, gates = _gated_sizes(inputs, rows, recurrent)
    by_readout: Tensors = (None, None)
    weights, biases = readout
    if weights is not None and by_outputs is not None:
        outputs = kept[..., 0, :units]
        by_outputs, *by_both = map_rows_backward(outputs, weights, biases, by_outputs)
        by_readout = tuple(by_both)
    by_outputs = or_zeros(by_outputs, (lanes, words, steps, units), inputs)
    by_table = inputs.new_zeros(*inputs.shape[:2], gates * units)
    by_recurrent = recurrent.new_zeros(recurrent.shape)
    by_apart = recurrent.new_zeros(lanes, units) if gates == 3 else None
    by_first = None if state is None else state.new_empty(state.shape)
    arrays = contiguous(recurrent, state, kept, by_outputs, by_last)
    found = by_table, by_recurrent, by_apart, by_first
    loops("saturating").gated_backward(rows.contiguous(), *arrays, *found, sizes)
    by_inputs, by_weight, by_bias = map_rows_backward(inputs, weight, bias, by_table)
    by_more = by_bias
    if by_apart is not None and by_bias is not None:
        by_more = torch.cat([by_bias[:, : 2 * units], by_apart], 1)
    return by_inputs, None, by_weight, by_recurrent, by_bias, by_more, by_first, *by_readout


def _gated_sizes(inputs: Tensor, rows: Tensor, recurrent: Tensor) -> tuple[int, ...]:
    units = recurrent.shape[-1]
    return *rows.shape, inputs.shape[1], units, recurrent.shape[1] // units


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
    require_shape(state, *symbols.shape[:2], matrices.shape[-1])
    states = state.new_empty(*symbols.shape, state.shape[-1])
    last = state.new_empty(state.shape)
    given = contiguous(matrices, biases)
    arrays = contiguous(state, states, last)
    numbers = known(symbols.contiguous(), matrices.shape[1])
    loops("saturating").second_order_forward(*given, numbers, *arrays, sizes)
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
        matrices.contiguous(), symbols.contiguous(), *given, *arrays, sizes
    )
    return by_matrices, by_biases, None, by_first


_SECOND_ORDER = Loop(_second_order_forward, _second_order_backward, keeps_outputs=True)
