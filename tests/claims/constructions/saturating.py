"""Saturating units: one for each pair of a state and an action (Omlin and Giles 1996).

V symbols, S states, H units.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from statetrack.sources import Floats
from tests.claims.constructions.base import (
    OPEN,
    SHUT,
    BeyondBudget,
    Case,
    NotBuilt,
    inputs_of_mixer,
    one_hot_embedding,
    put,
    read_labels,
)
from tests.claims.constructions.layered import mlstm

GAIN = 12.0
"""How steep units are: tanh(12) differs from 1 by 8e-11, and errors do not add up."""


MOST_UNITS = 256
"""Most units of a scalar LSTM, for which no size is predicted."""


@dataclass(frozen=True, eq=False)
class Units:
    """A threshold network: recurrent `[H, H]`, read `[H, V]` and bias `[H]` of values +1 and -1."""

    recurrent: Floats
    read: Floats
    bias: Floats


def units_of(case: Case) -> Units:
    """A unit for each state and action, on (+1) after the action was read in the state; else -1.

    The last unit is 0 before the first symbol and on after it.
    """
    machine = case.algebra.machine
    delta, actions = machine.delta, machine.actions
    live = np.flatnonzero(machine.live).tolist()
    pairs = list(itertools.product(live, range(len(actions))))
    size = len(pairs) + 1
    recurrent, bias = np.zeros((size, size)), np.zeros(size)
    read = np.zeros((size, case.automaton.num_symbols))
    for unit, (state, action) in enumerate(pairs):
        leads_here = [actions[before][source] == state for source, before in pairs]
        count = sum(leads_here)
        begun = count - 2 if state == machine.automaton.start else count
        recurrent[unit, :-1] = leads_here
        recurrent[unit, -1] = begun
        bias[unit] = count - 1 - begun
        differs = (delta.T != actions[action]).any(axis=1)
        read[unit] = -4.0 * len(pairs) * differs
    bias[-1] = 2.0
    return Units(recurrent, read, bias)


GATES: dict[str, tuple[list[float | None], float]] = {
    # rows of the gates in torch's order: None for the candidate, else how the gate is held
    "rnn": ([None], 1.0),
    "gru": ([30.0, -30.0, None], 1.0),  # reset open, update shut, candidate
    "lstm": ([30.0, -30.0, None, 30.0], float(np.tanh(1.0))),  # input, forget, candidate, output
}


def torch_network(case: Case) -> Any:
    """The units as candidates of a network of torch.nn; its gates are held open or shut."""
    units = units_of(case)
    size = case.size("hidden")
    more = size - len(units.bias)
    if more < 0:
        raise NotBuilt(f"{len(units.bias)} units are known, {size} are predicted")
    recurrent = np.pad(units.recurrent, (0, more))
    read = np.pad(units.read, ((0, more), (0, 0)))
    bias = np.pad(units.bias, (0, more))
    gates, height = GATES[case.model]
    model = case.blank(embed_dim=case.automaton.num_symbols)
    network = model.network
    put(model.embedding.weight, np.eye(case.automaton.num_symbols))
    put(
        network.weight_ih_l0,
        np.vstack([GAIN * read if held is None else 0 * read for held in gates]),
    )
    put(
        network.weight_hh_l0,
        np.vstack([GAIN * recurrent / height if held is None else 0 * recurrent for held in gates]),
    )
    put(
        network.bias_ih_l0,
        np.concatenate([GAIN * bias if held is None else np.full(size, held) for held in gates]),
    )
    read_labels(model, case)
    return model


def second_order(case: Case) -> Any:
    """A unit for each state, on (+1) in it and off (-1) elsewhere; matrices are tables of moves.

    A unit is as far from 0 as `GAIN` before tanh: of all units of states that a symbol leads into
    its state, one is on, or none.
    """
    machine = case.algebra.machine
    size, num_states = case.size("hidden"), len(machine.delta)
    if size < num_states:
        raise NotBuilt(f"{num_states} units are known, {size} are predicted")
    model = case.blank()
    moves = np.zeros((case.automaton.num_symbols, size, size))
    state = np.arange(num_states)
    for symbol in range(case.automaton.num_symbols):
        moves[symbol, machine.delta[:, symbol], state] = GAIN
    put(model.matrices, moves)
    put(model.biases, moves.sum(-1) - GAIN)
    first = np.full(size, -GAIN)
    first[machine.automaton.start] = GAIN
    put(model.first, first)
    read_labels(model, case)
    return model


def scalar_lstm(case: Case) -> Any:
    """The units as the scalar LSTM's candidates, in its last layer and in one head.

    With the forget gate shut and the input gate at exp(0), c / n is the candidate's tanh.
    """
    units = units_of(case)
    size, num_symbols = len(units.bias), case.automaton.num_symbols
    if size > MOST_UNITS:
        raise BeyondBudget(f"{size} units")
    if "width" in case.sizes:
        model = case.blank(norm="rms")
        head = model.blocks[-1].mixer.recurrent.shape[1]
    else:
        head = size + num_symbols
        model = case.blank(width=head, heads=1, norm="rms", projection_block=1)
    if head < max(size, num_symbols):
        raise NotBuilt(f"a head has {head} units, and {size} are known")
    mixer = model.blocks[-1].mixer
    # a head sees its own channels alone; where units are written to the symbols' channels too,
    # the readout finds the symbol again in another head
    second = head if head < size + num_symbols else size
    table = np.zeros(model.embedding.weight.shape)
    table[:, :num_symbols] = np.eye(num_symbols)
    table[:, second : second + num_symbols] = np.eye(num_symbols)
    put(model.embedding.weight, table)
    symbols = torch.arange(num_symbols).unsqueeze(1)
    inputs = inputs_of_mixer(model, len(model.blocks) - 1, symbols).squeeze(1)[:, :head]
    candidate = slice(2 * head, 2 * head + size)  # of the gates i, f, z, o
    solved = np.linalg.lstsq(inputs.numpy(), GAIN * units.read.T, rcond=1e-12)[0]
    with torch.no_grad():
        mixer.update_and_output.weight[0, :, :size] = torch.from_numpy(solved)
        mixer.recurrent[0, :size, candidate] = torch.from_numpy(GAIN * units.recurrent.T)
        mixer.update_bias[0, :size] = torch.from_numpy(GAIN * units.bias)
        mixer.output_bias.fill_(OPEN)
        mixer.forget_bias.fill_(SHUT)
    read_labels(model, case, slice(second + num_symbols))
    return model


def matrix_network(case: Case) -> Any:
    """The units as the only row of M2RNN's only head, which forgets all; without a convolution."""
    units, num_symbols = units_of(case), case.automaton.num_symbols
    size = case.size("value_size")
    more = size - len(units.bias)
    if more < 0:
        raise NotBuilt(f"{len(units.bias)} units are known, {size} are predicted")
    width = size + num_symbols
    model = case.blank(width=width, heads=1, key_size=1, conv=0, norm="none")
    mixer = model.blocks[-1].mixer
    one_hot_embedding(model, size)
    written = np.zeros((2 + size, width))
    written[:2, size:] = 1  # query and key
    written[2 : 2 + len(units.bias), size:] = GAIN * (units.read + units.bias[:, None])
    put(mixer.written.linear.weight, written)
    put(mixer.weight, GAIN * np.pad(units.recurrent.T, (0, more))[None])
    put(mixer.forget_bias, [1e3])
    gate = np.zeros(mixer.gate.weight.shape)
    gate[:, size:] = 1
    put(mixer.gate.weight, gate)
    put(mixer.output.weight, np.eye(width, size))
    read_labels(model, case, slice(size))
    return model


def stacked_lstm(case: Case) -> Any:
    """The xLSTM: its last layer where that is a scalar LSTM, else registers of matrix LSTMs."""
    if case.options.get("pattern", "ms").endswith("m"):
        return mlstm(case)
    return scalar_lstm(case)
