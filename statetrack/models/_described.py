"""Whether what a class says of its steps is of the steps that a model takes.

Operators, and boxes of states, are found beside the code that computes logits. A subclass may
replace that code alone, an instance may have a method or a readout of its own, and hooks change
what a module gives: then nothing that is proven by operators or boxes is about the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from torch import nn

from statetrack.models._base import LinearModel, WithBoxes
from statetrack.models._linear import Linear, is_watched

COMPUTING = ("step", "scan", "forward")
"""The methods that give logits."""


def is_linear(model: nn.Module) -> TypeGuard[LinearModel]:
    """Whether logits are those that the operators, additive terms and readout of a model give.

    A subclass of `LinearModel` may define operators and parameters, and nothing by which words are
    read.
    """
    return (
        isinstance(model, LinearModel)
        and _are_of(LinearModel, model, (*COMPUTING, "_read", "initial_state", "additive_table"))
        and _is_linear_map(model.readout)
        and not is_watched(*model.modules())
    )


def has_boxes(model: nn.Module) -> TypeGuard[WithBoxes]:
    """Whether `box_step` and `box_leads` of a model are those of its steps.

    A subclass that replaces the steps of a network replaces these too.
    """
    return isinstance(model, WithBoxes) and _describe(model, ("flat", "box_step", "box_leads"))


def has_tanh_step(model: WithBoxes) -> bool:
    """Whether `tanh_step` of a model with boxes is its step, if it gives one."""
    assert isinstance(model, nn.Module)
    return _describe(model, ("tanh_step",), (*COMPUTING, "box_step", "box_leads"))


def _describe(
    model: nn.Module, describing: Iterable[str], computing: tuple[str, ...] = COMPUTING
) -> bool:
    kinds = {_definer(model, name) for name in describing}
    shipped = any(kind.__module__.startswith(f"{__package__}.") for kind in kinds)
    return (
        all(_are_of(kind, model, computing) for kind in kinds)
        and (not shipped or _is_linear_map(getattr(model, "readout", None)))
        and not is_watched(*model.modules())
    )


def _are_of(kind: type, model: nn.Module, names: Iterable[str]) -> bool:
    """Whether neither a subclass of a class nor the model itself replaces any of some methods."""
    return not any(
        name in vars(model)
        or (kind is not (found := _definer(model, name)) and issubclass(found, kind))
        for name in names
    )


def _definer(model: nn.Module, name: str) -> type:
    """The class of a model's bases from which it has a method."""
    return next(kind for kind in type(model).__mro__ if name in vars(kind))


def _is_linear_map(module: object) -> bool:
    own = (nn.Linear.forward, Linear.forward)
    return isinstance(module, nn.Linear) and type(module).forward in own
