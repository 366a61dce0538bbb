"""What models say of their recurrences: linear in the state or not, and where eigenvalues lie.

A mixer's next state depends on its inputs, on what it remembers of earlier inputs (the window
of a short convolution, say) and on the recurrent part of the state; only in that last part can
it be linear, and here that is the part with the most numbers.

B batch, S numbers in the recurrent part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from statetrack.algebra.recurrences import Attention, LinearRecurrence
from statetrack.models import MODELS
from statetrack.models._base import LinearModel, RecurrentModel
from statetrack.models._blocks import BlockModel
from statetrack.models._settings import recurrence_of, variants
from statetrack.settings import build

V, C = 5, 7
NAMES = list(MODELS)


def is_linear(name: str) -> bool:
    """Whether a model's recurrence is of a class that is linear in the state, by default."""
    return isinstance(recurrence_of(MODELS[name].settings_class()), LinearRecurrence)


RECURRENT = [name for name in NAMES if issubclass(MODELS[name], RecurrentModel)]
LINEAR = [name for name in NAMES if is_linear(name)]
SMALL = {"width": 8, "hidden": 8, "size": 3, "heads": 2, "key_dim": 4, "value_dim": 2, "state": 4}
SMALL |= {"conv": 1}  # a window of no earlier inputs

Step = Callable[[Any], Any]


@dataclass(frozen=True)
class Recurrence:
    """One layer's map from state to next state, for inputs that stay the same."""

    name: str
    step: Step
    state: Any

    def recurrent_part(self, state: Any) -> list[Tensor]:
        """The tensors of most numbers, in the units in which the recurrence is stated."""
        state = in_units_of_the_equation(self.name, state)
        parts = list(tensors(state))
        most = max(part[0].numel() for part in parts)
        return [part for part in parts if part[0].numel() == most]

    def moved(self, change: list[Tensor]) -> list[Tensor]:
        """The next recurrent part, after a change has been added to this one."""
        changes = iter(change)
        plain = in_units_of_the_equation(self.name, self.state)
        most = max(part[0].numel() for part in tensors(plain))

        def add(part: Tensor) -> Tensor:
            return part + next(changes) if part[0].numel() == most else part

        changed = as_it_is_held(self.name, mapped(add, plain))
        return self.recurrent_part(self.step(changed))


def tensors(state: Any) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    else:
        for part in state:
            yield from tensors(part)


def mapped(function: Callable[[Tensor], Tensor], state: Any) -> Any:
    if isinstance(state, Tensor):
        return function(state)
    return tuple(mapped(function, part) for part in state)


def in_units_of_the_equation(name: str, state: Any) -> Any:
    """States are held in pieces for the sake of range: a direction and a logarithm, say."""
    if name == "full-matrix":
        direction, log_norm = state
        return (direction * log_norm.exp()[:, None, None],)
    if name == "mlstm":
        memory, matrices, maxima = state
        return memory, matrices * maxima.exp()[..., None, None], maxima
    if name == "rwkv4":
        scaled, exponents, last = state
        return scaled * exponents.exp().unsqueeze(-2), exponents, last
    return state


def as_it_is_held(name: str, state: Any) -> Any:
    if name == "full-matrix":
        (matrices,) = state
        norm = matrices.flatten(1).norm(dim=1)
        return matrices / norm[:, None, None], norm.log()
    if name == "mlstm":
        memory, matrices, maxima = state
        return memory, matrices * (-maxima).exp()[..., None, None], maxima
    if name == "rwkv4":
        sums, exponents, last = state
        return sums * (-exponents).exp().unsqueeze(-2), exponents, last
    return state


def recurrences(
    name: str, *, batch: int, seed: int = 0, scale: float = 1.0, **options: object
) -> Iterator[Recurrence]:
    """The layers of a model in float64, after some steps; `scale` multiplies its weights."""
    kind = MODELS[name]
    fields = kind.settings_class.model_fields
    small = {key: value for key, value in SMALL.items() if key in fields}
    torch.manual_seed(seed)
    settings = build(kind.settings_class, {**small, **options}, name)
    model = kind(settings, num_symbols=V, num_labels=C).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter)).mul_(scale)
    if isinstance(model, BlockModel):
        for block in model._blocks():
            inputs = [torch.randn(1, settings.width, dtype=torch.float64) for _ in range(6)]
            state = block.mixer.initial_state(1)
            for earlier in inputs[:-1]:
                _, state = block.mixer.step(earlier, state)
            *_, last = inputs
            yield Recurrence(name, stepper(block.mixer, last, batch), repeated(state, batch))
    else:
        assert isinstance(model, RecurrentModel)
        state = model.initial_state(1)
        for symbol in (1, 0, 4):
            _, state = model.step(torch.tensor([symbol]), state)
        yield Recurrence(name, stepper(model, torch.tensor([2]), batch), repeated(state, batch))


def stepper(layer: Any, inputs: Tensor, batch: int) -> Step:
    together = inputs.expand(batch, *inputs.shape[1:])
    return lambda state: layer.step(together, state)[1]


def repeated(state: Any, batch: int) -> Any:
    return mapped(lambda part: part.expand(batch, *part.shape[1:]), state)


@torch.no_grad()
def bend(recurrence: Recurrence) -> float:
    """How far the map from state to next state is from an affine one, relative to its reach."""
    shapes = recurrence.recurrent_part(recurrence.state)
    first, second = ([0.5 * torch.randn_like(part) for part in shapes] for _ in range(2))
    zero = [torch.zeros_like(part) for part in shapes]
    both = [2.5 * one - 1.5 * two for one, two in zip(first, second, strict=True)]
    here, there, at_first, at_second = map(recurrence.moved, (zero, both, first, second))
    worst = 0.0
    for origin, found, one, two in zip(here, there, at_first, at_second, strict=True):
        expected = origin + 2.5 * (one - origin) - 1.5 * (two - origin)
        reach = max((part - origin).abs().max() for part in (one, two)) + origin.abs().max()
        worst = max(worst, float((found - expected).abs().max() / reach))
    return worst


@pytest.mark.parametrize("name", NAMES)
def test_a_model_names_the_class_of_its_recurrence_unless_it_has_none(name: str) -> None:
    recurrence = recurrence_of(MODELS[name].settings_class())
    assert recurrence is not None
    assert isinstance(recurrence, Attention) != (name in RECURRENT)
    if issubclass(MODELS[name], LinearModel):
        assert isinstance(recurrence, LinearRecurrence)


@pytest.mark.parametrize("name", RECURRENT)
def test_a_state_is_an_affine_function_of_the_one_before_where_the_model_says_so(
    name: str,
) -> None:
    bends = [bend(recurrence) for recurrence in recurrences(name, batch=1)]
    if is_linear(name):
        assert max(bends) < 1e-9
    else:
        assert max(bends) > 1e-4


def matrix_of(recurrence: Recurrence) -> Tensor:
    """The matrix [S, S] of an affine map, from what it does to each coordinate."""
    (part,) = recurrence.recurrent_part(recurrence.state)
    size = part[0].numel()
    unit = torch.eye(size, dtype=part.dtype).reshape(part.shape[0] - 1, *part.shape[1:])
    change = torch.cat([torch.zeros_like(part[:1]), unit])
    with torch.no_grad():
        (unchanged,) = recurrence.moved([torch.zeros_like(part)])
        reach = unchanged.abs().max().clamp_min(1.0)  # smaller changes would drown in roundings
        (after,) = recurrence.moved([reach * change])
    return (after[1:] - after[:1]).flatten(1).mT / reach


def eigenvalues(name: str, seed: int, scale: float, options: dict[str, object]) -> Tensor:
    """Those of every layer, for one input."""
    found = []
    (one, *_) = recurrences(name, batch=1, **options)
    size = one.recurrent_part(one.state)[0].numel()
    for recurrence in recurrences(name, batch=size + 1, seed=seed, scale=scale, **options):
        matrix = matrix_of(recurrence)
        assert matrix.isfinite().all(), f"weights times {scale} leave the range of floats"
        found.append(torch.linalg.eigvals(matrix))
    return torch.cat(found)


def lie_in(values: Tensor, where: str) -> bool:
    """Whether complex numbers lie where a transition says, up to rounding."""
    interval = re.fullmatch(r"[\[(](.+), (.+)[\])]", where)
    if interval:
        low, high = map(float, interval.groups())
        real = bool((values.imag.abs() < 1e-6).all())
        return real and bool(((values.real > low - 1e-6) & (values.real < high + 1e-6)).all())
    if where == "modulus 1":
        return bool(((values.abs() - 1).abs() < 1e-9).all())
    if where == "modulus <= 1":
        return bool((values.abs() < 1 + 1e-9).all())
    assert where == "any", f"no test knows what {where!r} means"
    return True


def claims() -> Iterator[Any]:
    for name in LINEAR:
        kind = MODELS[name].settings_class
        default = recurrence_of(kind())
        assert isinstance(default, LinearRecurrence)
        yield pytest.param(name, {}, default.eigenvalues, id=name)
        for other in variants(kind):
            given = {other.setting: other.value}
            yield pytest.param(name, given, other.recurrence.eigenvalues, id=f"{name} {given}")


def test_settings_that_change_the_eigenvalues_are_found() -> None:
    found = {
        (name, other.setting, other.value): other.recurrence.eigenvalues
        for name in LINEAR
        for other in variants(MODELS[name].settings_class)
    }
    assert found == {
        ("deltanet", "beta", "double"): "[-1, 1]",
        ("gated-deltanet", "beta", "double"): "[-1, 1]",
        ("hgrn", "phase", "none"): "(0, 1)",
        ("mamba", "eigenvalues", "signed"): "(-1, 1)",
        ("mlstm", "forget", "exponential"): "(0, inf)",
    }


@pytest.mark.parametrize(("name", "options", "where"), list(claims()))
def test_eigenvalues_lie_where_the_transition_says_and_reach_what_it_allows(
    name: str, options: dict[str, object], where: str
) -> None:
    """At weights as they start and at large ones, which drive every gate to its ends."""
    all_values = torch.cat(
        [eigenvalues(name, seed, scale, options) for seed in range(4) for scale in (0.5, 1.0, 3.0)]
    )
    assert lie_in(all_values, where)
    if where.startswith("modulus"):
        assert (all_values.imag.abs() > 1e-3).any(), "they are real, which would be worth saying"
    if "-" in where:
        assert (all_values.real < -0.01).any(), "none is negative"
    if where == "any":
        assert (all_values.abs() > 1.1).any(), "they are bounded, which would be worth saying"
