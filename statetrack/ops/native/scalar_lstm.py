"""The scalar LSTM by a loop.

B batch, T time, N heads, S cells of a head.
"""

from __future__ import annotations

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


def scalar_lstm(
    entering: Tensor,
    leaving: Tensor,
    biases: Tensor,
    recurrent: Tensor,
    state: Tensor,
    *,
    sigmoidal: bool,
) -> tuple[Tensor, Tensor]:
    """The hidden states of the scalar LSTM, [B, T, N, S], and its last state [B, N, 4, S].

    Inputs [B, T, N, 2 S], of i and f and of z and o, and biases [N, 4 S] are added to h R, with R
    [N, S, 4 S], for the arguments i, f, z and o of gates:

        log f' = log sigmoid(f), or f without `sigmoidal`,    m' = max(log f' + m, i)
        c' = f' e^(m - m') c + e^(i - m') tanh(z),    n' = f' e^(m - m') n + e^(i - m')
        h' = sigmoid(o) c' / n'

    A state is c, n, h and m, of which m has no gradient.
    """
    loop = Loop(partial(_scalar_forward, sigmoidal), partial(_scalar_backward, sigmoidal))
    others = (leaving, biases, recurrent, state)
    outputs, last = call(entering, loop, *others, has_lanes=False)
    return outputs, last


def _scalar_forward(sigmoidal: bool, keep: bool, *given: Tensor) -> tuple[Tensor, ...]:
    entering, leaving, biases, recurrent, state = given
    sizes = lanes, words, _, heads, size = (*entering.shape[:4], recurrent.shape[-2])
    require_shape(state, lanes, words, heads, 4, size)
    outputs, last = state.new_empty(sizes), state.new_empty(state.shape)
    kept = state.new_empty(len(state), 0)
    if keep:
        width = loops("vectors").LANES
        kept = state.new_empty(*sizes[:4], 8 * -(-size // width) * width)
    inputs, strides = rows_of_each(entering, leaving, leading=3)
    arrays = contiguous(biases, recurrent, state, outputs, last, kept)
    loops("scalar_lstm").slstm_forward(*inputs, *arrays, sizes, sigmoidal, strides)
    return outputs, last, kept


def _scalar_backward(
    sigmoidal: bool,
    given: list[Tensor],
    kept: Tensor,
    by_outputs: Tensor | None,
    by_last: Tensor | None,
) -> Tensors:
    entering, leaving, biases, recurrent, state = given
    sizes = (*entering.shape[:4], state.shape[-1])
    by_outputs = or_zeros(by_outputs, sizes, state)
    written = [part.new_empty(part.shape) for part in (entering, leaving)]
    summed = [part.new_zeros(part.shape) for part in (biases, recurrent, state)]
    arrays = contiguous(recurrent, state, kept, by_outputs, by_last, *written, *summed)
    loops("scalar_lstm").slstm_backward(*arrays, sizes, sigmoidal)
    return *written, *summed
