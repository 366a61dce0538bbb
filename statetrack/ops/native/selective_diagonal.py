"""The selective diagonal recurrence by a loop.

B batch, T time, E channels, N numbers of a channel's state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

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


def selective_diagonal(
    steps: Tensor,
    inputs: Tensor,
    writings: Tensor,
    readings: Tensor,
    rates: Tensor,
    state: Tensor,
    *,
    signed: bool = False,
) -> tuple[Tensor, Tensor]:
    """States h_t = a_t * h_{t-1} + dt_t x_t B_t^T, read as h_t C_t, with a_t = exp(dt_t A).

    Steps dt and inputs x are [B, T, E], writings B and readings C [B, T, N], rates A [E, N] and the
    state [B, E, N]. With `signed`, gains are 2 exp(dt_t A) - 1.
    """
    loop = Loop(partial(_selective_forward, signed), partial(_selective_backward, signed))
    others = (inputs, writings, readings, rates.mT, state.mT)
    outputs, last = call(steps, loop, *others, has_lanes=False)
    return outputs, last.mT


def _selective_forward(signed: bool, keep: bool, *inputs: Tensor) -> tuple[Tensor, ...]:
    *sequences, rates, state = inputs
    sizes = _selective_sizes(sequences)
    lanes, words, positions, channels, numbers = sizes
    require_shape(state, lanes, words, numbers, channels)
    chunks = -(-positions // loops("matrix_states").CHUNK) if keep else 0
    width = loops("vectors").LANES
    kept = state.new_empty(lanes, words, chunks, -(-channels // width), numbers, width)
    outputs = state.new_empty(lanes, words, positions, channels)
    last = state.new_empty(state.shape)
    given, strides = rows_of_each(*sequences, leading=3)
    arrays = contiguous(rates, state, outputs, last, kept)
    loops("selective_diagonal").selective_forward(*given, *arrays, sizes, signed, strides)
    return outputs, last, kept


def _selective_backward(
    signed: bool,
    inputs: list[Tensor],
    kept: Tensor,
    by_outputs: Tensor | None,
    by_last: Tensor | None,
) -> Tensors:
    *sequences, rates, state = inputs
    sizes = _selective_sizes(sequences)
    given, strides = rows_of_each(*sequences, leading=3)
    by_outputs = or_zeros(by_outputs, sizes[:4], state)
    by_last = or_zeros(by_last, state.shape, state)
    found = [part.new_empty(part.shape) for part in sequences]
    by_rates, by_first = rates.new_zeros(rates.shape), state.new_empty(state.shape)
    tensors = (rates, kept, by_outputs, by_last, *found, by_rates, by_first)
    arrays = contiguous(*tensors)
    loops("selective_diagonal").selective_backward(*given, *arrays, sizes, signed, strides)
    return *found, by_rates, by_first


def _selective_sizes(sequences: Sequence[Tensor]) -> tuple[int, ...]:
    return *sequences[0].shape, sequences[2].shape[-1]
