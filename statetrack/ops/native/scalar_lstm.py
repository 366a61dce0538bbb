"""The scalar LSTM by a loop.

B batch, T time, N heads, S cells of a head.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, or_zeros, rows_of


def scalar_lstm(
    inputs: Tensor, recurrent: Tensor, state: Tensor, *, sigmoidal: bool
) -> tuple[Tensor, Tensor]:
    """The hidden states of the scalar LSTM, [B, T, N, S], and its last state [B, N, 4, S].

    Inputs [B, T, N, 4 S] are added to h R, R [N, S, 4 S], for the arguments i, f, z and o of gates:

        log f' = log sigmoid(f), or f without `sigmoidal`,    m' = max(log f' + m, i)
        c' = f' e^(m - m') c + e^(i - m') tanh(z),    n' = f' e^(m - m') n + e^(i - m')
        h' = sigmoid(o) c' / n'

    A state is c, n, h and m, of which m has no gradient.
    """
    loop = Loop(partial(_scalar_forward, sigmoidal), partial(_scalar_backward, sigmoidal))
    others = (recurrent.unsqueeze(0), state.unsqueeze(0))
    outputs, last = call(inputs.unsqueeze(0), loop, *others)
    return outputs.squeeze(0), last.squeeze(0)


def _scalar_forward(
    sigmoidal: bool, keep: bool, inputs: Tensor, recurrent: Tensor, state: Tensor
) -> tuple[Tensor, ...]:
    sizes = (*inputs.shape[:4], state.shape[-1])
    outputs, last = inputs.new_empty(sizes), state.new_empty(state.shape)
    lanes = loops("vectors").LANES
    kept = inputs.new_empty(len(inputs), 0)
    if keep:
        kept = inputs.new_empty(*sizes[:4], 8 * -(-sizes[-1] // lanes) * lanes)
    numbers, stride = rows_of(inputs, 3)
    arrays = contiguous(recurrent, state, outputs, last, kept)
    loops("scalar_lstm").slstm_forward(numbers, *arrays, *sizes, sigmoidal, stride)
    return outputs, last, kept


def _scalar_backward(
    sigmoidal: bool,
    tensors: list[Tensor],
    kept: Tensor,
    by_outputs: Tensor | None,
    by_last: Tensor | None,
) -> Tensors:
    inputs, recurrent, state = tensors
    sizes = (*inputs.shape[:4], state.shape[-1])
    by_outputs = or_zeros(by_outputs, sizes, state)
    by_inputs, by_first = inputs.new_empty(inputs.shape), state.new_zeros(state.shape)
    by_recurrent = recurrent.new_zeros(recurrent.shape)
    given = (recurrent, state, kept, by_outputs, by_last)
    arrays = contiguous(*given, by_inputs, by_recurrent, by_first)
    loops("scalar_lstm").slstm_backward(*arrays, *sizes, sigmoidal)
    return by_inputs, by_recurrent, by_first
