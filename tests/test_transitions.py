"""What layers say of their recurrences: linear in the state or not, by which operators.

For given inputs, the next recurrent part of a linear layer's state is A part + u. Here A is found
from what a step does to changes of the state, and is compared with the operators that the layer's
`transition` gives; their eigenvalues lie where the settings' class of recurrence says.

B batch, T time, S numbers in the recurrent part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from statetrack.algebra import LinearRecurrence
from statetrack.models import (
    MODELS,
    BlockModel,
    LinearModel,
    RecurrentModel,
    WithTransition,
    recurrence_of,
    variants,
)
from statetrack.settings import build

V, C = 5, 7
NAMES = list(MODELS)


def is_linear(name: str) -> bool:
    """Whether a model's recurrence is of a class that is linear in the state, by default."""
    return isinstance(recurrence_of(MODELS[name].settings_class()), LinearRecurrence)


RECURRENT = [name for name in NAMES if issubclass(MODELS[name], RecurrentModel)]
LINEAR = [name for name in NAMES if is_linear(name)]
SMALL = {"width": 8, "hidden": 8, "size": 3, "heads": 2, "key_dim": 4, "value_dim": 2, "state": 4}
ODD_OPTIONS: list[tuple[str, dict[str, object]]] = [
    ("deltaproduct", {"householders": 3}),
    ("mamba3", {"state": 5, "turned": 0.5}),
    ("mamba3", {"turned": 0.0}),
    ("mamba3", {"turned": 1.0}),
    ("bilinear-cp", {"rank": 3, "additive": "input"}),
    ("hgrn", {"phase": "none"}),
]

State = Any


@dataclass(frozen=True)
class Layer:
    """A layer or a model without layers, inputs [1, T, ...] of some positions, and a state."""

    module: Any
    inputs: Tensor
    state: State

    def moved(self, state: State, num_steps: int = 1) -> State:
        """The state after some positions, every word of a batch with the same inputs."""
        for position in self.inputs[0, :num_steps]:
            together = position.expand(_batch_of(state), *position.shape)
            _, state = self.module.step(together, state)
        return state

    def parts_moved(self, changes: Tensor, num_steps: int = 1) -> Tensor:
        """The recurrent parts [B, ...] after positions, each word's part changed at the start."""
        state = mapped(lambda part: part.expand(len(changes), *part.shape[1:]), self.state)
        part = self.module.recurrent_part(state)
        changed = self.module.with_recurrent_part(state, part + changes.view_as(part))
        moved: Tensor = self.module.recurrent_part(self.moved(changed, num_steps))
        return moved.flatten(1)

    @property
    def size(self) -> int:
        part: Tensor = self.module.recurrent_part(self.state)
        return part.numel()


def mapped(function: Callable[[Tensor], Tensor], state: State) -> State:
    """A state of the same kind, with the results of a function of every tensor in it."""
    if isinstance(state, Tensor):
        return function(state)
    parts = [mapped(function, part) for part in state]
    return tuple(parts) if type(state) is tuple else type(state)(*parts)


def tensors(state: State) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    else:
        for part in state:
            yield from tensors(part)


def _batch_of(state: State) -> int:
    return next(tensors(state)).shape[0]


def layers_of(
    name: str, *, seed: int = 0, scale: float = 1.0, **options: object
) -> Iterator[Layer]:
    """The layers of a model in float64, after some steps; `scale` multiplies its weights."""
    kind = MODELS[name]
    fields = kind.settings_class.model_fields
    small = {key: value for key, value in SMALL.items() if key in fields}
    torch.manual_seed(seed)
    settings = build(kind.settings_class, {**small, **options}, name)
    model = kind(settings, num_symbols=V, num_labels=C).double().eval()
    assert isinstance(model, RecurrentModel)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter)).mul_(scale)
        if isinstance(model, BlockModel):
            for mixer in model.mixers:
                inputs = torch.randn(1, 8, settings.width, dtype=torch.float64)
                state = mixer.initial_state(1)
                for earlier in inputs[:, :5].unbind(1):
                    _, state = mixer.step(earlier, state)
                yield Layer(mixer, inputs[:, 5:], state)
        else:
            _, state = model.scan(torch.tensor([[1, 0, 4]]), model.initial_state(1))
            yield Layer(model, torch.tensor([[2, 0, 2]]), state)


def spread(layer: Layer, num_steps: int = 1) -> tuple[Tensor, Tensor]:
    """A step's action on random changes of the recurrent part, and the changes: [B, S] each.

    Changes are as large as the next part, so that they do not drown in its rounding errors.
    """
    (unchanged,) = layer.parts_moved(torch.zeros(1, layer.size, dtype=torch.float64), num_steps)
    changes = unchanged.abs().max().clamp_min(1.0) * torch.randn(6, layer.size, dtype=torch.float64)
    return layer.parts_moved(changes, num_steps) - unchanged, changes


def matrix_of(layer: Layer) -> Tensor:
    """The matrix [S, S] of a step, from what it does to each coordinate of the recurrent part."""
    unit = torch.eye(layer.size, dtype=torch.float64)
    (unchanged,) = layer.parts_moved(torch.zeros(1, layer.size, dtype=torch.float64))
    reach = unchanged.abs().max().clamp_min(1.0)  # smaller changes would drown in roundings
    return (layer.parts_moved(reach * unit) - unchanged).mT / reach


@torch.no_grad()
def bend(layer: Layer) -> float:
    """How far the map from state to next state is from an affine one, relative to its reach."""
    first, second = (mapped(lambda p: 0.5 * torch.randn_like(p), layer.state) for _ in range(2))

    def at(one: float, two: float) -> list[Tensor]:
        changes = zip(tensors(first), tensors(second), strict=True)
        moves = iter([one * a + two * b for a, b in changes])
        return list(tensors(layer.moved(mapped(lambda part: part + next(moves), layer.state))))

    worst = 0.0
    for origin, found, one, two in zip(at(0, 0), at(2.5, -1.5), at(1, 0), at(0, 1), strict=True):
        if origin.numel() == 0:
            continue
        expected = origin + 2.5 * (one - origin) - 1.5 * (two - origin)
        reach = max((part - origin).abs().max() for part in (one, two)) + origin.abs().max()
        worst = max(worst, float((found - expected).abs().max() / reach.clamp_min(1e-9)))
    return worst


@pytest.mark.parametrize("name", NAMES)
def test_a_model_names_the_class_of_its_recurrence_unless_it_has_none(name: str) -> None:
    recurrence = recurrence_of(MODELS[name].settings_class())
    assert recurrence is not None
    assert recurrence.has_state == (name in RECURRENT)
    if issubclass(MODELS[name], LinearModel):
        assert isinstance(recurrence, LinearRecurrence)


@pytest.mark.parametrize("name", RECURRENT)
def test_layers_have_a_transition_where_the_class_of_recurrence_is_linear(name: str) -> None:
    layers = [layer.module for layer in layers_of(name)]
    assert all(isinstance(layer, WithTransition) for layer in layers) == is_linear(name)


@pytest.mark.parametrize("name", [name for name in RECURRENT if not is_linear(name)])
def test_a_layer_without_a_transition_has_no_affine_step(name: str) -> None:
    bends = [
        bend(layer) for layer in layers_of(name, **no_window(name)) if not has_transition(layer)
    ]
    assert bends and max(bends) > 1e-4


def no_window(name: str) -> dict[str, object]:
    """Options without a memory of earlier inputs, of which gates are no affine functions.

    Where the least window has a memory, its layer bends in any case.
    """
    field = MODELS[name].settings_class.model_fields.get("conv")
    if field is None:
        return {}
    least = [bound.ge for bound in field.metadata if hasattr(bound, "ge")]
    return {"conv": max(1, *least)}


def has_transition(layer: Layer) -> bool:
    return isinstance(layer.module, WithTransition)


every_linear_layer = pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in [*LINEAR, "xlstm"]] + ODD_OPTIONS,
    ids=lambda value: str(value) if value else "",
)


@every_linear_layer
@torch.no_grad()
def test_a_step_adds_the_transition_of_a_change_of_the_recurrent_part(
    name: str, options: dict[str, object]
) -> None:
    for layer in filter(has_transition, layers_of(name, **options)):
        matrix = layer.module.transition(layer.inputs[:, :1], layer.state).dense().squeeze(0)
        assert matrix.shape == (layer.size, layer.size)
        moved, changes = spread(layer)
        torch.testing.assert_close(moved, changes @ matrix.mT, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(matrix_of(layer), matrix, rtol=1e-9, atol=1e-9)


@every_linear_layer
@torch.no_grad()
def test_transitions_of_a_word_act_one_after_the_other(
    name: str, options: dict[str, object]
) -> None:
    """Without a state they are those of the first positions of a word; `apply` is `dense`."""
    for layer in filter(has_transition, layers_of(name, **options)):
        operators = layer.module.transition(layer.inputs, layer.state)
        moved, changes = spread(layer, layer.inputs.shape[1])
        for position in range(layer.inputs.shape[1]):
            rows = torch.full((len(changes),), position)
            by_matrix = changes @ operators.dense()[position].mT
            changes = operators.apply(rows, changes)
            torch.testing.assert_close(changes, by_matrix, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(moved, changes, rtol=1e-8, atol=1e-8)
        picked = torch.tensor([2, 0, 2])
        selected = operators.select(picked).dense()
        torch.testing.assert_close(selected, operators.dense()[picked])


@every_linear_layer
@torch.no_grad()
def test_words_have_their_transitions_in_rows_of_time(
    name: str, options: dict[str, object]
) -> None:
    for layer in filter(has_transition, layers_of(name, **options)):
        words = torch.cat([layer.inputs, layer.inputs.flip(1)])
        together = layer.module.transition(words).dense()
        apart = [layer.module.transition(word.unsqueeze(0)).dense() for word in words]
        torch.testing.assert_close(together, torch.cat(apart))
        first = layer.module.initial_state(2)
        torch.testing.assert_close(layer.module.transition(words, first).dense(), together)


@every_linear_layer
@torch.no_grad()
def test_a_state_with_its_own_recurrent_part_is_that_state(
    name: str, options: dict[str, object]
) -> None:
    for layer in filter(has_transition, layers_of(name, **options)):
        part = layer.module.recurrent_part(layer.state)
        same = layer.module.with_recurrent_part(layer.state, part)
        for mine, other in zip(tensors(same), tensors(layer.state), strict=True):
            torch.testing.assert_close(mine, other)


def eigenvalues(name: str, seed: int, scale: float, options: dict[str, object]) -> Tensor:
    """Those of every layer, for one input, by what a step does; transitions have the same."""
    found = []
    with torch.no_grad():
        for layer in layers_of(name, seed=seed, scale=scale, **no_window(name), **options):
            matrix = matrix_of(layer)
            stated = layer.module.transition(layer.inputs[:, :1], layer.state).dense().squeeze(0)
            assert matrix.isfinite().all(), f"weights times {scale} leave the range of floats"
            torch.testing.assert_close(matrix, stated, rtol=1e-7, atol=1e-7)
            found.append(torch.linalg.eigvals(stated))
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
    bound = re.fullmatch(r"modulus <= (.+)", where)
    if bound:
        return bool((values.abs() < float(bound[1]) + 1e-9).all())
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
        ("gated-deltanet-2", "beta", "double"): "[-1, 1]",
        ("hgrn", "phase", "none"): "(0, 1)",
        ("kda", "beta", "double"): "[-1, 1]",
        ("mamba", "eigenvalues", "signed"): "(-1, 1)",
        ("mlstm", "forget", "exponential"): "(0, inf)",
    }


def unreached(values: Tensor, where: str) -> str:
    """What a transition allows and complex numbers do not reach; empty where there is nothing."""
    if where.startswith("modulus") and not (values.imag.abs() > 1e-3).any():
        return "they are real, which would be worth saying"
    if "-" in where and not (values.real < -0.01).any():
        return "none is negative"
    if where == "any" and not (values.abs() > 1.1).any():
        return "they are bounded, which would be worth saying"
    return ""


@pytest.mark.parametrize(("name", "options", "where"), list(claims()))
def test_eigenvalues_lie_where_the_transition_says_and_reach_what_it_allows(
    name: str, options: dict[str, object], where: str
) -> None:
    """At weights as they start and at large ones, which drive every gate to its ends."""
    found = []
    for seed in range(8):
        found += [eigenvalues(name, seed, scale, options) for scale in (1.0, 3.0)]
        all_values = torch.cat(found)
        if seed >= 3 and not unreached(all_values, where):
            break
    assert lie_in(all_values, where)
    assert not unreached(all_values, where)
