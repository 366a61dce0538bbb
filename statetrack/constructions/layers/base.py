"""Any linear model without a file of its own: parameters are solved for, from what is wanted.

A construction hands over a point p(s) for every state. Parameters, and an isometry W of the points'
space into the state's, are solved for so that A(x) W p(s) + u(x) = W p(delta(s, x)) for all symbols
and live states, with the operators A and the additive terms u that the model has. So a plugin's own
structure of operators needs no construction beyond that of the class that its settings name.

V symbols, S states, n dimensions of points, r those that they span, H hidden, L live states.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.layers._linear import finish
from statetrack.constructions.representations import (
    LinearRepresentation,
    Terms,
    direct_sum,
    of_part,
    one_hot,
)
from statetrack.constructions.solving import Numbers, solved
from statetrack.errors import SettingsError, setting
from statetrack.models import LinearModel
from statetrack.sources import Floats, Integers

STARTS = 12
"""Initial weights that are tried."""

ROUNDED_UP = 8
"""By how much a width may be rounded up where a structure does not have the one that is needed."""

SPARE = 2
"""Dimensions beyond those that are needed which are tried too: a structure may fill them alone."""

ISOMETRY = "isometry"
"""The name among what is solved for of a matrix `[H, r]` whose factor Q in Q R is W."""


def take_matrices(case: Case, found: LinearRepresentation) -> Any:
    """The points of a representation."""
    return _solved(case, found.points)


def take_blocks(case: Case, parts: Sequence[LinearRepresentation]) -> Any:
    """The points of all parts."""
    return _solved(case, direct_sum(parts).points)


def take_terms(case: Case, representation: LinearRepresentation, terms: Terms) -> Any:
    """The points of the representation."""
    return _solved(case, representation.points)


def take_reflections(case: Case, parts: Sequence[LinearRepresentation]) -> Any:
    """The points of all parts."""
    return _solved(case, direct_sum(parts).points)


def take_gains(case: Case, gains: np.ndarray, points: Floats, terms: Floats | None) -> Any:
    """The points, complex numbers as pairs."""
    return _solved(case, points.reshape(len(points), -1))


def take_points(case: Case, points: Floats) -> Any:
    """The points as they are."""
    return _solved(case, points)


def take_maps(case: Case, moves: Integers, which: Integers) -> Any:
    """Unit vectors."""
    return _solved(case, one_hot(case.algebra).points)


def _solved(case: Case, points: Floats) -> Any:
    """The model whose operators move points `[S, n]`, or those of another choice of parts.

    Raises `NotBuilt` where none is solved for.
    """
    if case.integers:
        raise NotBuilt(f"{setting('integers', True)}: what is solved for are real numbers")
    why: NotBuilt | None = None
    for choice, spare in itertools.product(
        _choices(case, points), range(1 if "hidden" in case.options else 1 + SPARE)
    ):
        try:
            return _solve(case, choice, spare)
        except NotBuilt as problem:
            why = why or problem
    assert why is not None
    raise why


def _choices(case: Case, points: Floats) -> Iterator[Floats]:
    """The points that were handed over, and of a group those that turn the fewest dimensions."""
    yield points
    space = case.algebra.space if case.algebra.is_group else None
    choice = space and space.with_smallest_largest(space.codimensions)
    if choice:
        other = direct_sum([of_part(part, case.algebra) for part in choice.parts]).points
        if other.shape != points.shape or not np.allclose(other, points):
            yield other


def _solve(case: Case, points: Floats, spare: int) -> Any:
    machine = case.algebra.machine
    points = np.where(machine.live[:, None], points, 0.0)
    sizes, rows = np.linalg.svd(points)[1:]
    span = rows[: max(1, int((sizes > 1e-9 * sizes.max()).sum()))]
    points = points @ span.T if len(span) < points.shape[1] else points
    size = points.shape[1]
    model = _fresh(case, size + spare, 0)
    if not isinstance(model, LinearModel) or not isinstance(model.readout, nn.Linear):
        raise NotBuilt("its readout is no linear map of the state")
    width = len(model.first)
    if width < size:
        raise NotBuilt(f"{setting('hidden', width)}: {size} dimensions are known to be enough")
    residuals = _missed(model, points, case)
    found = solved(residuals, _starts(case, size, spare), "the wanted operators")
    with torch.no_grad():
        for name, value in found.items():
            if name != ISOMETRY:
                model.get_parameter(name).copy_(value)
        if model.readout.bias is not None:
            model.readout.bias.zero_()
    return finish(model.eval(), case, points @ _isometry(found).numpy().T)


def _fresh(case: Case, size: int, seed: int) -> Any:
    """The model with first weights, of the smallest width from `size` on that its structure has."""
    if "hidden" in case.options:
        return case.fresh(seed)
    for width in range(size, size + ROUNDED_UP):
        try:
            return replace(case, options={**case.options, "hidden": width}).fresh(seed)
        except SettingsError:
            if width == size + ROUNDED_UP - 1:
                raise
    raise AssertionError


def _starts(case: Case, size: int, spare: int) -> Iterator[Numbers]:
    """First weights of the model, each with an isometry: the unit vectors, then random ones."""
    for seed in range(STARTS):
        model = _fresh(case, size + spare, seed)
        drawn = torch.from_numpy(np.random.default_rng(seed).normal(size=(len(model.first), size)))
        isometry = drawn if seed else torch.eye(*drawn.shape).double()
        yield {**_unknowns(model), ISOMETRY: isometry}


def _isometry(numbers: Numbers) -> Tensor:
    isometry: Tensor = torch.linalg.qr(numbers[ISOMETRY]).Q
    return isometry


def _unknowns(model: LinearModel) -> Numbers:
    """The parameters that operators and additive terms may be functions of."""
    return {
        name: value.detach()
        for name, value in model.named_parameters()
        if name != "first" and not name.startswith("readout.")
    }


class _Recurrence(nn.Module):
    """The operators `[V, H, H]` and the additive terms of a linear model."""

    def __init__(self, model: LinearModel) -> None:
        super().__init__()
        self.model = model

    def forward(self) -> tuple[Tensor, Tensor | None]:
        return self.model.operators().dense(), self.model.additive_table()


def _missed(model: LinearModel, points: Floats, case: Case) -> Any:
    """What operators and additive terms miss, at a basis of the live points."""
    machine = case.algebra.machine
    live = np.flatnonzero(machine.live)
    here, ones = points[live], np.ones((len(live), 1))
    both = np.column_stack([here, ones]) if model.additive is not None else here
    left, sizes, _ = np.linalg.svd(both, full_matrices=False)
    kept = sizes > 1e-9 * sizes.max()
    basis = (left[:, kept] / sizes[kept]).T  # [r, L]
    moved = np.stack([basis @ points[machine.delta[live, symbol]] for symbol in _symbols(case)])
    before, after = torch.from_numpy(basis @ here), torch.from_numpy(moved)  # [r, n], [V, r, n]
    shares = torch.from_numpy(basis @ ones)[:, 0]
    recurrence = _Recurrence(model)

    def missed(numbers: Numbers) -> Tensor:
        isometry = _isometry(numbers)
        weights = {f"model.{name}": value for name, value in numbers.items() if name != ISOMETRY}
        operators, terms = functional_call(recurrence, weights, ())
        off = torch.einsum("vij,jn,rn->vri", operators, isometry, before)
        off = off - torch.einsum("in,vrn->vri", isometry, after)
        if terms is not None:
            off = off + torch.einsum("vi,r->vri", terms, shares)
        return off

    return missed


def _symbols(case: Case) -> range:
    return range(case.automaton.num_symbols)
