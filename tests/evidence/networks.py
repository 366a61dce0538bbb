"""Networks whose weights are written by hand, and the points that their states are.

V symbols, S states, H numbers of the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from statetrack.models import MODELS, RecurrentModel
from tests.evidence.machines import Table, cyclic, group_table, symmetric

Floats = NDArray[np.float64]

STEEP = 9.0
"""The weighted sum of a unit that is on, at least; tanh(9) differs from 1 by 3e-8."""


@dataclass(frozen=True, eq=False)
class Linear:
    """An exact linear model: matrices [V, H, H] that permute or merge points [S, H]."""

    name: str
    table: Table
    matrices: Floats
    points: Floats
    readout: Floats  # [C, H]

    def model(self) -> RecurrentModel:
        """The model `bilinear` with these weights."""
        hidden = self.points.shape[1]
        made = blank("bilinear", self.table, len(self.readout), hidden=hidden)
        fill(made.weight, self.matrices)
        return self._ended(made)

    def block_model(self, size: int) -> RecurrentModel:
        """The model `bilinear-block`; the matrices are block-diagonal."""
        hidden = self.points.shape[1]
        made = blank(
            "bilinear-block", self.table, len(self.readout), hidden=hidden, block_size=size
        )
        places = np.arange(hidden).reshape(-1, size)
        fill(made.weight, self.matrices[:, places[:, :, None], places[:, None, :]])
        return self._ended(made)

    def _ended(self, made: Any) -> RecurrentModel:
        fill(made.first, self.points[self.table.start])
        fill(made.readout.weight, self.readout)
        return cast(RecurrentModel, made.eval())


def blank(name: str, table: Table, num_labels: int, **settings: object) -> Any:
    """A registered model of the sizes of a machine, with random weights."""
    kind = MODELS[name]
    return kind(
        kind.settings_class(**settings), num_symbols=table.num_symbols, num_labels=num_labels
    )


def fill(parameter: torch.Tensor, values: NDArray[np.floating]) -> None:
    """Write weights."""
    assert parameter.shape == values.shape, (parameter.shape, values.shape)
    with torch.no_grad():
        parameter.copy_(torch.as_tensor(values))


def one_hot(table: Table) -> Linear:
    """Unit vectors, moved by matrices of zeros and ones."""
    states, symbols, labels = len(table.delta), table.num_symbols, 1 + max(table.output)
    matrices = np.zeros((symbols, states, states))
    readout = np.zeros((labels, states))
    for state, row in enumerate(table.delta):
        for symbol, target in enumerate(row):
            matrices[symbol, target, state] = 1
        readout[table.output[state], state] = 1
    return Linear("one-hot", table, matrices, np.eye(states), readout)


def changed_basis(exact: Linear, basis: Floats) -> Linear:
    """The same model in other coordinates."""
    inverse = np.linalg.inv(basis)
    return Linear(
        f"{exact.name}, other basis",
        exact.table,
        basis @ exact.matrices @ inverse,
        exact.points @ basis.T,
        exact.readout @ inverse,
    )


def planes(order: int, harmonics: tuple[int, ...]) -> Linear:
    """Addition modulo `order` by rotations of one plane for each harmonic."""
    table = cyclic(order)
    size = 2 * len(harmonics)
    matrices, points = np.zeros((order, size, size)), np.zeros((order, size))
    for number in range(order):
        for plane, harmonic in enumerate(harmonics):
            angle = 2 * np.pi * harmonic * number / order
            here = slice(2 * plane, 2 * plane + 2)
            cos, sin = np.cos(angle), np.sin(angle)
            matrices[number, here, here] = [[cos, -sin], [sin, cos]]
            points[number, here] = cos, sin
    return Linear(f"rotations modulo {order}", table, matrices, points, points)


def rotation_model(order: int, harmonics: tuple[int, ...]) -> RecurrentModel:
    """The model `bilinear-rotation` for addition modulo `order`."""
    exact = planes(order, harmonics)
    made = blank("bilinear-rotation", exact.table, order, hidden=2 * len(harmonics))
    angles = 2 * np.pi * np.outer(np.arange(order), harmonics) / order
    fill(made.angles, np.remainder(angles + np.pi, 2 * np.pi) - np.pi)
    fill(made.first, exact.points[0])
    fill(made.readout.weight, exact.readout)
    return cast(RecurrentModel, made.eval())


def triangle() -> Linear:
    """S3 by the symmetries of a triangle, and the sign, in two blocks of size 2."""
    elements = symmetric(3)
    table = group_table(elements, elements)
    corners = np.array([[np.cos(a), np.sin(a)] for a in 2 * np.pi * np.arange(3) / 3])
    matrices = np.zeros((6, 4, 4))
    for index, element in enumerate(elements):
        # the linear map that takes corner i to corner element[i]
        moved = corners[list(element)]
        matrices[index, :2, :2] = np.linalg.lstsq(corners, moved, rcond=None)[0].T
        sign = np.linalg.det(np.eye(3)[list(element)])
        matrices[index, 2:, 2:] = sign * np.eye(2)
    first = np.array([1.0, 0.3, 1.0, 0.0])
    points = matrices @ first
    return Linear("S3 in blocks of 2", table, matrices, points, centred(points))


def centred(points: Floats) -> Floats:
    """A readout whose logits are at most -|p_s - p_t|^2 / 2, up to a constant of equal lengths."""
    return points


def factored_model(table: Table) -> RecurrentModel:
    """The model `bilinear-cp` with a term for each pair of states that a symbol joins."""
    pairs = sorted({(state, target) for state, row in enumerate(table.delta) for target in row})
    states, labels = len(table.delta), 1 + max(table.output)
    made = blank("bilinear-cp", table, labels, hidden=states, rank=len(pairs))
    left, right = np.zeros((states, len(pairs))), np.zeros((states, len(pairs)))
    gains = np.zeros((table.num_symbols, len(pairs)))
    for term, (state, target) in enumerate(pairs):
        left[target, term], right[state, term] = 1, 1
        for symbol in range(table.num_symbols):
            gains[symbol, term] = table.delta[state][symbol] == target
    for parameter, values in ((made.left, left), (made.right, right), (made.gains, gains)):
        fill(parameter, values)
    fill(made.first, np.eye(states)[table.start])
    fill(made.readout.weight, one_hot(table).readout)
    return cast(RecurrentModel, made.eval())


def elman(table: Table, num_labels: int = 0) -> RecurrentModel:
    """The model `rnn` with a unit for each state and symbol: on after that symbol in that state.

    A unit sums the units that lead to its state, which are 1 or -1 and of which at most one is on,
    and is held down by every other symbol. One more unit is 0 before the first symbol, then 1: it
    replaces the start, which no unit stands for.
    """
    states, symbols = len(table.delta), table.num_symbols
    size = states * symbols + 1
    recurrent, read, bias = np.zeros((size, size)), np.zeros((size, symbols)), np.zeros(size)
    for state in range(states):
        leading = [
            source * symbols + symbol
            for source in range(states)
            for symbol in range(symbols)
            if table.delta[source][symbol] == state
        ]
        at_start = 1.0 if state == table.start else -1.0
        for symbol in range(symbols):
            unit = state * symbols + symbol
            recurrent[unit, leading] = 1
            recurrent[unit, -1] = len(leading) - 1 - at_start
            bias[unit] = at_start
            read[unit] = -3.0 - len(leading)
            read[unit, symbol] = 0
    bias[-1] = 1
    labels = max(num_labels, 1 + max(table.output))
    made = blank("rnn", table, labels, hidden=size, embed_dim=symbols)
    network = made.network
    fill(made.embedding.weight, np.eye(symbols))
    fill(network.weight_hh_l0, STEEP * recurrent)
    fill(network.weight_ih_l0, STEEP * read)
    fill(network.bias_ih_l0, STEEP * bias)
    fill(network.bias_hh_l0, np.zeros(size))
    readout = np.zeros((labels, size))
    for state in range(states):
        for symbol in range(symbols):
            label = table.output[table.delta[state][symbol]]
            readout[label, state * symbols + symbol] = 1
    counts = (readout > 0).sum(1)
    fill(made.readout.weight, readout)
    fill(made.readout.bias, counts.astype(float))  # all of a label's units are off: a logit of 0
    return cast(RecurrentModel, made.eval())


def perturbed(
    model: RecurrentModel, size: float, draws: np.random.Generator, *names: str
) -> RecurrentModel:
    """Normal numbers of a standard deviation added to the weights of these names, in place."""
    for name in names:
        parameter = model.get_parameter(name)
        noise = draws.normal(size=tuple(parameter.shape)) * size
        with torch.no_grad():
            parameter.add_(torch.as_tensor(noise, dtype=parameter.dtype))
    return model
