"""Compiled loops for the CPU in place of torch's operations, by numba, where they can run.

A scan in torch launches hundreds of small operations per word, and each passes over memory. A loop
is one call: it holds a state in the fastest memory, and its backward pass computes the states of a
chunk anew from the one before the chunk. Without gradients nothing is kept, so memory does not
grow with the number of positions. The loops have one thread.

Each function here has the arguments of the function of the same name in `statetrack.ops`, and
computes the same to rounding, in float32 or float64. Second derivatives are not supported.

W words, T time, N heads, n keys per position, K key size, V value size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from statetrack.ops.lanes import apply, in_full_precision, join_lanes


def why_not(device: torch.device, dtype: torch.dtype = torch.float32) -> str | None:
    """Why the loops cannot run on tensors of a device and type; None if they can."""
    if device.type != "cpu":
        return f"its loops run on the CPU, and the device is {device}"
    if dtype not in _NUMPY:
        return f"its loops get float32 or float64, not {dtype}"
    return _missing()


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


@cache
def _missing() -> str | None:
    """What is in the way of the loops on this machine; None if nothing is."""
    try:
        _loops()
    except ModuleNotFoundError as problem:
        return f"{problem.name} is not installed (pip install numba)"
    except Exception as problem:
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        return f"numba cannot be used ({reason})"
    return None


def _loops() -> Any:
    """The compiled loops, imported when they are first needed: numba takes time to import."""
    from statetrack.ops import _loops

    return _loops


# --- calls ---

Tensors = tuple[Tensor | None, ...]


class Loop(NamedTuple):
    """A loop and its backward pass; all tensors have an axis of words or lanes first.

    `forward` gives the results of tensors and whether to keep what the backward pass needs, and
    last that. `backward` gives the gradients of tensors, of what was kept and of the results'
    gradients.
    """

    forward: Callable[..., tuple[Tensor, ...]]
    backward: Callable[..., Tensors]
    keeps_outputs: bool = False
    """Whether the backward pass needs the first result instead of the last."""
    repeats: bool = False
    """Whether the first tensor may have fewer words, which repeat, if it has no gradient."""


@in_full_precision
def call(first: Tensor, loop: Loop, *inputs: Tensor | None) -> tuple[Tensor, ...]:
    """The results of a loop, also in `vmap`, in the type of the tensor `first`, an input too."""
    given = [part if part is None else part.to(first.dtype) for part in (first, *inputs)]
    results: tuple[Tensor, ...] = apply(_Loop, loop, torch.is_grad_enabled(), *given)
    return results[:-1]


class _Loop(torch.autograd.Function):
    """A loop with its own backward pass, which `vmap` calls once for all replicas."""

    @staticmethod
    def forward(loop: Loop, differentiable: bool, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        wanted = any(part is not None and part.requires_grad for part in inputs)
        parts = [None if part is None else part.detach() for part in inputs]
        return loop.forward(differentiable and wanted, *parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.loop = inputs[0]
        ctx.mark_non_differentiable(output[-1])
        ctx.set_materialize_grads(False)
        kept = output[0 if inputs[0].keeps_outputs else -1]
        ctx.save_for_backward(*inputs[2:], kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if all(gradient is None for gradient in gradients):
            return (None,) * len(ctx.needs_input_grad)
        *inputs, kept = ctx.saved_tensors
        found = ctx.loop.backward(inputs, kept, *gradients[:-1])
        return None, None, *found

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        loop: Loop,
        differentiable: bool,
        *inputs: Tensor | None,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size = info.batch_size
        together = [
            None if part is None else join_lanes(part, mapped, size, 0)
            for part, mapped in zip(inputs, in_dims[2:], strict=True)
        ]
        first = inputs[0]
        if loop.repeats and in_dims[2] is None and first is not None and not first.requires_grad:
            together[0] = first
        results = apply(_Loop, loop, differentiable, *together)
        return tuple(part.unflatten(0, (size, -1)) for part in results), (0,) * len(results)


def _flat(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The numbers of a contiguous tensor."""
    return tensor.view(-1).numpy()


def _rows(tensor: Tensor, leading: int) -> tuple[np.ndarray[Any, Any], int]:
    """The numbers of a tensor with `leading` axes before its rows, and from row to row how many.

    Rows need not follow one another, as those of a part of a tensor: only others are copied.
    """
    shape, strides = tensor.shape, tensor.stride()
    expected = 1
    for axis in range(tensor.dim() - 1, leading - 1, -1):
        if shape[axis] != 1 and strides[axis] != expected:
            tensor = tensor.contiguous()
            break
        expected *= shape[axis]
    rows = shape[:leading]
    strides = tensor.stride()
    axes = [axis for axis in range(leading) if rows[axis] != 1]
    step = strides[axes[-1]] if axes else expected
    wanted = step
    for axis in reversed(axes):
        if strides[axis] != wanted:
            tensor, step = tensor.contiguous(), expected
            break
        wanted *= rows[axis]
    if tensor.numel() == 0:
        return np.empty(0, _NUMPY[tensor.dtype]), expected
    extent = (math.prod(rows) - 1) * step + expected
    return tensor.as_strided((extent,), (1,)).numpy(), step


def _array(tensor: Tensor | None, like: Tensor) -> np.ndarray[Any, Any]:
    """The numbers of a tensor, contiguous; none where there is no tensor."""
    return np.empty(0, _NUMPY[like.dtype]) if tensor is None else _flat(tensor.contiguous())


def _or_zeros(gradient: Tensor | None, shape: tuple[int, ...], like: Tensor) -> Tensor:
    return like.new_zeros(shape) if gradient is None else gradient.contiguous()


# --- recurrences ---


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
    last = state.new_empty(words, *state.shape[1:])
    kept = _states_kept(last, steps, steps * sizes[3], keep)
    given, strides = _sequences(queries, keys, values, betas, log_gates)
    arrays = [_array(part, state) for part in (state, outputs, last, kept)]
    _loops().delta_forward(*given, *arrays, *sizes, len(state), strides)
    return outputs, last, kept


def _delta_backward(
    inputs: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    state, queries, keys, values, betas, log_gates = inputs
    assert state is not None and queries is not None and keys is not None
    assert values is not None and betas is not None
    sizes = _delta_sizes(queries, keys, values, log_gates)
    words, steps, heads, _, _, value_size, _ = sizes
    given, strides = _sequences(queries, keys, values, betas, log_gates)
    by_outputs = _or_zeros(by_outputs, (words, steps, heads, value_size), state)
    found = [None if part is None else part.new_zeros(part.shape) for part in inputs[1:]]
    by_first = state.new_empty(state.shape) if state.requires_grad else None
    tensors = (state, kept, by_outputs, by_last, *found, by_first)
    arrays = [_array(part, state) for part in tensors]
    _loops().delta_backward(*given, *arrays, *sizes, len(state), strides)
    return by_first, *found


_DELTA = Loop(_delta_forward, _delta_backward, repeats=True)


def _delta_sizes(
    queries: Tensor, keys: Tensor, values: Tensor, log_gates: Tensor | None
) -> tuple[int, ...]:
    words, steps, num_keys, heads, key_size = keys.shape
    gates = 0 if log_gates is None else log_gates.shape[-1]
    return words, steps, heads, num_keys, key_size, values.shape[-1], gates


def _sequences(
    *parts: Tensor | None, leading: int = 2
) -> tuple[list[np.ndarray[Any, Any]], tuple[int, ...]]:
    """The numbers of sequences [W, T, ...], and from position to position how many; None is 0."""
    dtype = next(part.dtype for part in parts if part is not None)
    rows = [
        (np.empty(0, _NUMPY[dtype]), 0) if part is None else _rows(part, leading) for part in parts
    ]
    return [numbers for numbers, _ in rows], tuple(step for _, step in rows)


def _states_kept(state: Tensor, steps: int, corrections: int, keep: bool) -> Tensor:
    """Room for states before chunks, but the first, and corrections; none unless to be kept."""
    lanes, chunk = _loops().LANES, _loops().CHUNK
    words, heads, key_size, value_size = state.shape
    rows = (steps - 1) // chunk * key_size + corrections
    size = heads * rows * -(-value_size // lanes) * lanes
    return state.new_empty(words, size if keep else 0)


def additive_attention(
    queries: Tensor, keys: Tensor, values: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = S_{t-1} + k_t v_t^T, read as S_t^T q_t."""
    return _attention(state, queries, keys, values, None)


def decayed_attention(
    queries: Tensor, keys: Tensor, values: Tensor, log_decays: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """S_t = exp(a_t) S_{t-1} + k_t v_t^T, read as S_t^T q_t; log_decays [B, T, N].

    Queries and keys can be [B, T, 1, K], the same for every head.
    """
    return _attention(state, queries, keys, values, log_decays.unsqueeze(-1))


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
    last = state.new_empty(words, *state.shape[1:])
    corrections = 0 if sequences[-1] is None else steps
    kept = _states_kept(last, steps, corrections, keep)
    given, strides = _sequences(*sequences)
    arrays = [_array(part, state) for part in (state, outputs, last, kept)]
    _loops().attention_forward(*given, *arrays, *sizes, len(state), strides)
    return outputs, last, kept


def _attention_backward(
    inputs: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
) -> Tensors:
    state, *sequences = inputs
    assert state is not None
    sizes = _attention_sizes(sequences)
    words, steps, heads, _, _, value_size, _ = sizes
    given, strides = _sequences(*sequences)
    by_outputs = _or_zeros(by_outputs, (words, steps, heads, value_size), state)
    found = [None if part is None else part.new_zeros(part.shape) for part in sequences]
    by_first = state.new_empty(state.shape) if state.requires_grad else None
    tensors = (state, kept, by_outputs, by_last, *found, by_first)
    arrays = [_array(part, state) for part in tensors]
    _loops().attention_backward(*given, *arrays, *sizes, len(state), strides)
    return by_first, *found


_ATTENTION = Loop(_attention_forward, _attention_backward, repeats=True)


def _attention_sizes(sequences: Sequence[Tensor | None]) -> tuple[int, ...]:
    keys, values, gates = sequences[1:4]
    assert keys is not None and values is not None
    words, steps, heads, value_size = values.shape
    num_gates = 0 if gates is None else gates.shape[-1]
    return words, steps, heads, *keys.shape[2:], value_size, num_gates


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
    lanes = _loops().LANES
    kept = inputs.new_empty(len(inputs), 0)
    if keep:
        kept = inputs.new_empty(*sizes[:4], 8 * -(-sizes[-1] // lanes) * lanes)
    numbers, stride = _rows(inputs, 3)
    arrays = [_array(part, state) for part in (recurrent, state, outputs, last, kept)]
    _loops().slstm_forward(numbers, *arrays, *sizes, sigmoidal, stride)
    return outputs, last, kept


def _scalar_backward(
    sigmoidal: bool,
    given: list[Tensor],
    kept: Tensor,
    by_outputs: Tensor | None,
    by_last: Tensor | None,
) -> Tensors:
    inputs, recurrent, state = given
    sizes = (*inputs.shape[:4], state.shape[-1])
    by_outputs = _or_zeros(by_outputs, sizes, state)
    by_inputs, by_first = inputs.new_empty(inputs.shape), state.new_zeros(state.shape)
    tensors = (recurrent.mT, state, kept, by_outputs, by_last, by_inputs, by_first)
    arrays = [_array(part, state) for part in tensors]
    _loops().slstm_backward(*arrays, *sizes, sigmoidal)
    hidden = kept.unflatten(-1, (8, -1))[..., 6, : sizes[-1]]  # [R, W, T, N, S], of all positions
    before = torch.cat([state[..., 2, :].unsqueeze(2), hidden[:, :, :-1]], 2)
    by_recurrent = torch.einsum("rwtni,rwtnj->rnij", before, by_inputs)
    return by_inputs, by_recurrent, by_first


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
    return gated_diagonal(torch.polar(moduli, phases.expand_as(moduli)), inputs, state)


def _diagonal_forward(
    paired: bool, keep: bool, state: Tensor, gains: Tensor, inputs: Tensor
) -> tuple[Tensor, ...]:
    outputs, last = inputs.new_empty(inputs.shape), state.new_empty(state.shape)
    given, strides = _sequences(gains, inputs)
    arrays = [_array(part, state) for part in (state, outputs, last)]
    _loops().diagonal_forward(*given, *arrays, *inputs.shape, paired, strides)
    return outputs, last, state.new_empty(len(state), 0)


def _diagonal_backward(
    paired: bool,
    given: list[Tensor],
    states: Tensor,
    by_outputs: Tensor | None,
    by_last: Tensor | None,
) -> Tensors:
    state, gains, inputs = given
    by_outputs = _or_zeros(by_outputs, inputs.shape, state)
    by_last = _or_zeros(by_last, state.shape, state)
    by_gains, by_inputs = (part.new_empty(part.shape) for part in (gains, inputs))
    by_first = state.new_empty(state.shape)
    numbers, strides = _sequences(gains)
    tensors = (states, state, by_outputs, by_last, by_gains, by_inputs, by_first)
    arrays = [_array(part, state) for part in tensors]
    _loops().diagonal_backward(*numbers, *arrays, *inputs.shape, paired, strides)
    return by_first, by_gains, by_inputs


_DIAGONAL, _COMPLEX_DIAGONAL = (
    Loop(partial(_diagonal_forward, paired), partial(_diagonal_backward, paired), True)
    for paired in (False, True)
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
    outputs, last = call(steps.unsqueeze(0), loop, *(part.unsqueeze(0) for part in others))
    return outputs.squeeze(0), last.squeeze(0).mT


def _selective_forward(signed: bool, keep: bool, *inputs: Tensor) -> tuple[Tensor, ...]:
    *sequences, rates, state = inputs
    sizes = _selective_sizes(sequences)
    lanes, words, positions, channels, numbers = sizes
    chunks = -(-positions // _loops().CHUNK) if keep else 0
    width = _loops().LANES
    kept = state.new_empty(lanes, words, chunks, -(-channels // width), numbers, width)
    outputs = state.new_empty(lanes, words, positions, channels)
    last = state.new_empty(state.shape)
    given, strides = _sequences(*sequences, leading=3)
    arrays = [_array(part, state) for part in (rates, state, outputs, last, kept)]
    _loops().selective_forward(*given, *arrays, *sizes, signed, strides)
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
    given, strides = _sequences(*sequences, leading=3)
    by_outputs = _or_zeros(by_outputs, sizes[:4], state)
    by_last = _or_zeros(by_last, state.shape, state)
    found = [part.new_empty(part.shape) for part in sequences]
    by_rates, by_first = rates.new_zeros(rates.shape), state.new_empty(state.shape)
    tensors = (rates, kept, by_outputs, by_last, *found, by_rates, by_first)
    arrays = [_array(part, state) for part in tensors]
    _loops().selective_backward(*given, *arrays, *sizes, signed, strides)
    return *found, by_rates, by_first


def _selective_sizes(sequences: Sequence[Tensor]) -> tuple[int, ...]:
    return *sequences[0].shape, sequences[2].shape[-1]


# --- around recurrences ---


def convolution(
    inputs: Tensor,
    window: Tensor,
    filters: Tensor,
    biases: Tensor | None,
    *,
    activated: bool,
) -> Tensor:
    """Channels [B, T, D], each summed over its last k positions with weights [D, k].

    The window [B, k - 1, D] precedes the inputs. Biases are [D]; with `activated`, outputs z become
    z sigmoid(z).
    """
    loop = Loop(partial(_convolution_forward, activated), partial(_convolution_backward, activated))
    lanes = [None if each is None else each.unsqueeze(0) for each in (window, filters, biases)]
    return call(inputs.unsqueeze(0), loop, *lanes)[0].squeeze(0)


def _convolution_forward(
    activated: bool,
    keep: bool,
    inputs: Tensor,
    window: Tensor,
    filters: Tensor,
    biases: Tensor | None,
) -> tuple[Tensor, ...]:
    numbers, stride = _rows(inputs, 3)
    outputs = inputs.new_empty(inputs.shape)
    arrays = [_array(each, inputs) for each in (window, filters.mT, biases, outputs)]
    sizes = (*inputs.shape, filters.shape[-1])
    _loops().convolution_forward(numbers, *arrays, *sizes, activated, stride)
    return outputs, outputs.new_empty(len(outputs), 0)


def _convolution_backward(
    activated: bool, given: list[Tensor | None], kept: Tensor, by_outputs: Tensor
) -> Tensors:
    inputs, window, filters, biases = given
    assert inputs is not None and window is not None and filters is not None
    numbers, stride = _rows(inputs, 3)
    found = [
        None if part is None else part.new_empty(part.shape)
        for part in (inputs, window, filters.mT, biases)
    ]
    tensors = (window, filters.mT, biases, by_outputs, *found)
    arrays = [_array(each, inputs) for each in tensors]
    sizes = (*inputs.shape, filters.shape[-1])
    _loops().convolution_backward(numbers, *arrays, *sizes, activated, stride)
    by_inputs, by_window, by_filters, by_biases = found
    assert by_filters is not None
    return by_inputs, by_window, by_filters.mT, by_biases


def normalised(
    inputs: Tensor,
    gains: Tensor | None = None,
    *,
    epsilon: float,
    mean: bool = True,
    scale: float = 1.0,
    largest: float = math.inf,
) -> Tensor:
    """Vectors [..., D] times scale / sqrt(m(x^2) + epsilon), m their mean or sum, and gains.

    Gains are [D], or [N, D] for vectors [..., N, D]. Vectors with a number above `largest` are
    scaled down to it before they are squared, and the factor has no gradient.
    """
    share = 1 / inputs.shape[-1] if mean else 1.0
    given = (share, epsilon, largest, scale)
    loop = Loop(partial(_norm_forward, given), partial(_norm_backward, given))
    if gains is None:
        return call(inputs.unsqueeze(0), loop, None)[0].squeeze(0)
    gains = gains.reshape(1, -1, gains.shape[-1])
    return call(inputs.unsqueeze(0), loop, gains)[0].squeeze(0)


def _norm_forward(
    given: tuple[float, ...], keep: bool, inputs: Tensor, gains: Tensor | None
) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(inputs.shape)
    numbers, stride = _rows(inputs, inputs.dim() - 1)
    sizes = _norm_sizes(inputs, gains)
    _loops().norm_forward(numbers, _array(gains, inputs), _flat(outputs), *sizes, *given, stride)
    return outputs, outputs.new_empty(len(outputs), 0)


def _norm_backward(
    given: tuple[float, ...], tensors: list[Tensor | None], kept: Tensor, by_outputs: Tensor
) -> Tensors:
    inputs, gains = tensors
    assert inputs is not None
    numbers, stride = _rows(inputs, inputs.dim() - 1)
    by_inputs = inputs.new_empty(inputs.shape)
    by_gains = None if gains is None else gains.new_zeros(gains.shape)
    _loops().norm_backward(
        numbers,
        _array(gains, inputs),
        _flat(by_outputs.contiguous()),
        _flat(by_inputs),
        _array(by_gains, inputs),
        *_norm_sizes(inputs, gains),
        *given,
        stride,
    )
    return by_inputs, by_gains


def _norm_sizes(inputs: Tensor, gains: Tensor | None) -> tuple[int, ...]:
    lanes, size = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * size), size, 1 if gains is None else gains.shape[1]


def gated(inputs: Tensor, gates: Tensor) -> Tensor:
    """Products x z sigmoid(z) of inputs x and gates z, [..., D] both."""
    return call(inputs.unsqueeze(0), _GATED, gates.unsqueeze(0))[0].squeeze(0)


def _gated_forward(keep: bool, inputs: Tensor, gates: Tensor) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(inputs.shape)
    given, strides = _sequences(inputs, gates, leading=inputs.dim() - 1)
    size = inputs.shape[-1]
    _loops().gated_forward(*given, _flat(outputs), inputs.numel() // size, size, strides)
    return outputs, outputs.new_empty(len(outputs), 0)


def _gated_backward(inputs: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    given, strides = _sequences(*inputs, leading=inputs[0].dim() - 1)
    found = [part.new_empty(part.shape) for part in inputs]
    size = inputs[0].shape[-1]
    arrays = [_array(part, by_outputs) for part in (by_outputs, *found)]
    _loops().gated_backward(*given, *arrays, by_outputs.numel() // size, size, strides)
    return tuple(found)


_GATED = Loop(_gated_forward, _gated_backward)


def mixed(inputs: Tensor, before: Tensor, shares: Tensor) -> Tensor:
    """Mixtures x + s (y - x) of x and y [..., D] by every row s of shares [n, D]: [n, ..., D]."""
    others = (before.unsqueeze(0), shares.unsqueeze(0))
    return call(inputs.unsqueeze(0), _MIXED, *others)[0].squeeze(0)


def _mixed_forward(
    keep: bool, inputs: Tensor, before: Tensor, shares: Tensor
) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(len(inputs), shares.shape[1], *inputs.shape[1:])
    given, strides = _sequences(inputs, before, leading=inputs.dim() - 1)
    arrays = [_array(part, inputs) for part in (shares, outputs)]
    _loops().mixed_forward(*given, *arrays, *_mixed_sizes(inputs, shares), strides)
    return outputs, outputs.new_empty(len(outputs), 0)


def _mixed_backward(given: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    inputs, before, shares = given
    by_inputs, by_before = inputs.new_empty(inputs.shape), before.new_empty(before.shape)
    by_shares = shares.new_zeros(shares.shape)
    numbers, strides = _sequences(inputs, before, leading=inputs.dim() - 1)
    tensors = (shares, by_outputs, by_inputs, by_before, by_shares)
    arrays = [_array(part, inputs) for part in tensors]
    _loops().mixed_backward(*numbers, *arrays, *_mixed_sizes(inputs, shares), strides)
    return by_inputs, by_before, by_shares


def _mixed_sizes(inputs: Tensor, shares: Tensor) -> tuple[int, ...]:
    lanes, size = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * size), size, shares.shape[1]


_MIXED = Loop(_mixed_forward, _mixed_backward)
