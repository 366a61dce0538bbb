"""Compiled loops against torch: outputs, last states and gradients of every function.

R replicas, B batch, T time, N heads, n keys per position, K key size, V value size, D width.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import unittest
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from statetrack import ops
from statetrack.errors import SettingsError
from statetrack.models import MODELS, RecurrentModel, SequenceModel, mlstm, transformer
from statetrack.models._layers import (
    LARGEST_SQUARED,
    ShortConvolution,
    gated,
    queries_keys_values,
    rms_norm,
    scaled_down,
)
from statetrack.models._linear import Linear
from statetrack.models._rwkv import shifted
from statetrack.models.m2rnn import run as run_m2rnn
from statetrack.models.mamba3 import turn
from statetrack.models.rwkv4 import BEFORE_ALL, Sums, wkv_scan
from statetrack.models.rwkv6 import RWKV6Factors, rwkv6_scan
from statetrack.models.rwkv7 import FASTEST_DECAY, terms_of
from statetrack.models.slstm import Cell, advance
from statetrack.ops import native
from statetrack.ops.native import calls
from statetrack.ops.native.matrix_states import states_kept
from tests.faults.processes import run_at_once
from tests.new_process import SharedFolder, said_without_numba

pytest.importorskip("numba")

CLOSE = {torch.float32: 3e-5, torch.float64: 1e-12}
dtypes = st.sampled_from([torch.float32, torch.float64])
few = settings(max_examples=30, deadline=None)
lengths = st.sampled_from([1, 2, 3, 7, 16, 17, 33, 40])
sizes = st.sampled_from([1, 2, 5, 16, 17, 33])
norm_sizes = st.sampled_from([8, 16, 17, 33])
"""Of few numbers less their mean hardly anything but rounding may be left."""

small = st.integers(1, 3)

Function = Callable[..., "Tensor | tuple[Tensor, ...]"]


def normal(*shape: int, dtype: torch.dtype) -> Tensor:
    """Numbers of a tensor whose memory has other numbers between them."""
    return torch.randn(*shape[:-1], shape[-1] + 3, dtype=dtype)[..., 1:-2]


def results(function: Function, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """What a function gives, and the gradients of a weighted sum of that by all inputs."""
    leaves = [None if part is None else part.detach().requires_grad_() for part in inputs]
    outputs = function(*leaves)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), dtype=torch.float64)
    for part in outputs:
        weights = torch.randn(part.shape, generator=generator, dtype=torch.float64)
        weights = torch.complex(weights, weights.flip(0)) if part.is_complex() else weights
        loss = loss + (part.to(weights.dtype) * weights).real.sum()
    needed = [part for part in leaves if part is not None]
    return [*outputs, *torch.autograd.grad(loss, needed)]


def assert_same(expected: Function, found: Function, inputs: Sequence[Tensor | None]) -> None:
    dtype = next(part.dtype for part in inputs if part is not None).to_real()
    pairs = zip(results(expected, inputs), results(found, inputs), strict=True)
    for number, (theirs, mine) in enumerate(pairs):
        assert mine.shape == theirs.shape
        scale = 1 + (theirs.detach().abs().max().item() if theirs.numel() else 0)
        torch.testing.assert_close(
            mine, theirs, rtol=0, atol=CLOSE[dtype] * scale, msg=lambda m, n=number: f"{n}: {m}"
        )


def assert_same_mapped(
    expected: Function, found: Function, inputs: Sequence[Tensor | None], mapped: Sequence[bool]
) -> None:
    """The same in `vmap` over three replicas of the inputs that are mapped."""
    given, axes = [], []
    for part, many in zip(inputs, mapped, strict=True):
        if part is None or not many:
            given.append(part)
            axes.append(None)
            continue
        axis = len(given) % (part.dim() + 1)
        given.append(torch.stack([part, 0.7 * part, 0.5 * part], axis))
        axes.append(axis)
    if any(axis is not None for axis in axes):
        over = tuple(axes)
        assert_same(vmap(expected, over), vmap(found, over), given)


def seeded(seed: int) -> None:
    torch.manual_seed(seed)


# --- recurrences ---


def delta_inputs(
    shape: tuple[int, int, int, int, int, int], gates: str, dtype: torch.dtype
) -> list[Tensor | None]:
    words, steps, num_keys, heads, key_size, value_size = shape
    log_gates = {
        "none": None,
        "head": -torch.rand(words, steps, heads, dtype=dtype),
        "row": -torch.rand(words, steps, heads, key_size, dtype=dtype),
    }[gates]
    return [
        normal(words, steps, heads, key_size, dtype=dtype),
        functional.normalize(normal(words, steps, num_keys, heads, key_size, dtype=dtype), dim=-1),
        normal(words, steps, num_keys, heads, value_size, dtype=dtype),
        2 * torch.rand(words, steps, num_keys, heads, dtype=dtype),
        log_gates,
        normal(words, heads, key_size, value_size, dtype=dtype),
    ]


@few
@given(
    st.tuples(small, lengths, small, small, sizes, sizes),
    st.sampled_from(["none", "head"]),
    dtypes,
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.integers(0, 9),
)
def test_delta_rule(shape, gates, dtype, mapped, seed) -> None:
    seeded(seed)
    inputs = delta_inputs(shape, gates, dtype)
    by_torch = ops.delta_rule
    assert_same(by_torch, native.delta_rule, inputs)
    assert_same_mapped(by_torch, native.delta_rule, inputs, mapped)


def test_first_states_that_are_not_mapped_and_have_no_gradient_are_not_copied() -> None:
    seeded(0)
    *sequences, state = delta_inputs((2, 20, 1, 2, 3, 4), "head", torch.float64)
    many = [torch.stack([part, 0.7 * part]).requires_grad_() for part in sequences]
    found = []
    for function in (ops.delta_rule, native.delta_rule):
        outputs, last = vmap(function, (0,) * 5 + (None,))(*many, state)
        found.append([outputs, last, *torch.autograd.grad((outputs.sum(), last.sum()), many)])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs)


def delta_by_steps(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    """With a gate for every row: the equation."""
    queries, keys, values, betas, log_gates, state = inputs
    outputs = []
    for t in range(queries.shape[1]):
        state = log_gates[:, t].exp().unsqueeze(-1) * state
        here = (part[:, t] for part in (queries, keys, values, betas))
        read, state = ops.delta_rule_step(*here, None, state)
        outputs.append(read)
    return torch.stack(outputs, 1), state


@few
@given(st.tuples(small, lengths, small, small, sizes, sizes), dtypes, st.integers(0, 9))
def test_delta_rule_with_gates_by_row(shape, dtype, seed) -> None:
    seeded(seed)
    inputs = delta_inputs(shape, "row", dtype)
    assert_same(delta_by_steps, native.delta_rule, inputs)


@few
@given(
    st.tuples(small, lengths, small, sizes, sizes),
    st.sampled_from(["none", "head", "row"]),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.integers(0, 9),
)
def test_attention(shape, gates, shared, dtype, mapped, seed) -> None:
    seeded(seed)
    words, steps, heads, key_size, value_size = shape
    key_heads = 1 if shared and gates == "head" else heads
    inputs = [
        normal(words, steps, key_heads, key_size, dtype=dtype),
        normal(words, steps, key_heads, key_size, dtype=dtype),
        normal(words, steps, heads, value_size, dtype=dtype),
        normal(words, heads, key_size, value_size, dtype=dtype),
    ]
    name = {"none": "additive", "head": "decayed", "row": "gated"}[gates]
    if gates != "none":
        gate_shape = (words, steps, heads) + ((key_size,) if gates == "row" else ())
        inputs.insert(3, -(torch.rand(gate_shape, dtype=dtype) ** 3))
    by_torch = getattr(ops, f"{name}_attention")
    by_loop = getattr(native, f"{name}_attention")
    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped[: len(inputs)])


@few
@given(
    st.tuples(small, lengths, small, sizes, sizes),
    dtypes,
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.integers(0, 9),
)
def test_attention_that_reads_before_it_writes(shape, dtype, mapped, seed) -> None:
    seeded(seed)
    words, steps, heads, key_size, value_size = shape
    inputs = [
        *(normal(words, steps, heads, key_size, dtype=dtype) for _ in range(2)),
        normal(words, steps, heads, value_size, dtype=dtype),
        -torch.rand(words, steps, heads, key_size, dtype=dtype),
        normal(words, heads, key_size, value_size, dtype=dtype),
    ]

    def by_torch(queries, keys, values, log_gains, state):
        factors = RWKV6Factors(log_gains, queries, keys, values)
        return rwkv6_scan(factors, state, kernel="torch")

    assert_same(by_torch, native.attention_before, inputs)
    assert_same_mapped(by_torch, native.attention_before, inputs, mapped)
    assert_same(until_ends(by_torch), until_ends(native.attention_before), inputs)


def until_ends(function: Function) -> Function:
    """What is read of words that end at different positions, the first at once; no last state."""

    def read(*inputs: Tensor) -> Tensor:
        outputs, _ = function(*inputs)
        words, steps = outputs.shape[:2]
        ends = torch.arange(words).unsqueeze(1) * (steps // max(1, words - 1))
        return outputs * (torch.arange(steps) < ends).to(outputs.dtype)[..., None, None]

    return read


@few
@given(
    st.tuples(small, lengths, small, small, sizes, sizes),
    st.sampled_from(["none", "head"]),
    dtypes,
    st.integers(0, 9),
)
def test_what_follows_the_end_of_a_word_has_no_gradient(shape, gates, dtype, seed) -> None:
    seeded(seed)
    inputs = delta_inputs(shape, gates, dtype)
    assert_same(until_ends(ops.delta_rule), until_ends(native.delta_rule), inputs)
    queries, keys, values, _, _, state = inputs
    by_key = [queries, keys[:, :, 0], values[:, :, 0], -(keys[:, :, 0] ** 2), state]
    assert_same(until_ends(ops.gated_attention), until_ends(native.gated_attention), by_key)


@few
@given(st.tuples(small, lengths, small, sizes, sizes), dtypes, st.integers(0, 9))
def test_attention_that_removes(shape, dtype, seed) -> None:
    seeded(seed)
    words, steps, heads, key_size, value_size = shape
    by_key = [normal(words, steps, heads, key_size, dtype=dtype) for _ in range(2)]
    removals = functional.normalize(normal(words, steps, heads, key_size, dtype=dtype), dim=-1)
    inputs = [
        *by_key,
        normal(words, steps, heads, value_size, dtype=dtype),
        -torch.rand(words, steps, heads, key_size, dtype=dtype),
        removals,
        removals * torch.rand(words, steps, heads, key_size, dtype=dtype),
        normal(words, heads, key_size, value_size, dtype=dtype),
    ]

    def by_torch(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        *sequences, state = inputs
        outputs = []
        for query, key, value, gain, removal, replacement in zip(
            *(part.unbind(1) for part in sequences), strict=True
        ):
            gone = torch.einsum("bnkv,bnk->bnv", state, removal)
            state = gain.exp().unsqueeze(-1) * state + key.unsqueeze(-1) * value.unsqueeze(-2)
            state = state - replacement.unsqueeze(-1) * gone.unsqueeze(-2)
            outputs.append(torch.einsum("bnkv,bnk->bnv", state, query))
        return torch.stack(outputs, 1), state

    assert_same(by_torch, native.replacing_attention, inputs)


@few
@given(
    st.tuples(small, lengths, sizes),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_gated_diagonal(shape, is_complex, dtype, mapped) -> None:
    words, _, width = shape
    dtype = dtype.to_complex() if is_complex else dtype
    inputs = [normal(*shape, dtype=dtype) for _ in range(2)]
    inputs[0] = inputs[0] / (1 + inputs[0].abs())
    inputs.append(normal(words, width, dtype=dtype))
    assert_same(ops.gated_diagonal, native.gated_diagonal, inputs)
    assert_same_mapped(ops.gated_diagonal, native.gated_diagonal, inputs, mapped)


@few
@given(
    st.tuples(small, st.sampled_from([1, 2, 9]), small, sizes),
    st.sampled_from(["sigmoid", "exponential"]),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_scalar_lstm(shape, forget, begins, dtype, mapped) -> None:
    words, steps, heads, size = shape
    inputs = [
        normal(words, steps, heads, 2 * size, dtype=dtype),
        normal(words, steps, heads, 2 * size, dtype=dtype),
        normal(heads, 4 * size, dtype=dtype),
        normal(heads, size, 4 * size, dtype=dtype) / size**0.5,
        normal(words, heads, size, dtype=dtype),
        1 + torch.rand(words, heads, size, dtype=dtype),
        normal(words, heads, size, dtype=dtype),
    ]
    least = torch.full((words, heads, size), -torch.inf, dtype=dtype)
    greatest = least if begins else normal(words, heads, size, dtype=dtype)

    def by_torch(entering, leaving, biases, recurrent, *cell):
        state, hidden = Cell(*cell, greatest), []
        for here in (torch.cat([entering, leaving], -1) + biases).unbind(1):
            state = advance(here, recurrent, state, forget)
            hidden.append(state.hidden)
        return torch.stack(hidden, 1), torch.stack(state[:3], -2)

    def by_loop(*given):
        state = torch.stack([*given[4:], greatest], -2)
        sigmoidal = forget == "sigmoid"
        hidden, last = native.scalar_lstm(*given[:4], state, sigmoidal=sigmoidal)
        return hidden, last[..., :3, :]

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, [*[mapped[0]] * 3, True, *[mapped[2]] * 3])


def gated_by_torch(gates: int, rows: Tensor) -> Function:
    """The equations of an LSTM (4 gates), a GRU (3) or an Elman network, one step a line."""

    def run(
        inputs: Tensor,
        weights: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        more: Tensor,
        state: Tensor,
        *readout: Tensor,
    ) -> tuple[Tensor, Tensor]:
        found, table = [], inputs @ weights.mT + bias
        for place in rows.unbind(1):
            read, hidden = table[place].chunk(gates, -1), state[:, 0]
            remembered = (hidden @ recurrent.mT + more).chunk(gates, -1)
            if gates == 4:
                enter, forget, new, out = (x + y for x, y in zip(read, remembered, strict=True))
                cell = forget.sigmoid() * state[:, 1] + enter.sigmoid() * new.tanh()
                state = torch.stack([out.sigmoid() * cell.tanh(), cell], 1)
            elif gates == 3:
                reset, keep = ((read[k] + remembered[k]).sigmoid() for k in range(2))
                new = (read[2] + reset * remembered[2]).tanh()
                state = ((1 - keep) * new + keep * hidden).unsqueeze(1)
            else:
                state = (read[0] + remembered[0]).tanh().unsqueeze(1)
            found.append(state[:, 0])
        outputs = torch.stack(found, 1)
        return (outputs @ readout[0].mT + readout[1] if readout else outputs), state

    return run


@few
@given(
    st.sampled_from([4, 3, 1]),
    st.tuples(st.sampled_from([1, 3, 4, 6, 17]), st.sampled_from([1, 2, 7, 19]), small, sizes),
    dtypes,
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_gated_network(gates, shape, dtype, mapped, begins, reads) -> None:
    """Without a first state as with zeros, and with a readout."""
    words, steps, symbols, size = shape
    rows = torch.randint(symbols, (words, steps))
    first = torch.zeros(words, 2 if gates == 4 else 1, size, dtype=dtype)
    inputs = [
        normal(symbols, 5, dtype=dtype),
        normal(gates * size, 5, dtype=dtype),
        normal(gates * size, size, dtype=dtype) / size**0.5,
        normal(gates * size, dtype=dtype),
        normal(gates * size, dtype=dtype),
        *([] if begins else [normal(*first.shape, dtype=dtype)]),
        *([normal(3, size, dtype=dtype), normal(3, dtype=dtype)] if reads else []),
    ]

    def by_torch(inputs, *given):
        weights, others = given[:4], given[4:]
        state, readout = (first, others) if begins else (others[0], others[1:])
        return gated_by_torch(gates, rows)(inputs, *weights, state, *readout)

    def by_loop(inputs, *given):
        state, readout = (None, given[4:]) if begins else (given[4], given[5:])
        return native.gated_network(inputs, rows, given[:4], state, readout or None)

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped[: len(inputs)])


@few
@given(
    st.tuples(st.sampled_from([1, 3, 4, 6]), st.sampled_from([1, 2, 7]), small, sizes),
    dtypes,
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_second_order_network(shape, dtype, mapped) -> None:
    words, steps, num_symbols, size = shape
    symbols = torch.randint(num_symbols, (words, steps))
    inputs = [
        normal(num_symbols, size, size, dtype=dtype) / size**0.5,
        normal(num_symbols, size, dtype=dtype),
        normal(words, size, dtype=dtype),
    ]

    def by_torch(matrices, biases, state):
        found = []
        for symbol in symbols.unbind(1):
            moved = torch.einsum("bij,bj->bi", matrices[symbol], state)
            state = (moved + biases[symbol]).tanh()
            found.append(state)
        return torch.stack(found, 1), state

    def by_loop(matrices, biases, state):
        return native.second_order_network(matrices, biases, symbols, state)

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(
    st.tuples(st.sampled_from([1, 3]), st.sampled_from([1, 2, 7]), small, sizes, sizes),
    dtypes,
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_matrix_network(shape, dtype, mapped) -> None:
    words, steps, heads, rows, columns = shape
    inputs = [
        normal(words, steps, heads, rows, dtype=dtype),
        normal(words, steps, heads, rows, dtype=dtype),
        normal(words, steps, heads, columns, dtype=dtype),
        torch.rand(words, steps, heads, dtype=dtype),
        normal(heads, columns, columns, dtype=dtype) / columns**0.5,
        normal(words, heads, rows, columns, dtype=dtype),
    ]
    assert_same(run_m2rnn, native.matrix_network, inputs)
    assert_same_mapped(run_m2rnn, native.matrix_network, inputs, mapped)


@pytest.mark.parametrize("row", [-1, 4])
def test_rows_that_a_table_does_not_have_are_refused(row) -> None:
    """A loop would read, and its backward pass write, outside the table."""
    rows = torch.zeros(2, 3, dtype=torch.int64)
    rows[1, 2] = row
    states, last = torch.zeros(2, 2, 5), torch.zeros(2, 5)
    with pytest.raises(IndexError, match="not in 0 to 3"):
        weights = torch.zeros(20, 5), torch.zeros(20, 5), torch.zeros(20), torch.zeros(20)
        native.gated_network(torch.zeros(4, 5), rows, weights, states)
    with pytest.raises(IndexError, match="not in 0 to 3"):
        native.second_order_network(torch.zeros(4, 5, 5), torch.zeros(4, 5), rows, last)
    with pytest.raises(IndexError, match="not in 0 to 3"):
        native.read_by_matrices(torch.zeros(4, 5, 5), rows, last, torch.zeros(2, 5))
    with pytest.raises(ValueError, match="no words, or empty ones"):
        native.read_by_matrices(torch.zeros(4, 5, 5), rows[:, :0], last, torch.zeros(2, 5))


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_layers_of_networks_of_torch(name) -> None:
    """Several layers, of fewer symbols than positions and of more."""
    for num_symbols, words in ((5, 7), (60, 2)):
        symbols, found = torch.randint(num_symbols, (words, 6)), []
        kind = MODELS[name]
        for kernel in ("torch", "native"):
            torch.manual_seed(0)
            options = kind.settings_class(hidden=7, layers=3, embed_dim=5, kernel=kernel)
            model = kind(options, num_symbols=num_symbols, num_labels=4).double()
            logits = model(symbols)
            gradients = torch.autograd.grad(logits.square().sum(), list(model.parameters()))
            found.append([logits, *gradients])
        for expected, mine in zip(*found, strict=True):
            torch.testing.assert_close(mine, expected, rtol=1e-9, atol=1e-9)


@few
@given(
    st.tuples(small, lengths, sizes, small),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_selective_diagonal(shape, signed, dtype, mapped) -> None:
    words, steps, channels, numbers = shape
    inputs = [
        torch.rand(words, steps, channels, dtype=dtype),
        normal(words, steps, channels, dtype=dtype),
        normal(words, steps, numbers, dtype=dtype),
        normal(words, steps, numbers, dtype=dtype),
        -torch.rand(channels, numbers, dtype=dtype),
        normal(words, channels, numbers, dtype=dtype),
    ]

    def by_torch(steps, x, writings, readings, rates, state):
        outputs = []
        for t in range(steps.shape[1]):
            gains = torch.exp(steps[:, t].unsqueeze(-1) * rates)
            gains = 2 * gains - 1 if signed else gains
            written = (steps[:, t] * x[:, t]).unsqueeze(-1) * writings[:, t].unsqueeze(-2)
            state = gains * state + written
            outputs.append(torch.einsum("ben,bn->be", state, readings[:, t]))
        return torch.stack(outputs, 1), state

    def by_loop(*inputs):
        return native.selective_diagonal(*inputs, signed=signed)

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(st.tuples(small, small, sizes), dtypes, st.tuples(*[st.booleans()] * 2))
def test_the_normaliser_of_an_mlstm(shape, dtype, mapped) -> None:
    *leading, size = shape
    read, maxima = normal(*leading, size + 1, dtype=dtype), normal(*leading, dtype=dtype)

    def by_loop(read, maxima):  # maxima have no gradient
        return native.divided(read, maxima.detach(), mlstm.EPSILON) + 0 * maxima.sum()

    def by_torch(read, maxima):
        return mlstm.normalised(read, maxima.detach()) + 0 * maxima.sum()

    assert_same(by_torch, by_loop, [read, maxima])
    assert_same_mapped(by_torch, by_loop, [read, maxima], mapped)


@few
@given(st.tuples(small, small, sizes), st.booleans(), dtypes, st.tuples(*[st.booleans()] * 4))
def test_gates(shape, added, dtype, mapped) -> None:
    inputs = [normal(*shape, dtype=dtype), 3 * normal(*shape, dtype=dtype)]
    if added:
        inputs += [normal(*shape, dtype=dtype), normal(shape[-1], dtype=dtype)]

    def by_torch(*inputs):
        return gated(*inputs)

    assert_same(by_torch, native.gated, inputs)
    assert_same_mapped(by_torch, native.gated, inputs, mapped[: len(inputs)])


@few
@given(
    st.lists(small, min_size=1, max_size=3),
    sizes,
    st.sampled_from([1, 6, 16, 40, 64, 80]),
    st.booleans(),
    dtypes,
    st.tuples(*[st.booleans()] * 3),
)
def test_linear_maps(leading, size, num_outputs, with_bias, dtype, mapped) -> None:
    normals = partial(normal, dtype=dtype)
    bias = normals(num_outputs) if with_bias else None
    inputs = [normals(*leading, size), normals(num_outputs, size), bias]
    assert_same(functional.linear, native.linear, inputs)
    assert_same_mapped(functional.linear, native.linear, inputs, mapped)
    total = native.linear(inputs[0].requires_grad_(), *inputs[1:]).sum()
    (found,) = torch.autograd.grad(total, inputs[0])  # of a gradient that is one number everywhere
    torch.testing.assert_close(found, inputs[1].sum(0).expand_as(found))


def test_linear_maps_of_more_rows_than_are_taken_at_once() -> None:
    inputs = [normal(2, 150, 70, dtype=torch.float64), normal(33, 70, dtype=torch.float64)]
    assert_same(functional.linear, native.linear, [*inputs, normal(33, dtype=torch.float64)])
    part = inputs[0][:, :, 3:40]  # rows that do not follow one another
    assert_same(functional.linear, native.linear, [part, inputs[1][:, :37], None])


UNITS = {"gelu": functional.gelu, "silu": functional.silu, "relu": functional.relu}


@few
@given(
    st.sampled_from([(3,), (2, 5), (2, 67)]),
    sizes,
    sizes,
    sizes,
    st.sampled_from(sorted(UNITS)),
    st.lists(st.booleans(), min_size=3, max_size=3),
    dtypes,
    st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_mlps(leading, width, units, num_outputs, kind, present, dtype, mapped) -> None:
    gates, biases, residual = present
    inputs = [
        normal(*leading, width, dtype=dtype),
        *(normal(units, width, dtype=dtype), normal(units, dtype=dtype) if biases else None),
        normal(num_outputs, units, dtype=dtype),
        normal(num_outputs, dtype=dtype) if biases else None,
        normal(units, width, dtype=dtype) if gates else None,
        normal(units, dtype=dtype) if gates and biases else None,
        normal(*leading, num_outputs, dtype=dtype) if residual else None,
    ]

    def by_torch(rows, maps, bias, last, last_bias, gates, gate_bias, others):
        found = functional.linear(rows, maps, bias)
        if gates is None:
            found = UNITS[kind](found)
        else:
            found = UNITS[kind](functional.linear(rows, gates, gate_bias)) * found
        found = functional.linear(found, last, last_bias)
        return found if others is None else found + others

    def by_loop(rows, maps, bias, last, last_bias, gates, gate_bias, others):
        pair = None if gates is None else (gates, gate_bias)
        return native.mlp(rows, kind, (maps, bias), (last, last_bias), pair, others)

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@pytest.mark.parametrize("kind", sorted(UNITS))
def test_units_of_mlps_at_every_magnitude(kind) -> None:
    one = torch.ones(1, 1)
    numbers = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([-1e30, -50.0, 0.0, 1e30])])

    def units(rows: Tensor) -> Tensor:
        weight = one.to(rows.dtype)
        return native.mlp(rows, kind, (weight, None), (weight, None))

    for dtype, close in ((torch.float32, 3e-7), (torch.float64, 1e-15)):
        rows = numbers.to(dtype).unsqueeze(-1)
        found, slopes = results(lambda rows: (units(rows) / rows.abs().clamp_min(1),), [rows])
        exact, by_torch = results(
            lambda rows: (UNITS[kind](rows) / rows.abs().clamp_min(1),), [rows.double()]
        )
        torch.testing.assert_close(found.double(), exact, rtol=close, atol=close)
        torch.testing.assert_close(slopes.double(), by_torch, rtol=close, atol=10 * close)


@few
@given(
    st.sampled_from([(3,), (2, 5), (2, 67)]),
    sizes,
    st.sampled_from([1, 3, 8]),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_gradients_of_two_uses_are_added(leading, outputs, size, residual, dtype, mapped) -> None:
    inputs = [
        normal(*leading, 8 * size, dtype=dtype),
        normal(outputs, 8 * size, dtype=dtype),
        normal(8, size, outputs, dtype=dtype),
        normal(8 * size, dtype=dtype),
        normal(*leading, outputs, dtype=dtype) if residual else None,
    ]

    def by_torch(rows, weight, blocks, gains, others):
        mapped = functional.linear(rows, weight)
        joined = torch.einsum("...ni,nij->...nj", rows.unflatten(-1, (8, size)), blocks)
        normed = functional.layer_norm(rows, rows.shape[-1:], gains, None, 1e-2)
        return mapped if others is None else mapped + others, joined, normed, rows.square()

    def by_loop(rows, weight, blocks, gains, others):
        mapped, rows = native.linear_beside(rows, weight, None, others)
        joined = native.block_diagonal(rows, blocks)
        normed, rows = native.normalised_beside(rows, gains, epsilon=1e-2, centred=True)
        return mapped, joined, normed, rows.square()

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


def test_what_is_passed_on_alone_has_its_own_gradient() -> None:
    rows, weight = torch.randn(5, 8, requires_grad=True), torch.randn(3, 8, requires_grad=True)
    _, same = native.linear_beside(rows, weight, None)
    _, same = native.normalised_beside(same, epsilon=1e-6)
    by_rows, by_weight = torch.autograd.grad(same.square().sum(), (rows, weight))
    torch.testing.assert_close(by_rows, 2 * rows.detach())
    assert torch.equal(by_weight, torch.zeros(3, 8))


@few
@given(
    st.sampled_from([(3,), (2, 5), (2, 67)]),
    small,
    st.sampled_from([1, 4, 5, 16, 17]),
    st.sampled_from([1, 8, 17]),
    dtypes,
    st.lists(st.booleans(), min_size=7, max_size=7),
)
def test_gated_projections(leading, blocks, size, gates, dtype, mapped) -> None:
    inputs = [
        *(normal(*leading, blocks * size, dtype=dtype) for _ in range(2)),
        *(normal(blocks, size, size, dtype=dtype) for _ in range(3)),
        normal(3, gates, blocks * size, dtype=dtype),
        normal(gates, dtype=dtype),
    ]

    def by_torch(mixed, upper, for_queries, for_keys, for_values, weights, biases):
        pairs = ((mixed, for_queries), (mixed, for_keys), (upper, for_values))
        parts = [
            torch.einsum("...ni,nij->...nj", rows.unflatten(-1, (blocks, size)), own).flatten(-2)
            for rows, own in pairs
        ]
        arguments = biases
        for part, weight in zip(parts, weights.unbind(0), strict=True):
            arguments = arguments + functional.linear(part, weight)
        return *parts, arguments, mixed.square(), upper.square()

    def by_loop(mixed, upper, *weights):
        *parts, mixed, upper = native.gated_projections(mixed, upper, weights[:3], *weights[3:])
        return *parts, mixed.square(), upper.square()

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(
    small,
    small,
    st.integers(1, 9),
    st.sampled_from([0, 1, 5, 16, 17, 33]),
    dtypes,
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_rows_of_symbols(words, steps, num_symbols, width, dtype, mapped) -> None:
    """Of one table and of two, one of which is not of vectors."""
    symbols = torch.randint(num_symbols, (words, steps))
    tables = [normal(num_symbols, width, dtype=dtype), normal(num_symbols, 2, 3, dtype=dtype)]

    def by_torch(*tables):
        return tuple(table[symbols] for table in tables)

    def by_loop(*tables):
        return native.rows_at_each(tables, symbols)

    assert_same(by_torch, by_loop, tables)
    assert_same_mapped(by_torch, by_loop, tables, mapped[:2])
    assert_same(
        lambda table: table[symbols], lambda table: native.rows_at(table, symbols), tables[:1]
    )


def test_rows_whose_gradient_nobody_asks_for_have_none() -> None:
    tables = [torch.randn(3, 2, requires_grad=True) for _ in range(2)]
    first, _ = native.rows_at_each(tables, torch.tensor([[0, 2]]))
    first.sum().backward()
    assert tables[1].grad is None
    torch.testing.assert_close(tables[0].grad, torch.tensor([[1.0, 1], [0, 0], [1, 1]]))


@pytest.mark.parametrize("symbol", [-1, 4])
def test_rows_of_symbols_that_there_are_not_are_refused(symbol) -> None:
    with pytest.raises(IndexError, match="0 to 3"):
        native.rows_at(torch.randn(4, 2), torch.tensor([0, symbol]))
    with pytest.raises(IndexError, match="0 to 3"):
        vmap(native.rows_at)(torch.randn(3, 4, 2), torch.full((3, 2), symbol))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num_labels", [1, 2, 6, 16, 17, 60])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_losses(scale, num_labels, dtype) -> None:
    logits = scale * normal(3, 2, 7, num_labels, dtype=dtype)
    labels = torch.randint(num_labels, (3, 2, 7))
    aims = functional.one_hot(labels, num_labels).to(dtype) - 1 / num_labels

    def entropy(logits: Tensor, smoothing: float) -> Tensor:
        flat = functional.cross_entropy(
            logits.flatten(0, -2), labels.flatten(), reduction="none", label_smoothing=smoothing
        )
        return flat.view(labels.shape)

    for smoothing in (0.0, 0.1):
        own = partial(native.cross_entropy, labels=labels, smoothing=smoothing)
        assert_same(partial(entropy, smoothing=smoothing), own, [logits])
    own = partial(native.squared_error, labels=labels)
    assert_same(lambda logits: (logits - aims).square().sum(-1), own, [logits])
    close = aims + 1e-7 * torch.randn(aims.shape, dtype=dtype)
    exact = (close.double() - aims.double()).square().sum(-1)
    torch.testing.assert_close(own(close).double(), exact, rtol=0.5, atol=1e-14)


@pytest.mark.parametrize("loss", [native.cross_entropy, native.squared_error])
@pytest.mark.parametrize("label", [-1, 4])
def test_labels_that_there_are_not_are_refused(label, loss) -> None:
    with pytest.raises(IndexError, match="0 to 3"):
        loss(torch.randn(2, 4), torch.tensor([0, label]))


@pytest.mark.parametrize("num_labels", [1, 6, 16, 33])
def test_answers_with_all_that_logits_can_be(num_labels) -> None:
    logits = torch.randint(-2, 2, (400, num_labels)).float()
    logits[torch.rand(logits.shape) < 0.1] = -torch.inf
    logits[torch.rand(logits.shape) < 0.02] = torch.nan
    logits[torch.rand(logits.shape) < 0.02] = torch.inf
    answers, finite = native.answers(logits)
    assert torch.equal(answers, logits.argmax(-1))
    assert torch.equal(finite, logits.isfinite().all(-1))


def test_a_layer_computes_many_rows_by_a_loop_unless_torch_has_several_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[torch.Size] = []

    def linear(inputs: Tensor, weight: Tensor, bias: Tensor, others: None) -> Tensor:
        asked.append(inputs.shape)
        return functional.linear(inputs, weight, bias)

    monkeypatch.setattr(native, "linear", linear)
    layer = Linear(3, 4)
    layer.kernel = "native"
    for threads in (2, 1):
        monkeypatch.setattr(torch, "get_num_threads", lambda found=threads: found)
        for rows in ((2, 128, 3), (255, 3), (256, 3)):
            inputs = torch.randn(rows)
            assert torch.equal(layer(inputs), functional.linear(inputs, layer.weight, layer.bias))
    assert asked == [(2, 128, 3), (256, 3)]
    layer.kernel = "torch"
    layer(torch.randn(256, 3))
    assert len(asked) == 2


@pytest.mark.parametrize("registers", [(32, 64), (16, 32), (32, 16), (16, 16)])
@pytest.mark.parametrize("bytes_each", [4, 8])
def test_the_sums_of_a_tile_fit_into_the_registers(
    monkeypatch: pytest.MonkeyPatch, registers: tuple[int, int], bytes_each: int
) -> None:
    tiles = calls.loops("tiles")
    monkeypatch.setattr(tiles, "registers", lambda: registers)
    rows, vectors = tiles.at_once(tiles.ROWS, tiles.VECTORS, bytes_each)
    each = tiles.LANES * bytes_each // registers[1]
    assert 1 <= rows <= tiles.ROWS and 1 <= vectors <= tiles.VECTORS
    assert rows * vectors * each < registers[0] or (rows, vectors) == (1, 1)


@few
@given(
    st.tuples(
        small,
        st.sampled_from([1, 2, 3, 7, 10, 15, 16, 17, 31, 32, 33, 40]),
        small,
        st.sampled_from([1, 4, 6, 16, 18, 32, 34, 40, 64]),
    ),
    st.booleans(),
    dtypes,
    st.booleans(),
)
def test_softmax_attention(shape, rotary, dtype, mapped) -> None:
    words, steps, heads, size = shape
    rotary = rotary and size % 2 == 0
    inputs = [3 * normal(words, steps, 3 * heads * size, dtype=dtype)]

    def by_torch(projected):
        split = projected.unflatten(-1, (3 * heads, size)).transpose(1, 2)
        queries, keys, values = split.chunk(3, 1)
        if rotary:
            queries, keys = transformer.turned(queries), transformer.turned(keys)
        future = torch.ones(steps, steps, dtype=torch.bool).triu(1)
        scores = (queries @ keys.mT / size**0.5).masked_fill(future, -torch.inf)
        return (scores.softmax(-1) @ values).transpose(1, 2).flatten(-2)

    def by_loop(projected):
        angles = transformer.waves(steps, size, projected) if rotary else None
        return native.softmax_attention(projected, heads, angles)

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, [mapped])


@few
@given(
    st.tuples(small, small, sizes), st.integers(0, 40), dtypes, st.lists(st.booleans(), min_size=2)
)
def test_rotations(shape, pairs, dtype, mapped) -> None:
    pairs = min(pairs, shape[-1] // 2)
    angles = torch.randn(*shape[:2], pairs, dtype=dtype)
    inputs = [normal(*shape, dtype=dtype), angles]

    def by_loop(vectors, angles):
        return native.rotated(vectors, angles.cos(), angles.sin())

    assert_same(turn, by_loop, inputs)
    assert_same_mapped(turn, by_loop, inputs, mapped[:2])


# --- around recurrences ---


@few
@given(
    st.tuples(small, lengths, sizes),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_convolution(shape, size, biased, activated, dtype, mapped) -> None:
    words, _, width = shape
    inputs = [
        normal(*shape, dtype=dtype),
        normal(words, size - 1, width, dtype=dtype),
        normal(width, size, dtype=dtype),
        torch.randn(width, dtype=dtype) if biased else None,
    ]

    def by_torch(inputs: Tensor, window: Tensor, filters: Tensor, biases: Tensor | None) -> Tensor:
        seen = torch.cat([window, inputs], 1).mT
        summed = functional.conv1d(seen, filters.unsqueeze(1), biases, groups=width).mT
        return functional.silu(summed) if activated else summed

    def by_loop(*given: Tensor) -> Tensor:
        return native.convolution(*given, activated=activated)

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(
    st.lists(small, max_size=3),
    sizes,
    st.sampled_from(["none", "one", "heads"]),
    st.sampled_from([1.0, 1e-12, 1e12]),
    dtypes,
    st.lists(st.booleans(), min_size=2, max_size=2),
)
def test_root_mean_square(leading, width, gains, magnitude, dtype, mapped) -> None:
    inputs = magnitude * normal(*leading, 2, width, dtype=dtype)
    shape = {"none": None, "one": (width,), "heads": (2, width)}[gains]
    weights = None if shape is None else torch.randn(shape, dtype=dtype)

    def by_torch(inputs: Tensor, weights: Tensor | None) -> Tensor:
        normed = rms_norm(inputs)
        return normed if weights is None else normed * weights

    def by_loop(inputs: Tensor, weights: Tensor | None) -> Tensor:
        return native.normalised(inputs, weights, epsilon=1e-6, largest=LARGEST_SQUARED)

    assert_same(by_torch, by_loop, [inputs, weights])
    assert_same_mapped(by_torch, by_loop, [inputs, weights], mapped)


@few
@given(
    st.lists(small, max_size=3),
    norm_sizes,
    st.booleans(),
    st.sampled_from([1e-3, 1.0, 1e12]),
    dtypes,
    st.tuples(*[st.booleans()] * 3),
)
def test_layer_norm(leading, width, of_heads, magnitude, dtype, mapped) -> None:
    inputs = magnitude * (normal(*leading, 2, width, dtype=dtype) + 1)
    shape = (2, width) if of_heads else (width,)
    gains, biases = (torch.randn(shape, dtype=dtype) for _ in range(2))

    def by_torch(inputs: Tensor, gains: Tensor, biases: Tensor) -> Tensor:
        normal = functional.layer_norm(scaled_down(inputs), (width,), eps=1e-5)
        return normal * gains + biases

    def by_loop(inputs: Tensor, gains: Tensor, biases: Tensor) -> Tensor:
        options = {"epsilon": 1e-5, "centred": True, "largest": LARGEST_SQUARED}
        return native.normalised(inputs, gains, biases, **options)

    assert_same(by_torch, by_loop, [inputs, gains, biases])
    assert_same_mapped(by_torch, by_loop, [inputs, gains, biases], mapped)


@few
@given(
    st.tuples(small, st.integers(1, 40), small, st.integers(1, 20), st.integers(1, 35)),
    dtypes,
    st.lists(st.booleans(), min_size=2, max_size=2),
)
def test_block_diagonal(shape, dtype, mapped) -> None:
    words, rows, blocks, inner, outer = shape
    inputs = [normal(words, rows, blocks * inner, dtype=dtype)]
    inputs.append(torch.randn(blocks, inner, outer, dtype=dtype))

    def by_torch(inputs, blocks):
        return torch.einsum("...ni,nij->...nj", inputs.unflatten(-1, blocks.shape[:2]), blocks)

    assert_same(by_torch, native.block_diagonal, inputs)
    assert_same_mapped(by_torch, native.block_diagonal, inputs, mapped)


@few
@given(
    st.tuples(small, st.integers(1, 5), sizes),
    small,
    st.booleans(),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_mixtures(shape, num_mixtures, by_position, partly, dtype, mapped) -> None:
    words, _, width = shape
    more = torch.rand(*shape[:2], num_mixtures, width, dtype=dtype) if by_position else None
    shares = torch.rand(num_mixtures, width, dtype=dtype)
    inputs = [normal(*shape, dtype=dtype), normal(words, width, dtype=dtype), shares, more]

    def by(kernel: Any) -> Function:
        def mix(*inputs: Any) -> tuple[Tensor, ...]:
            found = shifted(*inputs, kernel=kernel)
            return found[:1] if partly else found  # what nobody reads has no gradient

        return mix

    assert_same(by("torch"), by("native"), inputs)
    assert_same_mapped(by("torch"), by("native"), inputs, mapped)


@few
@given(
    st.tuples(small, st.integers(1, 5), small),
    st.lists(sizes, min_size=1, max_size=3),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_sums_of_rows_for_a_symbol_and_the_one_before(
    shape, widths, by_word, dtype, mapped
) -> None:
    words, steps, num_symbols = shape
    symbols = torch.randint(num_symbols, (words, steps))
    rows = 2 * num_symbols + (words if by_word else 1)
    tables = [normal(rows, width, dtype=dtype) for width in widths]

    def by_torch(*tables: Tensor) -> tuple[Tensor, ...]:
        starts = torch.arange(2 * num_symbols, rows).unsqueeze(1).expand(words, 1)
        before = torch.cat([starts, num_symbols + symbols[:, :-1]], 1)
        return tuple(table[symbols] + table[before] for table in tables)

    def by_loop(*tables: Tensor) -> tuple[Tensor, ...]:
        return native.at_pairs(tables, symbols, num_symbols)

    assert_same(by_torch, by_loop, tables)
    assert_same_mapped(by_torch, by_loop, tables, mapped[: len(tables)])
    with pytest.raises(IndexError):
        native.at_pairs(tables, symbols + num_symbols, num_symbols)


@pytest.mark.parametrize("num_symbols", [2, 3, 13, 29])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", ["rwkv4", "rwkv6", "rwkv7"])
def test_maps_of_two_positions_with_few_and_many_symbols(num_symbols, whole, name) -> None:
    symbols = torch.randint(num_symbols, (5, 6), generator=torch.Generator().manual_seed(0))
    found = []
    for kernel in ("torch", "native"):
        seeded(0)
        settings = MODELS[name].settings_class(kernel=kernel, width=8, layers=2)
        model = MODELS[name](settings, num_symbols=num_symbols, num_labels=3).double()
        assert isinstance(model, RecurrentModel)
        for weight in model.parameters():
            weight.data = torch.randn_like(weight) / 3
        logits = model(symbols) if whole else model.scan(symbols, model.initial_state(5))[0]
        found.append([logits, *torch.autograd.grad(logits.cos().sum(), [*model.parameters()])])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-8)


@few
@given(
    st.lists(small, max_size=3),
    sizes,
    sizes,
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=2, max_size=2),
)
def test_linear_maps_of_activations(leading, size, num_outputs, signed, dtype, mapped) -> None:
    inputs = [normal(*leading, size, dtype=dtype), normal(num_outputs, size, dtype=dtype)]

    def by_torch(inputs: Tensor, weight: Tensor) -> Tensor:
        return functional.linear(torch.tanh(inputs) if signed else torch.sigmoid(inputs), weight)

    by_loop = partial(native.activated_linear, signed=signed)
    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(st.lists(small, max_size=3), sizes, dtypes, st.lists(st.booleans(), min_size=2, max_size=2))
def test_tangents_and_log_decays(leading, size, dtype, mapped) -> None:
    inputs = [3 * normal(*leading, size, dtype=dtype), normal(size, dtype=dtype)]
    assert_same(torch.tanh, native.hyperbolic_tangent, inputs[:1])
    assert_same_mapped(torch.tanh, native.hyperbolic_tangent, inputs[:1], mapped[:1])

    def by_torch(inputs: Tensor, bias: Tensor) -> Tensor:
        return -(inputs + bias).clamp_max(1.5).exp()

    by_loop = partial(native.log_decays, most=1.5)
    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(
    st.lists(small, max_size=3),
    small,
    sizes,
    st.sampled_from([1.0, 1e-14]),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=7, max_size=7),
)
def test_terms_of_rwkv7(leading, heads, size, magnitude, whole, dtype, mapped) -> None:
    width = heads * size
    inputs = [normal(*leading, width, dtype=dtype) for _ in range(3)]
    inputs += [normal(width, dtype=dtype) for _ in range(4)]
    for place in (0, 3):  # by a head of hardly any length gradients are large, and cancel
        inputs[place] = inputs[place] + inputs[place].sign() / 2
    inputs[3] = magnitude * inputs[3]

    def by_torch(*inputs: Tensor) -> tuple[Tensor, ...]:
        decays, removals, rates, keys = terms_of(*inputs, heads=heads)
        return (decays, removals, *((rates,) if whole else ()), keys, rates * removals)

    def by_loop(*inputs: Tensor) -> tuple[Tensor, ...]:
        found = native.removing_terms(*inputs, heads=heads, fastest=FASTEST_DECAY)
        return found if whole else (*found[:2], *found[3:])

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(
    st.tuples(small, lengths, sizes),
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.integers(0, 9),
)
def test_weighted_averages(shape, begins, dtype, mapped, seed) -> None:
    seeded(seed)
    words, _, width = shape
    inputs = [normal(*shape, dtype=dtype) for _ in range(3)]
    inputs += [-(3 * torch.rand(width, dtype=dtype)), normal(width, dtype=dtype)]
    inputs.append(torch.rand(words, 2, width, dtype=dtype) + 0.1)
    exponents = normal(words, width, dtype=dtype)
    if begins:
        inputs[-1] = torch.zeros_like(inputs[-1])
        exponents = torch.full_like(exponents, BEFORE_ALL)

    def by_torch(keys, values, gates, log_decays, bonuses, sums):
        read, last = wkv_scan(keys, values, log_decays, Sums(sums, exponents))
        largest = torch.maximum(read.exponents, bonuses + keys).detach()
        kept, own = (read.exponents - largest).exp(), (bonuses + keys - largest).exp()
        above, below = read.scaled.unbind(-2)
        outputs = (kept * above + own * values) / (kept * below + own)
        return torch.sigmoid(gates) * outputs, last.scaled

    def by_loop(*inputs: Tensor) -> tuple[Tensor, ...]:
        return native.weighted_averages(*inputs, exponents)[:2]

    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(
    st.lists(small, max_size=3),
    small,
    norm_sizes,
    st.booleans(),
    dtypes,
    st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_outputs_of_heads(leading, heads, size, within, dtype, mapped) -> None:
    inputs = [normal(*leading, heads, size, dtype=dtype) for _ in range(4)]
    inputs.append(normal(*leading, heads * size, dtype=dtype))
    inputs.append(normal(heads, size, dtype=dtype))
    inputs += [normal(heads * size, dtype=dtype) for _ in range(2)]

    def by_torch(read, queries, keys, values, gates, bonuses, gains, biases):
        own = (queries * bonuses * keys).sum(-1, keepdim=True) * values
        normed = functional.layer_norm(read + own if within else read, (size,), eps=64e-5)
        normed = normed.flatten(-2) * gains + biases
        return functional.silu(gates) * normed if within else gates * (normed + own.flatten(-2))

    by_loop = partial(native.gated_heads, epsilon=64e-5, within=within)
    assert_same(by_torch, by_loop, inputs)
    assert_same_mapped(by_torch, by_loop, inputs, mapped)


@few
@given(st.tuples(small, small, sizes), st.tuples(small, small, sizes), dtypes, st.booleans())
def test_queries_and_keys_of_unit_length(shape, parts, dtype, partly) -> None:
    *leading, width = shape
    queries, keys, values = parts
    sizes = (queries * width, keys * width, values)
    rows = normal(*leading, sum(sizes), dtype=dtype)

    def by(kernel: Any) -> Function:
        def split(rows: Tensor) -> tuple[Tensor, ...]:
            found = queries_keys_values(rows, sizes, width, kernel=kernel)
            return found[:2] if partly else found  # what nobody reads has no gradient

        return split

    assert_same(by("torch"), by("native"), [rows])
    assert_same_mapped(by("torch"), by("native"), [rows], [True])


@given(st.integers(0, 4), st.integers(1, 6), st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_window_of_a_convolution(before, steps, activated) -> None:
    layer = ShortConvolution(3, before + 1, torch.nn.SiLU() if activated else None)
    inputs, window = torch.randn(2, steps, 3), torch.randn(2, before, 3)
    expected = layer.scan(inputs, window)
    layer.kernel = "native"
    for mine, theirs in zip(layer.scan(inputs, window), expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_numbers_that_are_not_finite_stay_so() -> None:
    inputs = torch.tensor([[1.0, torch.nan], [1.0, torch.inf], [1.0, 2.0]])
    normed = native.normalised(inputs, epsilon=1e-6, largest=LARGEST_SQUARED)
    expected = rms_norm(inputs)
    assert torch.equal(normed.isfinite().all(1), expected.isfinite().all(1))
    filters, window = torch.ones(2, 1), torch.zeros(1, 0, 2)
    activated = native.convolution(inputs[None], window, filters, None, activated=True)
    torch.testing.assert_close(activated[0], functional.silu(inputs), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_exponential_at_every_magnitude(dtype) -> None:
    """By the activation of a convolution with one weight of 1."""
    numbers = torch.cat([torch.linspace(-100, 100, 2001), torch.logspace(-9, 2, 50)]).to(dtype)
    inputs = numbers.view(1, -1, 1)
    ones, window = torch.ones(1, 1, dtype=dtype), torch.zeros(1, 0, 1, dtype=dtype)
    found = native.convolution(inputs, window, ones, None, activated=True).view(-1)
    expected = functional.silu(numbers)
    torch.testing.assert_close(found, expected, rtol=4 * torch.finfo(dtype).eps, atol=1e-36)


# --- models ---

SMALL: dict[str, object] = {"width": 12, "heads": 2, "key_dim": 4, "value_dim": 3, "state": 5}
WITH_LOOPS = [
    name for name in sorted(MODELS) if "kernel" in MODELS[name].settings_class.model_fields
]


def make(name: str, kernel: str, **options: object) -> SequenceModel:
    kind = MODELS[name]
    fields = kind.settings_class.model_fields
    chosen = {key: value for key, value in SMALL.items() if key in fields}
    model_settings = kind.settings_class(**{**chosen, **options, "kernel": kernel})
    model = kind(model_settings, num_symbols=5, num_labels=4).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def test_where_torch_alone_finds_batching_rules_a_population_computes_the_same(monkeypatch) -> None:
    found = []
    for known in (True, False):
        monkeypatch.setattr("statetrack.ops.lanes.KNOWS_VMAP", known)
        torch.manual_seed(0)
        models = [make("gated-deltanet", "native") for _ in range(2)]
        weights, buffers = stack_module_state(models)
        symbols = torch.randint(5, (2, 3, 19))

        def run(values, words, model=models[0]):
            return functional_call(model, values, (words,))

        logits = vmap(run)({**weights, **buffers}, symbols)
        logits.square().sum().backward()
        found.append([logits, *(weight.grad for weight in weights.values())])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("name", WITH_LOOPS)
def test_a_population_by_loops_is_one_by_torch(name) -> None:
    symbols = torch.randint(5, (2, 3, 19))
    found = []
    for kernel in ("torch", "native"):
        torch.manual_seed(0)
        models = [make(name, kernel) for _ in range(2)]
        weights, buffers = stack_module_state(models)

        def run(values, words, model=models[0]):
            return functional_call(model, values, (words,))

        together = models[0].vectorises_on(torch.device("cpu"))
        if together:
            logits = vmap(run)({**weights, **buffers}, symbols)
        else:
            own = [dict(model.named_parameters()) for model in models]
            logits = torch.stack(
                [model(words) for model, words in zip(models, symbols, strict=True)]
            )
        logits.square().sum().backward()
        parameters = {
            key: value.grad if together else torch.stack([each[key].grad for each in own])
            for key, value in weights.items()
        }
        found.append((logits, parameters))
    (expected, theirs), (logits, mine) = found
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-9)
    for key, parameter in theirs.items():
        if parameter is None:
            assert mine[key] is None, key
            continue
        scale = 1 + parameter.abs().max()
        torch.testing.assert_close(mine[key] / scale, parameter / scale, rtol=0, atol=1e-9, msg=key)


@pytest.mark.parametrize(
    "name", [name for name in WITH_LOOPS if issubclass(MODELS[name], RecurrentModel)]
)
def test_a_word_by_loops_can_be_cut_anywhere(name) -> None:
    torch.manual_seed(0)
    model, symbols = make(name, "native"), torch.randint(5, (3, 19))
    with torch.no_grad():
        whole, _ = model.scan(symbols, model.initial_state(3))
        early, state = model.scan(symbols[:, :2], model.initial_state(3))
        late, state = model.scan(symbols[:, 2:18], state)
        step, _ = model.step(symbols[:, 18], state)
    pieces = torch.cat([early, late, step.unsqueeze(1)], 1)
    torch.testing.assert_close(pieces, whole, rtol=1e-9, atol=1e-9)


# --- where loops run ---


def test_a_choice_without_loops(monkeypatch) -> None:
    monkeypatch.setattr(calls, "_missing", lambda: "numba is not installed (pip install numba)")
    cpu = torch.device("cpu")
    assert ops.kernel_for("auto", cpu) == "torch"
    with pytest.raises(SettingsError, match=r"numba is not installed.*take kernel=.auto."):
        ops.kernel_for("native", cpu)
    model = make("deltanet", "auto")
    assert model.kernel_on(cpu) == "torch"
    model(torch.randint(5, (2, 3)))


def test_without_numba_torch_computes(shared_folder: SharedFolder) -> None:
    told = said_without_numba(shared_folder)["kernel"]
    assert told == "torch numba is not installed (pip install numba)"


def test_choices_on_devices_and_types() -> None:
    cpu, meta = torch.device("cpu"), torch.device("meta")
    assert ops.kernel_for("auto", cpu) == ops.kernel_for("native", cpu) == "native"
    assert ops.kernel_for("auto", cpu, torch.bfloat16) == "torch"
    assert ops.kernel_for("auto", meta) == ops.kernel_for("torch", cpu) == "torch"
    with pytest.raises(SettingsError, match=r"the device is meta"):
        ops.kernel_for("native", meta)
    with pytest.raises(SettingsError, match=r"not torch\.bfloat16"):
        ops.kernel_for("native", cpu, torch.bfloat16)


@pytest.mark.parametrize("name", WITH_LOOPS)
def test_shapes_without_values(name) -> None:
    model = make(name, "auto").to("meta")
    assert model(torch.zeros(2, 5, dtype=torch.long, device="meta")).shape == (2, 5, 4)


@pytest.mark.parametrize("name", ["deltanet", "gated-deltanet"])
def test_autocast_gives_what_it_gives_with_torch(name) -> None:
    symbols, found = torch.randint(5, (2, 3)), []
    for kernel in ("torch", "native"):
        torch.manual_seed(0)
        model = make(name, kernel).float()
        with torch.autocast("cpu", torch.bfloat16):
            found.append(model(symbols).float())
    torch.testing.assert_close(*found, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("function", ["delta_rule"])
def test_without_gradients_nothing_is_kept(function) -> None:
    """The peak of what numpy and torch hold does not grow with the number of positions."""
    words, heads, size = 2, 2, 16
    state = torch.zeros(words, heads, size, size)
    assert states_kept(state, 10_000, 0, False).numel() == 0
    assert states_kept(state, 10_000, 0, True).numel() == state.numel() * 624


LOOP = """
from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import up_to
from statetrack.ops.loops.memory import at, put


@loop
def double(numbers, found, count):
    for n in up_to(count):
        put(found, n, at(numbers, n) + at(numbers, n))
"""


@pytest.fixture
def cache_folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """Where numba is told to keep machine code."""
    import numba

    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
        numba.config.reload_config()
        yield tmp_path / "kept"
    numba.config.reload_config()


def double(folder: Path) -> bool:
    """Double numbers by a loop of a file of its own, as after a start of the process.

    Whether it was compiled, and not found on disk.
    """
    from statetrack.ops.loops import compiling

    folder.mkdir(exist_ok=True)
    file = folder / "doubling.py"
    file.write_text(LOOP)
    spec = importlib.util.spec_from_file_location("doubling", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    numbers, found = torch.arange(3.0), torch.zeros(3)
    compiling._announce.cache_clear()
    module.double(numbers, found, 3)
    assert found.tolist() == [0, 2, 4]
    return compiling._announce.cache_info().currsize == 1


def test_the_first_compilation_is_announced_and_only_that(tmp_path, cache_folder) -> None:
    case = unittest.TestCase()
    with case.assertLogs("statetrack", "INFO") as told:
        assert double(tmp_path)
    (line,) = (record.getMessage() for record in told.records)
    assert line == "compiling loops for this machine, once: 5 to 20 seconds"
    with case.assertNoLogs("statetrack", "INFO"):
        assert not double(tmp_path)


def test_a_loop_takes_tensors_of_one_type_only(tmp_path) -> None:
    from statetrack.ops.loops import compiling

    numbers, found = torch.zeros(3), torch.zeros(3, dtype=torch.float64)
    with pytest.raises(AssertionError, match="tensors of one type"):
        compiling.loop(lambda *given: None)(numbers, found, 3)


def test_another_checkout_uses_the_machine_code_of_the_same_loops(tmp_path, cache_folder) -> None:
    assert [double(tmp_path / name) for name in ("one", "two")] == [True, False]
    (folder,) = (cache_folder / "statetrack" / "loops").iterdir()
    assert list(folder.glob("doubling*.nbi"))
    assert not [*tmp_path.glob("one/**/*.nbi"), *tmp_path.glob("two/**/*.nbi")]


def test_machine_code_of_other_loops_is_not_used(tmp_path, cache_folder, monkeypatch) -> None:
    from statetrack.ops.loops import compiling

    for version, compiles in (("a", True), ("b", True), ("a", False)):
        monkeypatch.setattr(compiling, "_fingerprint", lambda version=version: version * 64)
        assert double(tmp_path) == compiles


def test_folders_of_other_loops_are_kept_that_were_used_last(
    tmp_path, cache_folder, monkeypatch
) -> None:
    from statetrack.ops.loops import compiling

    folder = cache_folder / "statetrack" / "loops"
    for used in range(compiling._FOLDERS + 2):
        (folder / str(used) / "code").mkdir(parents=True)
        os.utime(folder / str(used), (used, used))
    double(tmp_path)
    kept = {path.name for path in folder.iterdir()} - {compiling._fingerprint()[:16]}
    assert kept == {str(used) for used in range(3, compiling._FOLDERS + 2)}


@pytest.mark.skipif(sys.platform != "linux", reason="the variables are those of Linux")
def test_machine_code_is_in_the_users_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert [double(tmp_path) for _ in range(2)] == [True, False]
    assert list((tmp_path / "user" / "statetrack" / "loops").rglob("doubling*.nbi"))


def test_machine_code_that_no_folder_keeps_is_computed_by(tmp_path, cache_folder) -> None:
    cache_folder.write_text("a file where a folder is wanted")
    with unittest.TestCase().assertLogs("statetrack", "DEBUG") as told:
        assert not double(tmp_path)
    assert any("compiled loops are not kept" in line for line in told.output)


def test_processes_that_compile_at_once_do_not_mix_types(tmp_path, cache_folder) -> None:
    """Two compile for types in another order, and each type's code gets a file of its own."""
    types = [torch.float32, torch.float64]

    def double_all(given: list[torch.dtype]) -> None:
        sys.path.insert(0, str(tmp_path))
        double = importlib.import_module("doubling").double
        for dtype in given:
            numbers, found = torch.arange(3, dtype=dtype), torch.zeros(3, dtype=dtype)
            double(numbers, found, 3)
            assert found.tolist() == [0, 2, 4]

    (tmp_path / "doubling.py").write_text(LOOP)
    ended = run_at_once([partial(double_all, types), partial(double_all, types[::-1])])
    assert [each.code for each in ended] == [0, 0], ended
    assert len(list(cache_folder.rglob("doubling*.nbc"))) == 2


# --- what a loop is not given ---


@pytest.mark.parametrize("kernel", ["torch", "native"])
@pytest.mark.parametrize("name", ["bilinear", "bilinear-cp", "lstm", "transformer", "gla"])
def test_second_derivatives_are_right_or_refused(name, kernel) -> None:
    """Also of what is linear in the logits, whose incoming gradient depends on no weight."""
    model = MODELS[name](MODELS[name].settings_class(kernel=kernel), num_symbols=3, num_labels=2)
    model.double()
    weight, symbols = model.readout.weight, torch.randint(3, (2, 4))
    other = next(part for part in model.parameters() if part is not weight)

    def slope(change: float) -> Tensor:
        moved = {"readout.weight": weight + change}
        logits = functional_call(model, moved, (symbols,))
        return torch.autograd.grad(logits[..., 0].sum(), other, create_graph=True)[0].sum()

    try:
        slope(0).backward()
    except RuntimeError as problem:
        assert "second derivatives" in str(problem)
        return
    found = weight.grad
    difference = (slope(1e-5) - slope(-1e-5)) / 2e-5
    torch.testing.assert_close(found.sum(), difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["bilinear-cp", "lstm", "transformer"])
def test_derivatives_by_torch_func_need_torchs_kernel(name) -> None:
    """With `auto` they get it; loops refuse them in one sentence."""
    settings_class = MODELS[name].settings_class
    model = MODELS[name](settings_class(), num_symbols=3, num_labels=2)
    symbols, weights = torch.randint(3, (2, 4)), dict(model.named_parameters())

    def loss(weights: dict[str, Tensor]) -> Tensor:
        return functional_call(model, weights, (symbols,)).square().sum()

    found = torch.func.grad(loss)(weights)
    loss(weights).backward()
    for key, part in weights.items():
        torch.testing.assert_close(found[key], part.grad, rtol=1e-3, atol=1e-4)
    model = MODELS[name](settings_class(kernel="native"), num_symbols=3, num_labels=2)
    with pytest.raises(SettingsError, match=r"no derivatives by torch\.func"):
        torch.func.grad(loss)(dict(model.named_parameters()))


@pytest.mark.parametrize("hidden", [1, 3, 16])
def test_matrices_by_symbol_may_have_their_symbols_last_in_memory(hidden) -> None:
    symbols = torch.randint(4, (2, 3, 6))
    first, readout = torch.randn(2, 2, 3, hidden, dtype=torch.float64)
    weights = torch.randn(2, hidden, hidden, 4, dtype=torch.float64)
    found = []
    for kernel in ("native", "torch"):
        given = weights.clone().requires_grad_()
        operators = ops.DenseOperators(given.movedim(-1, 1))
        logits, _ = operators.read(symbols, first, readout, kernel=kernel)
        logits.square().sum().backward()
        found.append(given.grad)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    "name, weight", [("minmax", "blocks.0.mixer.mlp.1.gate"), ("rwkv6", "blocks.0.mixer.decay")]
)
def test_what_is_no_number_stays_none(name, weight) -> None:
    """A replica whose weights are NaN has no answer, however many rows a loop reads."""
    found = []
    for kernel in ("native", "torch"):
        settings = MODELS[name].settings_class(kernel=kernel, width=8)
        torch.manual_seed(0)
        model = MODELS[name](settings, num_symbols=3, num_labels=2)
        layer = model.get_submodule(weight)
        with torch.no_grad():
            (layer.weight if name == "minmax" else layer.bias).fill_(torch.nan)
        found.append(model(torch.zeros(16, 40, dtype=torch.int64)).isnan())
    assert found[0][:, 1:].all()
    assert torch.equal(*found)
