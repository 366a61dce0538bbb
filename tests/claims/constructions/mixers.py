"""The gates of each mixer as functions of its inputs: one setter for each kind of layer.

N inputs (one for every context), D width, E channels, J numbers of a component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from statetrack.sources import Floats
from tests.claims.constructions.base import (
    OPEN,
    SHUT,
    aim,
    identity_convolution,
    put,
    silu_preimage,
)
from tests.claims.constructions.stacks import Wanted

LONG = 1000.0
"""A time step after which nothing is left: exp(-1000) is 0 in float64."""

ONE = float(silu_preimage(np.ones(1))[0])
"""silu(x) = 1."""

ONE_OF_GELU = 1.1447
"""gelu(x) is 1, to within a thousandth; the readout is solved for what it gives."""


def unit_columns(linear: nn.Linear, begin: int, count: int) -> None:
    """Let output coordinates `begin ..` be the first `count` inputs."""
    weight = np.zeros(linear.weight.shape)
    weight[begin : begin + count, :count] = np.eye(count)
    put(linear.weight, weight)


def mamba(mixer: Any, wanted: Wanted, begin: int) -> None:
    """A channel for every number. A gain of 1 is a time step of 0; the least gain is a long one.

    exp(-dt) is then 0, and 2 exp(-dt) - 1 is -1 (Grazzi et al. 2024); it is 0 for dt = log 2, which
    is softplus(0). The first J channels hold the terms, the next N tell contexts apart.
    """
    num_contexts, size = wanted.gains.shape
    logits = np.where(np.isclose(wanted.gains.real, 1), SHUT, LONG)
    if mixer.eigenvalues == "signed":
        logits[np.isclose(wanted.gains.real, 0)] = 0
    terms = wanted.terms.real / np.where(logits == 0, math.log(2), LONG)
    _open_channels(mixer, wanted.inputs, terms)
    channels = _channels(terms, mixer.inward.out_features // 2)
    ones = np.ones((num_contexts, 1))
    rank, state, _ = mixer.sizes
    selected = np.zeros((num_contexts, rank + 2 * state))
    selected[:, :size] = logits
    selected[:, rank : rank + 1] = selected[:, rank + state : rank + state + 1] = ones
    aim(mixer.selection, channels, selected)
    weight = np.zeros(mixer.time_steps.weight.shape)
    weight[:size, :size] = np.eye(size)
    put(mixer.time_steps.weight, weight)
    bias = np.full(mixer.time_steps.bias.shape, SHUT)
    bias[:size] = 0
    put(mixer.time_steps.bias, bias)
    unit_columns(mixer.outward, begin, size)


def aussm(mixer: Any, wanted: Wanted, begin: int) -> None:
    """Four channels for every character: turned either way, fed with each part of the terms.

    A channel's term is real, and its state h is read as Re(C h) with one C for all, here
    exp(i pi / 4). So two channels give the real and the imaginary part of h: p = (Re h - Im h) / r
    and q = (Re h + Im h) / r with r the root of 2. The character less 1 is the h of the real parts
    of the terms plus i times that of the imaginary parts: only the sums are bounded.
    """
    step = 10.0
    terms = np.concatenate([wanted.terms.real] * 2 + [wanted.terms.imag] * 2, 1) / step
    angles = np.angle(wanted.gains)
    turns = np.concatenate([angles, -angles, angles, -angles], 1)  # [N, 4 J]
    size = terms.shape[1]
    width = mixer.skip.numel()
    _open_channels(mixer, wanted.inputs, terms)
    convolved = silu_preimage(_channels(terms, width))
    solved = np.linalg.lstsq(convolved, turns, rcond=1e-12)[0]
    weight = np.zeros(mixer.angles.weight.shape)
    weight.reshape(width, -1, width)[:size, 0] = solved.T * math.sqrt(width)
    put(mixer.angles.weight, weight)
    bias = (step + math.log(-math.expm1(-step))) / 2  # it is added twice
    put(mixer.time_steps.bias, np.full(width, bias))
    one = math.log(math.expm1(1.0))
    put(
        mixer.writings,
        np.stack([np.full(mixer.writings.shape[1], one), 0 * mixer.writings[0].detach().numpy()]),
    )
    reading = np.zeros(mixer.readings.shape)
    reading[0], reading[1] = SHUT, math.pi / 4
    reading[0, 0] = one
    put(mixer.readings, reading)
    count = size // 4
    combined = np.zeros(mixer.outward.weight.shape)
    of_p, of_q, of_p_imaginary, of_q_imaginary = (
        np.arange(part * count, (part + 1) * count) for part in range(4)
    )
    real, imaginary = begin + np.arange(count), begin + count + np.arange(count)
    combined[real, of_p] = combined[real, of_q] = combined[real, of_p_imaginary] = 1
    combined[real, of_q_imaginary] = combined[imaginary, of_p] = -1
    combined[imaginary, of_q] = combined[imaginary, of_p_imaginary] = 1
    combined[imaginary, of_q_imaginary] = 1
    put(mixer.outward.weight, combined / math.sqrt(2))


def _channels(terms: Floats, num_channels: int) -> Floats:
    """The activations of a selective layer's channels: the terms, and a unit vector each."""
    num_contexts, size = terms.shape
    channels = np.zeros((num_contexts, num_channels))
    channels[:, :size] = terms
    channels[:, size : size + num_contexts] = np.eye(num_contexts)
    return channels


def _open_channels(mixer: Any, inputs: Floats, terms: Floats) -> None:
    """Solve a selective layer's projection for its channels, and open the gates of the terms."""
    num_channels = mixer.inward.out_features // 2
    channels = _channels(terms, num_channels)
    gates = np.zeros_like(channels)
    gates[:, : terms.shape[1]] = ONE
    aim(mixer.inward, inputs, np.column_stack([silu_preimage(channels), gates]))
    identity_convolution(mixer.convolution.filters)


def mamba2(mixer: Any, wanted: Wanted, begin: int) -> None:
    """One head whose channels are the numbers: a time step of 0 keeps them, a long one resets."""
    size, inner = wanted.terms.shape[1], mixer.sizes[0]
    num_contexts = len(wanted.inputs)
    gate, x = np.zeros((2, num_contexts, inner))
    gate[:, :size] = ONE
    x[:, :size] = silu_preimage(wanted.terms / LONG)
    ones = np.full((num_contexts, mixer.sizes[1] * 2), ONE)
    steps = np.where(wanted.gains[:, :1] == 1, SHUT, LONG)
    aim(mixer.inward, wanted.inputs, np.column_stack([gate, x, ones, steps]))
    identity_convolution(mixer.convolution.filters)
    unit_columns(mixer.outward, begin, size)


def mamba3(mixer: Any, wanted: Wanted, begin: int) -> None:
    """As Mamba-2: nothing is turned, since a time step of 0 also turns by nothing."""
    size, inner = wanted.terms.shape[1], mixer.sizes[0]
    num_contexts = len(wanted.inputs)
    gate, x = np.zeros((2, num_contexts, inner))
    gate[:, :size] = ONE
    x[:, :size] = wanted.terms / LONG
    rest = [np.zeros((num_contexts, count)) for count in mixer.sizes[2:]]
    rest[2][:] = np.where(wanted.gains[:, :1] == 1, SHUT, LONG)  # time steps
    rest[3][:] = OPEN  # rates
    rest[4][:] = OPEN  # the rule: the end of the step
    aim(mixer.inward, wanted.inputs, np.column_stack([gate, x, *rest]))
    first = np.zeros(mixer.writing_bias.shape)
    first[:, 0] = 1
    put(mixer.writing_bias, first)
    put(mixer.reading_bias, first)
    unit_columns(mixer.outward, begin, size)


def mamba3_turns(mixer: Any, wanted: Wanted, begin: int) -> None:
    """A pair of rows for every character, and two heads, which read its two rows.

    Time steps are 1 and rates 0, so that nothing decays. Each head has two channels: for the real
    and the imaginary part of the terms. The character less 1 is the h of the first plus i times
    that of the second.
    """
    num_contexts, count = wanted.gains.shape
    heads, size = mixer.head_shape
    inner, pairs = mixer.sizes[0], mixer.sizes[-1]
    x, gate = np.zeros((2, num_contexts, heads, size))
    x[:, : 2 * count, 0] = np.repeat(wanted.terms.real, 2, axis=1)
    x[:, : 2 * count, 1] = np.repeat(wanted.terms.imag, 2, axis=1)
    gate[:, : 2 * count, :2] = ONE
    rest = [np.zeros((num_contexts, part)) for part in mixer.sizes[2:]]
    rest[3][:] = SHUT  # rates
    rest[4][:] = OPEN  # the rule: the end of the step
    share = np.clip(-np.angle(wanted.gains) / math.pi, -1 + 1e-16, 1 - 1e-16)
    rest[5][:, :count] = np.where(
        np.abs(share) > 1 - 1e-12, np.sign(share) * OPEN, np.arctanh(share)
    )
    flat = [each.reshape(num_contexts, inner) for each in (gate, x)]
    aim(mixer.inward, wanted.inputs, np.column_stack([*flat, *rest]))
    put(mixer.time_step_bias, np.full(heads, math.log(math.expm1(1.0))))
    writing, reading = np.zeros((2, heads, mixer.writing_bias.shape[1]))
    for head in range(2 * count):
        writing[head, head - head % 2] = reading[head, head] = 1
    put(mixer.writing_bias, writing)
    put(mixer.reading_bias, reading)
    weight = np.zeros((mixer.outward.out_features, heads, size))
    for character in range(count):
        real, imaginary = begin + character, begin + count + character
        weight[real, 2 * character, 0], weight[real, 2 * character + 1, 1] = 1, -1
        weight[imaginary, 2 * character + 1, 0] = weight[imaginary, 2 * character, 1] = 1
    put(mixer.outward.weight, weight.reshape(len(weight), inner))
    assert pairs >= count


def gla(mixer: Any, wanted: Wanted, begin: int) -> None:
    """One head with one row, whose gate and key are 1 and 0, or 0 and 1."""
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keeps = wanted.gains[:, :1] == 1
    values = np.zeros((len(keeps), width))
    values[:, :size] = wanted.terms
    keys = (~keeps).astype(float)
    aim(mixer.projection.linear, wanted.inputs, np.column_stack([np.ones_like(keys), keys, values]))
    aim(mixer.gate[0], wanted.inputs, np.where(keeps, OPEN, SHUT))
    put(mixer.gate[1].weight, [[mixer.slowness]])
    aim(mixer.output_gate, wanted.inputs, np.ones((len(keeps), width)))
    unit_columns(mixer.output, begin, size)


def rwkv6(mixer: Any, wanted: Wanted, begin: int) -> None:
    """One head: its first row is kept or reset. A read is of the state before the position.

    So it is read where the position keeps it; where it resets it, the symbol says all.
    """
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keeps = wanted.gains[:, 0] == 1
    receptance, key, value = np.zeros((3, len(keeps), width))
    receptance[:, 0] = keeps
    key[:, 0] = ~keeps
    value[:, :size] = wanted.terms
    aim(mixer.receptance, wanted.inputs, receptance)
    aim(mixer.key, wanted.inputs, key)
    aim(mixer.value, wanted.inputs, value)
    aim(mixer.gate, wanted.inputs, np.ones((len(keeps), width)))
    inner = np.zeros((len(keeps), mixer.decay.inner.out_features))
    inner[:, 0] = np.where(keeps, -OPEN, OPEN)  # tanh is -1 or 1
    aim(mixer.decay.inner, wanted.inputs, inner)
    outer = np.zeros(mixer.decay.outer.weight.shape)
    outer[:, 0] = 410.0
    put(mixer.decay.outer.weight, outer)
    put(mixer.decay.bias, np.full(width, -390.0))
    unit_columns(mixer.output, begin, size)


def mlstm(mixer: Any, wanted: Wanted, begin: int) -> None:
    """One head: a reset writes the value with key e_0 at an input gate of 1; else it is shut.

    The keys' next coordinate says that the state is kept, and only the gates see it.
    """
    num_contexts, size = wanted.terms.shape
    inner = mixer.inner
    keeps = wanted.gains[:, 0] == 1
    upper = np.zeros((num_contexts, inner))
    upper[:, :num_contexts] = np.eye(num_contexts)
    gate = np.full((num_contexts, inner), ONE)
    aim(mixer.up, wanted.inputs, np.column_stack([upper, gate]))
    identity_convolution(mixer.convolution.filters)
    mixed = upper / (1 + np.exp(-upper))
    queries, keys, values = np.zeros((3, num_contexts, inner))
    queries[:, 0] = 1
    keys[:, 0] = math.sqrt(inner)
    keys[:, 1] = keeps
    values[:, :size] = wanted.terms
    pair = np.linalg.lstsq(mixed, np.column_stack([queries, keys]), rcond=1e-12)[0]
    put(mixer.queries_and_keys.weight, pair[None])
    put(mixer.values.weight, np.linalg.lstsq(upper, values, rcond=1e-12)[0][None])
    weight = np.zeros(mixer.gates.weight.shape)
    kept = OPEN if mixer.forget_kind == "sigmoid" else 0.0
    weight[:, inner + 1] = SHUT, kept - SHUT
    put(mixer.gates.weight, weight)
    put(mixer.gates.bias, [0.0, SHUT])
    unit_columns(mixer.down, begin, size)


def minmax(mixer: Any, wanted: Wanted, begin: int) -> None:
    """Bounds far apart keep a number; two equal bounds reset it. Before them nothing is added."""
    keeps = wanted.gains == 1
    far = np.full(keeps.shape, 10.0)
    upper, lower = np.where(keeps, far, wanted.terms), np.where(keeps, -far, wanted.terms)
    with torch.no_grad():
        inputs = mixer.norm(torch.from_numpy(wanted.inputs)).numpy()
    aim(mixer.inward, inputs, np.column_stack([upper, lower, 0 * far + OPEN]))
    unit_columns(mixer.outward, begin, keeps.shape[1])


def min_gru(mixer: Any, wanted: Wanted, begin: int) -> None:
    """A gate of 0 keeps a number, one of 1 puts the candidate g(u) in its place."""
    size = wanted.terms.shape[1]
    inner = mixer.outward.in_features
    candidates, gates = np.full((2, len(wanted.inputs), inner), -OPEN)
    gates[:, :size] = np.where(wanted.gains == 1, SHUT, OPEN)
    below = np.clip(wanted.terms, 1e-26, 0.5)  # g is the logistic function there
    logits = np.log(below / (1 - below))
    candidates[:, :size] = np.where(wanted.terms >= 0.5, wanted.terms - 0.5, logits)
    aim(mixer.inward, wanted.inputs, np.column_stack([candidates, gates]))
    unit_columns(mixer.outward, begin, size)


def hgrn(mixer: Any, wanted: Wanted, begin: int) -> None:
    """A forget gate of 1 keeps a number; one of 0 takes the input in its place. Phases are 0."""
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    parts = mixer.inputs.out_features // width
    forget = np.full((len(wanted.inputs), width), OPEN)
    forget[:, :size] = np.where(wanted.gains == 1, OPEN, SHUT)
    values = np.zeros((len(forget), parts * width))
    values[:, :size] = silu_preimage(wanted.terms)
    aim(mixer.forget, wanted.inputs, forget)
    aim(mixer.inputs, wanted.inputs, values)
    aim(mixer.output_gate, wanted.inputs, np.full(values.shape, ONE))
    unit_columns(mixer.output, begin, size)


def rg_lru(mixer: Any, wanted: Wanted, begin: int) -> None:
    """A gate that is shut keeps a number; one that is open takes the input in its place.

    Gates depend on the convolution's outputs, whose first J channels hold the terms and whose next
    N tell contexts apart.
    """
    size = wanted.terms.shape[1]
    channels = _channels(wanted.terms.real, mixer.rates.numel())
    aim(mixer.inward, wanted.inputs, channels)
    identity_convolution(mixer.convolution.filters)
    forget = np.full(channels.shape, OPEN)
    forget[:, :size] = np.where(np.isclose(wanted.gains.real, 1), SHUT, OPEN)
    put(mixer.forgetting.blocks[0], np.linalg.lstsq(channels, forget, rcond=1e-12)[0])
    put(mixer.rates, np.full(channels.shape[1], LONG))
    put(mixer.writing.bias, np.full(channels.shape[1], OPEN))
    put(mixer.gate.bias, np.full(channels.shape[1], ONE_OF_GELU))
    unit_columns(mixer.outward, begin, size)


def hgrn2(mixer: Any, wanted: Wanted, begin: int) -> None:
    """One head: its first row is kept by a forget gate of 1, and written by one of 0."""
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keeps = wanted.gains[:, 0] == 1
    forget = np.full((len(keeps), width), OPEN)
    forget[:, 0] = np.where(keeps, OPEN, SHUT)
    query, value = np.zeros((2, len(keeps), width))
    query[:, 0] = ONE
    value[:, :size] = wanted.terms
    aim(mixer.query, wanted.inputs, query)
    aim(mixer.forget, wanted.inputs, forget)
    aim(mixer.value, wanted.inputs, value)
    unit_columns(mixer.output, begin, size)


def rwkv7(mixer: Any, wanted: Wanted, begin: int) -> None:
    """One head, nothing decays: a reset removes the first row and writes another in its place."""
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    receptance, key, value = np.zeros((3, len(wanted.inputs), width))
    receptance[:, 0] = 1
    key[:, 0] = wanted.gains[:, 0] != 1
    value[:, :size] = wanted.terms
    aim(mixer.receptance, wanted.inputs, receptance)
    aim(mixer.key, wanted.inputs, key)
    aim(mixer.value, wanted.inputs, value)
    put(mixer.decay.bias, np.full(width, SHUT))
    put(mixer.rate.bias, np.full(width, OPEN))
    put(mixer.removal, np.ones(width))
    gate = np.zeros(mixer.gate.outer.weight.shape)
    gate[:, 0] = 2.0  # the sigmoid of 0 is 1/2
    put(mixer.gate.outer.weight, gate)
    unit_columns(mixer.output, begin, size)


def delta(mixer: Any, wanted: Wanted, begin: int) -> None:
    """One head: a beta of 1 replaces the first row of the state, one of 0 keeps all of it."""
    size, num_contexts = wanted.terms.shape[1], len(wanted.inputs)
    keeps = wanted.gains[:, :1] == 1
    queries, keys, values = (np.zeros((num_contexts, count)) for count in mixer.sizes)
    queries[:, 0] = keys[:, 0] = LONG
    values[:, :size] = silu_preimage(wanted.terms)
    aim(mixer.project, wanted.inputs, np.column_stack([queries, keys, values]))
    identity_convolution(mixer.convolution.filters)
    beta = np.where(keeps, SHUT, OPEN if mixer.beta_range == 1 else 0.0)
    betas = np.full((num_contexts, mixer.betas.out_features), SHUT)
    betas[:, :1] = beta
    aim(mixer.betas, wanted.inputs, betas)
    open_delta(mixer, wanted.inputs)
    unit_columns(mixer.output, begin, size)


def open_delta(mixer: Any, inputs: Floats) -> None:
    """Let nothing decay in a delta rule, and let all outputs through."""
    if hasattr(mixer, "steps"):  # Kimi delta attention: a gate for each row
        put(mixer.bias, np.full(mixer.bias.shape, SHUT))
    elif mixer.forget_gate is not None:
        put(mixer.forget_gate.bias, np.full(mixer.forget_gate.bias.shape, SHUT))
    if isinstance(mixer.gate, nn.Linear):
        aim(mixer.gate, inputs, np.ones((len(inputs), mixer.gate.out_features)))


def rwkv4(mixer: Any, wanted: Wanted, begin: int) -> None:
    """An average in which each new value has e^50 times the weight of all before it together.

    A position that keeps the state has next to no weight, and both sums of the quotient decay
    alike. The position's own value has e^50 times the weight of the sums before it.
    """
    size, width = wanted.terms.shape[1], wanted.inputs.shape[1]
    keys, values = np.zeros((2, len(wanted.inputs), width))
    keys[:] = np.where(wanted.gains[:, :1] == 1, -1e9, 0.0)
    values[:, :size] = wanted.terms
    aim(mixer.key, wanted.inputs, keys)
    aim(mixer.value, wanted.inputs, values)
    put(mixer.log_rates, np.full(width, math.log(50.0)))
    put(mixer.bonus, np.full(width, 50.0))
    unit_columns(mixer.output, begin, size)
