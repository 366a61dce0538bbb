"""Stacks of layers of gains: a register, or the series of a group, one component in each layer."""

from __future__ import annotations

from functools import partial
from typing import Any

from statetrack.algebra import (
    Clamped,
    ComplexLayers,
    DiagonalMinusRankOne,
    FixedPhaseLayers,
    FixedPositiveLayers,
    Householder,
    HouseholderProduct,
    PositiveLayers,
    SignedLayers,
    UnitLayers,
)
from statetrack.constructions.cascades import register, series
from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.registry import construction, layer_for
from statetrack.constructions.stacks import build_stack

SERIES = "arXiv:2603.01959"


def _is_group(case: Case) -> bool:
    return case.algebra.is_group


def _of_series(case: Case, kind: str, *, squares: bool) -> Any:
    """A layer for every factor: few characters, or all where a readout needs them for labels."""
    layer = layer_for(case, kind)
    try:
        return build_stack(case, partial(series, squares=squares), layer)
    except NotBuilt:
        return build_stack(case, partial(series, squares=squares, every=True), layer)


@construction(
    SignedLayers,
    name="signs",
    equation="h_t = g_t h_{t-1} with g_t = 1 or -1, a function of the symbol and of the layers "
    "before: the characters of a series of the group with factors of exponent 2",
    source=SERIES,
    where=_is_group,
)
def signs(case: Case) -> Any:
    """A layer for every factor of the series."""
    return _of_series(case, "signs", squares=True)


CHARACTERS: dict[str, Any] = {
    "name": "characters",
    "equation": "h_t = g_t h_{t-1} with |g_t| = 1, a function of the symbol and of the layers "
    "before: the characters of a series of the group with abelian factors",
    "source": SERIES,
}


@construction(UnitLayers, **CHARACTERS)
@construction(ComplexLayers, **CHARACTERS, where=_is_group)
def characters(case: Case) -> Any:
    """A layer for every factor of the series."""
    return _of_series(case, "turns", squares=False)


REGISTER: dict[str, Any] = {
    "name": "register",
    "equation": "h_t = g_t h_{t-1} + b_t with g_t = 1, b_t = 0 where the symbol keeps the state, "
    "and g_t = 0, b_t = p_s where it resets it to s",
    "source": "doi:10.1090/S0002-9947-1965-0188316-1",
}


@construction(
    PositiveLayers,
    SignedLayers,
    ComplexLayers,
    FixedPositiveLayers,
    FixedPhaseLayers,
    Clamped,
    DiagonalMinusRankOne,
    **REGISTER,
)
@construction(
    Householder, HouseholderProduct, **REGISTER, where=lambda case: not case.algebra.is_group
)
def resets(case: Case) -> Any:
    """One layer, where every symbol keeps the state or resets it."""
    return build_stack(case, register, layer_for(case, "register"))
