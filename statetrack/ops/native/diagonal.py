"""Gated diagonal recurrences by a loop, real or complex.

B batch, T time, D channels.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from statetrack.ops.lanes import turned
from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    call,
    contiguous,
    loops,
    or_zeros,
    require_shape,
    rows_of_each,
)


def gated_diagonal(gains: Tensor, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """States h_t = a_t * h_{t-1} + u_t by coordinate, real or complex: [B, T, D] and the last."""
    if not state.is_complex():
        states, last = call(state, _DIAGONAL, gains, inputs)
        return states, last
    parts = [torch.view_as_real(part.resolve_conj()).flatten(-2) for part in (gains, inputs)]
    first = torch.view_as_real(state.resolve_conj()).flatten(-2)
    states, last = call(first, _COMPLEX_DIAGONAL, *parts)
    pairs = (part.unflatten(-1, (-1, 2)) for part in (states, last))
    states, last = (torch.view_as_complex(part.contiguous()) for part in pairs)
    return states, last


def turning_diagonal(
    moduli: Tensor, phases: Tensor, inputs: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """The same for complex gains of the given moduli [B, T, D] and phases [D]."""
    return gated_diagonal(turned(moduli, phases), inputs, state)


def _diagonal_forward(
    paired: bool, keep: bool, state: Tensor, gains: Tensor, inputs: Tensor
) -> tuple[Tensor, ...]:
    require_shape(state, len(inputs), inputs.shape[-1])
    outputs, last = inputs.new_empty(inputs.shape), state.new_empty(state.shape)
    given, strides = rows_of_each(gains, inputs)
    arrays = contiguous(state, outputs, last)
    loops("diagonal").diagonal_forward(*given, *arrays, inputs.shape, paired, strides)
    return outputs, last, state.new_empty(len(state), 0)


def _diagonal_backward(
    paired: bool,
    given: list[Tensor],
    states: Tensor,
    by_outputs: Tensor | None,
    by_last: Tensor | None,
) -> Tensors:
    state, gains, inputs = given
    by_outputs = or_zeros(by_outputs, inputs.shape, state)
    by_last = or_zeros(by_last, state.shape, state)
    by_gains, by_inputs = (part.new_empty(part.shape) for part in (gains, inputs))
    by_first = state.new_empty(state.shape)
    numbers, strides = rows_of_each(gains)
    tensors = (states, state, by_outputs, by_last, by_gains, by_inputs, by_first)
    arrays = contiguous(*tensors)
    loops("diagonal").diagonal_backward(*numbers, *arrays, inputs.shape, paired, strides)
    return by_first, by_gains, by_inputs


_DIAGONAL, _COMPLEX_DIAGONAL = (
    Loop(partial(_diagonal_forward, paired), partial(_diagonal_backward, paired), True)
    for paired in (False, True)
)
