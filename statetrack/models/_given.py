"""What a caller gives as a model: a module, and not its class, its name or the task.

C labels, V symbols.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from statetrack.errors import SettingsError
from statetrack.models._base import SequenceModel
from statetrack.spec import Task

Network = TypeVar("Network", bound=nn.Module)


def require_module(model: Any, where: str) -> nn.Module:
    """The model that is given to a function of the library.

    Raises `SettingsError`, whose message begins with the function's name, for anything else than a
    module.
    """
    if isinstance(model, nn.Module):
        return model
    if isinstance(model, type) and issubclass(model, nn.Module):
        raise SettingsError(
            f"{where}: {model.__name__} is a class: give a module that is made of it, "
            f"{model.__name__}(...)"
        )
    if isinstance(model, str):
        raise SettingsError(
            f"{where}: the model is a module, and the task comes after it (given: {model!r}); "
            "st.make_model(name, task) makes one by its name"
        )
    kind = type(model).__name__
    after = ", and the task comes after it" if isinstance(model, Task) else ""
    raise SettingsError(f"{where}: the model is a torch.nn.Module{after} (given: a {kind})")


def without_shape(model: nn.Module) -> str:
    """That a module has weights which get their shape at its first call; empty where it has none.

    A module with such layers, as `nn.LazyLinear`, has none any more once it was called.
    """
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(value):
            return (
                f"{type(model).__name__} is not initialised: '{name}' gets its shape at the first "
                "call, so call the module once on symbols [B, T]"
            )
    return ""


def require_initialised(model: nn.Module, where: str) -> None:
    """Raise `SettingsError`, as `require_module` does, where weights have no shape yet."""
    if missing := without_shape(model):
        raise SettingsError(f"{where}: {missing}")


@contextmanager
def reading(model: nn.Module, num_symbols: int) -> Iterator[None]:
    """What reads words of V symbols with a model, and says so where it knows fewer.

    Raises `SettingsError` in place of the `IndexError` of a table that is too small.
    """
    known = model.num_symbols if isinstance(model, SequenceModel) else num_symbols
    if known < num_symbols:
        raise SettingsError(_too_few(model, num_symbols, f"it was made for {known}"))
    try:
        yield
    except IndexError as problem:
        raise SettingsError(_too_few(model, num_symbols, str(problem))) from problem


def require_logits(logits: Any, shape: Sequence[int], num_labels: int) -> Tensor:
    """The logits [..., C] that a model gave for symbols of a shape.

    Raises `SettingsError` for what is no tensor of real numbers, and for one of another shape.
    """
    expected = [*shape, num_labels]
    known = isinstance(logits, Tensor)
    if not known or list(logits.shape) != expected:
        found = f"logits {list(logits.shape)}" if known else f"a {type(logits).__name__}"
        raise SettingsError(
            f"the model gives {found} for symbols {list(shape)}, and not a tensor of logits "
            f"{expected}: one for each of {num_labels} labels at every position"
        )
    if logits.is_complex():
        raise SettingsError("the model gives complex logits: an answer is the largest real one")
    given: Tensor = logits
    return given


class _Values(TorchFunctionMode):
    """Copies of what was computed from weights have its values, and not how they were computed."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), others: Any = None
    ) -> Any:
        """Copy the values where torch would refuse; else call the function."""
        if function is Tensor.__deepcopy__ and not args[0].is_leaf:
            return args[0].detach().clone()
        return function(*args, **(others or {}))


def copy_of(model: Network) -> Network:
    """A copy of a module, which may keep activations, or weights that it computes from others."""
    with torch.no_grad(), _Values():
        return copy.deepcopy(model)


def cast(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The module, with real numbers of a type, and complex ones that are pairs of it.

    `Module.to` would drop imaginary parts.
    """

    def casted(value: Tensor) -> Tensor:
        if value.is_complex():
            return value.to(dtype.to_complex())
        return value.to(dtype) if value.is_floating_point() else value

    model._apply(casted)
    return model


def other_names(model: nn.Module) -> dict[str, str]:
    """The other names of a weight or buffer that is in several places, each with its first name.

    A submodule that is in several places has its weights in one: `functional_call` that ties
    weights puts the caller's into it for each name, and leaves the last of them there.
    """
    first: dict[Tensor, str] = {}
    found: dict[str, str] = {}
    for path, module in model.named_modules():
        own = {"prefix": path, "recurse": False, "remove_duplicate": False}
        for name, value in (*module.named_parameters(**own), *module.named_buffers(**own)):
            if first.setdefault(value, name) != name:
                found[name] = first[value]
    return found


def _too_few(model: nn.Module, num_symbols: int, why: str) -> str:
    return (
        f"{type(model).__name__} does not read the symbols of the task, 0 to {num_symbols - 1}: "
        f"{why}; make it for num_symbols={num_symbols}"
    )
