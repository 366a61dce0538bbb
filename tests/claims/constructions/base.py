"""What every construction uses: a cell to build for, maps solved from their inputs, readouts.

A construction gives the real model, built from settings at the predicted values, in float64, with
every weight set by hand. Linear maps inside it are solved from the inputs that they get: `aim`
gives a map the weights with which it maps given inputs to wanted outputs.

V symbols, S states, C labels, N inputs, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import coo_array
from torch import Tensor, nn

from statetrack.algebra import Algebra, Prediction
from statetrack.models import MODELS, RecurrentModel
from statetrack.settings import Settings, build
from statetrack.sources import Automaton, Floats, Integers
from tests.claims.words import covering_words

OPEN = 60.0
"""A gate's logit: sigmoid(60) is 1, and sigmoid(-60) is 1e-26."""

SHUT = -800.0
"""A gate's logit: sigmoid(-800), and softplus(-800), are 0."""

LARGEST_PROGRAM = 40_000
"""Most constraints of a linear program for a readout."""


class NotBuilt(Exception):
    """There is no construction for this cell; the text says why."""


class BeyondBudget(Exception):
    """The construction for this cell is known and too large; the text says what is."""


@dataclass(frozen=True)
class Case:
    """A cell: a model with options that differ from its defaults, a task, what is predicted."""

    model: str
    options: Mapping[str, Any]
    task: str
    automaton: Automaton
    algebra: Algebra
    prediction: Prediction

    @property
    def sizes(self) -> dict[str, int]:
        """The predicted value of every setting; one whose value is not known is left out.

        Where any value does, it is 1.
        """
        needs = self.prediction.needs
        return {need.setting: need.value or 1 for need in needs if need.value is not None}

    def size(self, setting: str) -> int:
        """The predicted value of one setting. Raises `NotBuilt` where there is none."""
        if setting not in self.sizes:
            raise NotBuilt(f"no value of {setting} is predicted")
        return self.sizes[setting]

    def settings(self, **free: Any) -> Settings:
        """The settings of the cell's model: its options, predicted values, and free choices.

        Choices of settings that the model does not have are left out.
        """
        kind = MODELS[self.model].settings_class
        chosen = {name: value for name, value in free.items() if name in kind.model_fields}
        return build(kind, {**chosen, **self.options, **self.sizes}, self.model)

    def blank(self, **free: Any) -> Any:
        """The model with all weights zero, and the gains of norms one, in float64."""
        automaton = self.automaton
        model = MODELS[self.model](
            self.settings(**free),
            num_symbols=automaton.num_symbols,
            num_labels=automaton.num_labels,
        ).double()
        with torch.no_grad():
            for module in model.modules():
                is_norm = "norm" in type(module).__name__.lower()
                for name, parameter in module.named_parameters(recurse=False):
                    parameter.fill_(float(is_norm and name == "weight"))
        return model.eval()

    @property
    def asked(self) -> np.ndarray:
        """The states of the smallest machine whose labels are asked for, `[S]`."""
        machine = self.algebra.machine
        asked: np.ndarray = machine.automaton.scored & machine.live
        return asked


Construction = Callable[[Case], RecurrentModel]


def put(parameter: Tensor, values: Any) -> None:
    """Write values into a parameter of the same shape."""
    values = torch.as_tensor(np.asarray(values), dtype=parameter.dtype)
    assert parameter.shape == values.shape, (parameter.shape, values.shape)
    with torch.no_grad():
        parameter.copy_(values)


def inputs_of(model: nn.Module, module: nn.Module, symbols: Tensor) -> Tensor:
    """What a submodule is given when the model reads symbols `[B, T]`, usually `[B, T, D]`."""
    caught: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, given: caught.append(given[0]))
    with torch.no_grad():
        model(symbols)
    handle.remove()
    return caught[0]


def mixer_inputs(model: Any) -> Floats:
    """What the first mixer gets for every symbol, `[V, D]`."""
    symbols = torch.arange(model.num_symbols).unsqueeze(1)
    found: Floats = inputs_of_mixer(model, 0, symbols).squeeze(1).numpy()
    return found


def inputs_of_mixer(model: Any, layer: int, symbols: Tensor) -> Tensor:
    """What the mixer of a layer is given when the model reads symbols `[B, T]`: `[B, T, D]`."""
    mixer = model.blocks[layer].mixer
    caught: list[Tensor] = []
    scan = mixer.scan

    def caught_and_scanned(inputs: Tensor, state: Any) -> Any:
        caught.append(inputs)
        return scan(inputs, state)

    mixer.scan = caught_and_scanned
    try:
        with torch.no_grad():
            model(symbols)
    finally:
        del mixer.scan
    return caught[0]


def aim(
    linear: nn.Linear, inputs: Floats, wanted: Floats, rows: slice | Sequence[int] = slice(None)
) -> None:
    """Let some rows of a linear map give wanted outputs `[N, rows]` for inputs `[N, D]`.

    The bias of these rows is zero. Raises `NotBuilt` where no map gives these outputs.
    """
    weight = np.linalg.lstsq(inputs, wanted, rcond=1e-12)[0]
    error = np.abs(inputs @ weight - wanted).max(initial=0.0)
    if error > 1e-8 * max(1.0, np.abs(wanted).max(initial=0.0)):
        raise NotBuilt(f"a linear map misses what it is to give by {error:.1e}")
    with torch.no_grad():
        linear.weight[rows] = torch.as_tensor(weight.T, dtype=linear.weight.dtype)
        if linear.bias is not None:
            linear.bias[rows] = 0.0


def one_hot_embedding(model: Any, first: int = 0) -> None:
    """Every symbol a unit vector of its own, from coordinate `first` on."""
    table = np.zeros(model.embedding.weight.shape)
    table[:, first : first + model.num_symbols] = np.eye(model.num_symbols)
    put(model.embedding.weight, table)


def silu_preimage(values: Floats) -> Floats:
    """The larger x with x sigmoid(x) = value, for values of at least -0.275."""
    assert values.min(initial=0.0) > -0.275, values.min()
    low = np.full_like(values, -1.2784645427610738)  # where x sigmoid(x) is least
    high = np.abs(values) + 2.0
    for _ in range(100):
        x = (low + high) / 2
        over = x / (1 + np.exp(-x)) > values
        low, high = np.where(over, low, x), np.where(over, x, high)
    return np.asarray((low + high) / 2)


def identity_convolution(filters: nn.Conv1d | None) -> None:
    """Let a causal convolution pass on the position's own input; None is one that is left out."""
    if filters is not None:
        weight = np.zeros(filters.weight.shape)
        weight[..., -1] = 1
        put(filters.weight, weight)


# --- readouts ---


def read_labels(model: Any, case: Case, columns: Any = slice(None)) -> None:
    """Solve the model's readout: from chosen columns of what it gets, on words that cover all."""
    words = covering_words(case.automaton)
    labels, scored = case.automaton.read(words)
    got = inputs_of(model, model.readout, torch.from_numpy(words)).numpy()
    columns = np.arange(got.shape[-1])[columns]
    features, answers = got[scored][:, columns], labels[scored].astype(np.int64)
    weight, bias = separate(
        features, answers, case.automaton.num_labels, with_bias=model.readout.bias is not None
    )
    whole = np.zeros(model.readout.weight.shape)
    whole[:, columns] = weight
    put(model.readout.weight, whole)
    if model.readout.bias is not None:
        put(model.readout.bias, bias)


def separate(
    points: Floats, labels: Integers, num_labels: int, *, with_bias: bool
) -> tuple[Floats, Floats]:
    """Rows `[C, D]` and biases `[C]` for which every point's own label has the largest score.

    The means of each label's points, their sums, the answer of least squares, or at last a linear
    program with the largest margin: whichever leads by most. Raises `NotBuilt` where none does.
    """
    _, first = np.unique(np.column_stack([np.round(points, 6), labels]), axis=0, return_index=True)
    points, labels = points[first], labels[first]
    found = list(_simple_readouts(points, labels, num_labels, with_bias))
    best = max(found, key=lambda each: _lead(points, labels, *each))
    if _lead(points, labels, *best) < 1e-3:
        program = _program(points, labels, num_labels, with_bias)
        found = [best] if program is None else [best, program]
        best = max(found, key=lambda each: _lead(points, labels, *each))
    if _lead(points, labels, *best) <= 1e-9:
        raise NotBuilt("no linear readout separates the labels of the points that were reached")
    return best


def _simple_readouts(
    points: Floats, labels: Integers, num_labels: int, with_bias: bool
) -> list[tuple[Floats, Floats]]:
    mine = (labels[:, None] == np.arange(num_labels)).astype(float)  # [N, C]
    sums = mine.T @ points
    means = sums / np.maximum(mine.sum(0), 1)[:, None]
    nothing = np.zeros(num_labels)
    if not with_bias:
        return [
            (means, nothing),
            (sums, nothing),
            (np.linalg.lstsq(points, mine, rcond=1e-10)[0].T, nothing),
        ]
    never = np.where(mine.sum(0) == 0, -1e3, 0.0)
    solved = np.linalg.lstsq(np.column_stack([points, np.ones(len(points))]), mine, rcond=1e-10)[0]
    return [
        (means, never),
        (means, never - 0.5 * (means**2).sum(1)),
        (solved[:-1].T, solved[-1]),
    ]


def _lead(points: Floats, labels: Integers, weight: Floats, bias: Floats) -> float:
    """The least lead of the right label, as a part of the largest spread of a point's scores."""
    scores = points @ weight.T + bias
    if scores.shape[1] == 1:
        return 1.0
    right = scores[np.arange(len(scores)), labels]
    spread = max(float((scores.max(1) - scores.min(1)).max()), 1e-300)
    others = scores.copy()
    others[np.arange(len(scores)), labels] = -np.inf
    return float((right - others.max(1)).min()) / spread


def _program(
    points: Floats, labels: Integers, num_labels: int, with_bias: bool
) -> tuple[Floats, Floats] | None:
    """The readout in [-1, 1] of the largest margin, by a linear program (HiGHS)."""
    inputs = np.column_stack([points, np.ones(len(points))]) if with_bias else points
    present = np.unique(labels)
    size, num_weights = inputs.shape[1], len(present) * inputs.shape[1]
    own = np.searchsorted(present, labels)
    point, other = np.nonzero(own[:, None] != np.arange(len(present)))
    if not len(point) or len(point) > LARGEST_PROGRAM:
        return None
    rows, span = np.arange(len(point)), np.arange(size)
    entries = [
        (np.repeat(rows, size), ((own[point] * size)[:, None] + span).ravel(), -inputs[point]),
        (np.repeat(rows, size), ((other * size)[:, None] + span).ravel(), inputs[point]),
        (rows, np.full(len(rows), num_weights), np.ones(len(rows))),
    ]
    matrix = coo_array(
        (
            np.concatenate([values.ravel() for _, _, values in entries]),
            (
                np.concatenate([row for row, _, _ in entries]),
                np.concatenate([column for _, column, _ in entries]),
            ),
        ),
        shape=(len(rows), num_weights + 1),
    )
    solved = linprog(
        np.append(np.zeros(num_weights), -1.0),
        A_ub=matrix.tocsr(),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1, 1)] * num_weights + [(0, None)],
        method="highs",
    )
    if solved.status != 0:
        return None
    weights = solved.x[:-1].reshape(len(present), size)
    weight = np.zeros((num_labels, points.shape[1]))
    bias = np.full(num_labels, -1e3 if with_bias else 0.0)
    weight[present] = weights[:, : points.shape[1]]
    if with_bias:
        bias[present] = weights[:, -1]
    return weight, bias
