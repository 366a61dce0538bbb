"""The eigenvalues that a model's steps have, beside those that its settings claim.

What a step does to a small change of the state is a matrix, the Jacobian of the next state with
respect to the last one at a symbol: of a recurrence that is linear in its state the matrix that
multiplies it. It is measured by symmetric differences of steps, so that nothing is asked of a
module but `initial_state` and `step`, and whatever kernel computes these is what is measured. Its
eigenvalues are those of the strongly connected parts of its pattern of numbers that are not zero:
layers, heads and columns of a memory are parts of their own, and a window of past inputs has none.

A flag that is ignored shows (flash-linear-attention, pull request 832: eigenvalues below 0 were
asked for, and none was computed): where a claimed interval begins below 0, none below 0 is found,
over the task's symbols or over random inputs.

N numbers of a state, B words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from statetrack.errors import SettingsError
from statetrack.models._base import Stepping, require_constant_size
from statetrack.models._described import is_linear
from statetrack.models._eigenvalue_range import StepEigenvalues
from statetrack.models._given import cast, copy_of
from statetrack.models._settings import recurrence_of

Complexes = npt.NDArray[np.complex128]

LARGEST = 10_000
"""The most numbers in a state."""

LARGEST_PART = 2_000
"""The most numbers of a state that are all connected by a step."""

AT_ONCE = 256
"""Changed states that a step is given at once."""

WORDS, LENGTH, MOST_STEPS = 3, 6, 12
"""Words after which steps are measured, their symbols, and the most steps that are measured."""

DRAWN = 3.0
"""The standard deviation of random inputs: inputs of trained models are of about this size."""

CHANGE, ZERO = 1e-4, 1e-8
"""By how much a number of a state is changed, and what counts as no change of the next state."""


def claimed_eigenvalues(model: nn.Module) -> str | None:
    """Where the settings of a model say that the eigenvalues of its steps lie; None: nowhere."""
    settings = getattr(model, "settings", None)
    recurrence = None if settings is None else recurrence_of(settings)
    claimed: str | None = getattr(recurrence, "eigenvalues", None)
    return claimed


def step_eigenvalues(
    model: nn.Module, num_symbols: int, *, most: int = MOST_STEPS, seed: int = 0
) -> StepEigenvalues:
    """The eigenvalues of a model's steps at its symbols, at most so many, behind random words.

    The model is measured in float64 and evaluation mode, on a copy.

    Raises `SettingsError` where it has no steps, and where its state is too large or grows.
    """
    model = cast(copy_of(model).cpu(), torch.float64).eval()
    with torch.no_grad():
        if is_linear(model):
            matrices = model.operators().dense()[:num_symbols]
            found = [np.linalg.eigvals(matrix.numpy()) for matrix in matrices]
        elif isinstance(model, Stepping):
            found = list(_of_steps(model, num_symbols, most, seed))
        else:
            raise SettingsError("it has no `step`, so that no state is handed on")
    values = np.concatenate(found) if found else np.zeros(0)
    if not len(values):
        raise SettingsError("no number of its state depends on itself one symbol before")
    if not np.isfinite(values).all():
        raise SettingsError("its steps are not finite")
    real, moduli = values.real, np.abs(values)
    return StepEigenvalues(
        lowest=float(real.min()),
        highest=float(real.max()),
        smallest=float(moduli.min()),
        largest=float(moduli.max()),
        imaginary=float(np.abs(values.imag).max()),
        steps=len(found),
    )


def with_random_inputs(model: nn.Module, *, seed: int = 0) -> nn.Module | None:
    """A copy whose symbols have random vectors as inputs; None where symbols have no such table."""
    model = copy_of(model)
    table = next((each for each in model.modules() if isinstance(each, nn.Embedding)), None)
    if table is None:
        return None
    drawn = np.random.default_rng(seed).normal(0, DRAWN, tuple(table.weight.shape))
    with torch.no_grad():
        table.weight.copy_(torch.from_numpy(drawn))
    return model


def _of_steps(model: Any, num_symbols: int, most: int, seed: int) -> Iterator[Complexes]:
    """The eigenvalues at one symbol after another, each behind one of some random words."""
    draws = np.random.default_rng(seed)
    symbols = draws.permutation(num_symbols)[:most]
    first = model.initial_state(1)
    require_constant_size(first, model.step(torch.tensor([0]), first)[1])
    layout = _Layout(model)
    states = []
    for word in draws.integers(num_symbols, size=(WORDS, LENGTH)):
        state = model.initial_state(1)
        for symbol in word:
            _, state = model.step(torch.tensor([symbol]), state)
        states.append(state)
    for number, symbol in enumerate(symbols):
        yield _eigenvalues(layout.jacobian(int(symbol), states[number % WORDS]))


class _Layout:
    """Where the numbers of one word stand in a model's state, and how a step changes them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        one, two = (tree_flatten(model.initial_state(number))[0] for number in (1, 2))
        self.axes = [_axis_of_words(*pair) for pair in zip(one, two, strict=True)]
        self.counted = [
            axis is not None and (each.is_floating_point() or each.is_complex())
            for each, axis in zip(one, self.axes, strict=True)
        ]
        size = self.numbers(model.initial_state(1)).shape[1] if any(self.counted) else 0
        if not 0 < size <= LARGEST:
            raise SettingsError(
                f"its state has {size:,} numbers, and from 1 to {LARGEST:,} are measured"
            )

    def numbers(self, state: Any) -> Tensor:
        """The floating-point numbers of a state, `[B, N]`."""
        parts = []
        for each, axis, yes in zip(tree_flatten(state)[0], self.axes, self.counted, strict=True):
            if yes and axis is not None:
                parts.append(_real(each.movedim(axis, 0)).reshape(each.shape[axis], -1))
        return torch.cat(parts, 1)

    def state(self, like: Any, rows: Tensor) -> Any:
        """The state of as many words as there are rows of numbers `[B, N]`."""
        leaves, form = tree_flatten(like)
        found, start = [], 0
        for each, axis, yes in zip(leaves, self.axes, self.counted, strict=True):
            if yes and axis is not None:
                moved = each.movedim(axis, 0)
                size = _real(moved)[0].numel()
                part = rows[:, start : start + size].reshape(-1, *_real(moved).shape[1:])
                part = torch.view_as_complex(part.contiguous()) if each.is_complex() else part
                found.append(part.movedim(0, axis).contiguous())
                start += size
            else:
                found.append(each if axis is None else each.repeat_interleave(len(rows), axis))
        return tree_unflatten(found, form)

    def jacobian(self, symbol: int, state: Any) -> csr_array:
        """How the next state changes with each number of a state, `[N, N]`; small numbers are 0."""
        here = self.numbers(state)
        change = CHANGE * max(1.0, float(here.abs().max()))
        columns = []
        for start in range(0, here.shape[1], AT_ONCE):
            moved = torch.eye(here.shape[1], dtype=here.dtype)[start : start + AT_ONCE] * change
            ends = []
            for sign in (1, -1):
                symbols = torch.full((len(moved),), symbol)
                _, after = self.model.step(symbols, self.state(state, here + sign * moved))
                ends.append(self.numbers(after))
            rows = ((ends[0] - ends[1]) / (2 * change)).numpy()
            rows[np.abs(rows) < ZERO] = 0.0
            columns.append(csr_array(rows))
        return csr_array(vstack(columns).T)


def _axis_of_words(one: Any, two: Any) -> int | None:
    """The axis in which a part of the states of one and of two words differs in its size."""
    if not isinstance(one, Tensor):
        return None
    sizes = enumerate(zip(one.shape, two.shape, strict=True))
    return next((axis for axis, (first, second) in sizes if first != second), None)


def _real(numbers: Tensor) -> Tensor:
    """Complex numbers as pairs in a further axis, and others as they are."""
    return torch.view_as_real(numbers) if numbers.is_complex() else numbers


def _eigenvalues(jacobian: csr_array) -> Complexes:
    """Those of the strongly connected parts, but for numbers that do not depend on themselves."""
    number, parts = connected_components(jacobian, connection="strong")
    sizes = np.bincount(parts, minlength=number)
    if sizes.max() > LARGEST_PART:
        raise SettingsError(f"{sizes.max():,} numbers of its state depend on each other")
    alone = jacobian.diagonal()[sizes[parts] == 1]
    found, known = [alone[alone != 0].astype(np.complex128)], set()
    order = np.argsort(parts, kind="stable")
    for members in np.split(order, np.cumsum(sizes)[:-1]):
        if len(members) > 1:
            part = jacobian[members][:, members].toarray()
            if (mark := np.round(part, 7).tobytes()) not in known:
                known.add(mark)
                found.append(np.linalg.eigvals(part).astype(np.complex128))
    return np.concatenate(found)
