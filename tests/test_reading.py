"""Logits of linear recurrences: compiled loops agree with matrices, replica by replica.

R replicas, B batch, T time, V symbols, C labels, H hidden.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from statetrack import MODELS
from statetrack.ops import (
    BlockOperators,
    ComplexDiagonalOperators,
    DenseOperators,
    DiagonalOperators,
    FactoredOperators,
    Operators,
    RotationOperators,
    native,
)

R, B, T, V, C, H = 3, 6, 5, 4, 3, 20

pytestmark = pytest.mark.skipif(
    native.why_not(torch.device("cpu")) is not None, reason="numba cannot be used"
)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64) / shape[-1] ** 0.5


STRUCTURES = {
    "dense": lambda: DenseOperators(normal(R, V, H, H)),
    "factored": lambda: FactoredOperators(normal(R, H, 7), normal(R, V, 7), normal(R, H, 7)),
    "blocks of 4": lambda: BlockOperators(normal(R, V, 5, 4, 4)),
    "rotation": lambda: RotationOperators(normal(R, V, 10)),
    "diagonal": lambda: DiagonalOperators(normal(R, V, H)),
    "complex diagonal": lambda: ComplexDiagonalOperators(
        torch.complex(normal(R, V, 10), normal(R, V, 10))
    ),
}


@pytest.fixture(params=STRUCTURES)
def operators(request: pytest.FixtureRequest) -> Operators:
    made: Operators = STRUCTURES[request.param]()
    return made


def of_replica(operators: Operators, replica: int) -> Operators:
    parts = {each.name: getattr(operators, each.name)[replica] for each in fields(operators)}
    return replace(operators, **parts)


def written_out(
    operators: Operators, symbols: Tensor, first: Tensor, readout: Tensor
) -> tuple[Tensor, Tensor]:
    """The logits and last states by products with the dense matrices, one after the other."""
    logits, last = [], []
    for replica in range(R):
        matrices, state, read = of_replica(operators, replica).dense(), first[replica], []
        for time in range(symbols.shape[-1]):
            state = torch.einsum("bij,bj->bi", matrices[symbols[replica, :, time]], state)
            read.append(state @ readout[replica].mT)
        logits.append(torch.stack(read, 1))
        last.append(state)
    return torch.stack(logits), torch.stack(last)


@pytest.mark.parametrize("with_last", [False, True])
@pytest.mark.parametrize("kernel", ["torch", "native"])
def test_logits_and_gradients_of_replicas_are_those_of_matrices(
    operators: Operators, kernel: str, with_last: bool
) -> None:
    symbols = torch.randint(V, (R, B, T))
    weights = [getattr(operators, each.name) for each in fields(operators)]
    given = [part.requires_grad_() for part in (*weights, normal(R, B, H), normal(R, C, H))]
    weighed, by_last = normal(R, B, T, C), normal(R, B, H)
    weighed[:, ::2, 2:] = 0  # as of padding
    found = []
    for logits, last in (
        operators.read(symbols, given[-2], given[-1], kernel=kernel),  # type: ignore[arg-type]
        written_out(operators, symbols, given[-2], given[-1]),
    ):
        total = (logits * weighed).sum() + with_last * (last * by_last).sum()
        found.append((logits, last, *torch.autograd.grad(total, given)))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_padding_changes_no_gradient(operators: Operators) -> None:
    symbols, weighed = torch.randint(V, (R, B, T)), normal(R, B, 3, C)
    weights = [getattr(operators, each.name) for each in fields(operators)]
    given = [part.requires_grad_() for part in (*weights, normal(R, B, H), normal(R, C, H))]
    found = []
    for words in (symbols[..., :3], symbols):
        logits, _ = operators.read(words, given[-2], given[-1], kernel="native")
        found.append(torch.autograd.grad((logits[:, :, :3] * weighed).sum(), given))
    for short, long in zip(*found, strict=True):
        assert torch.equal(short, long)


@torch.no_grad()
def test_normalised_states_give_logits_of_the_same_direction(operators: Operators) -> None:
    symbols, first, readout = torch.randint(V, (R, B, 40)), normal(R, B, H), normal(R, C, H)
    expected, _ = written_out(operators, symbols, first, readout)
    found, last = operators.read(symbols, first, readout, normalise_every=8, kernel="native")
    directions = (part / part.norm(dim=-1, keepdim=True) for part in (found, expected))
    torch.testing.assert_close(*directions)
    if not isinstance(operators, RotationOperators | FactoredOperators):
        sizes = last.abs().amax(-1)
        assert ((sizes >= 1) & (sizes < 2)).all()


@pytest.mark.parametrize(
    "name", [name for name in MODELS if getattr(MODELS[name], "operators_by_replica", False)]
)
@pytest.mark.parametrize("bias", [False, True])
def test_a_population_reads_as_each_replica(name: str, bias: bool) -> None:
    reads_as_each_replica(name, torch.randint(V, (R, B, T)), readout_bias=bias)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("words", [B, 1])
def test_a_population_of_saturating_networks_reads_as_each_replica(
    name: str, layers: int, words: int
) -> None:
    """Also where a word has fewer positions than there are symbols."""
    steps = T if words > 1 else V - 1
    reads_as_each_replica(name, torch.randint(V, (R, words, steps)), layers=layers)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_a_hook_on_the_readout_is_called(name: str) -> None:
    model = MODELS[name](MODELS[name].settings_class(hidden=12), num_symbols=V, num_labels=C)
    symbols, given = torch.randint(V, (B, T)), list[Tensor]()
    alone = model(symbols)
    model.readout.register_forward_hook(lambda _, inputs, __: given.append(inputs[0]))
    torch.testing.assert_close(model(symbols), alone)
    read = functional.linear(given[0], model.readout.weight, model.readout.bias)
    torch.testing.assert_close(read, alone)


def reads_as_each_replica(name: str, symbols: Tensor, **given: Any) -> None:
    """In one call with all weights, as one at a time and as `vmap` has it; with its gradients."""
    kind = MODELS[name]
    settings = kind.settings_class(hidden=12, **given)
    models = [kind(settings, num_symbols=V, num_labels=C).double() for _ in range(R)]
    assert models[0].reads_replicas
    weights, _ = stack_module_state(list(models))
    apart = torch.stack([model(words) for model, words in zip(models, symbols, strict=True)])

    def run(weights: dict[str, Tensor], symbols: Tensor) -> Tensor:
        found: Tensor = functional_call(models[0], weights, (symbols,))
        return found

    together, mapped = run(weights, symbols), vmap(run)(weights, symbols)
    torch.testing.assert_close(together, apart)
    torch.testing.assert_close(mapped, apart)
    with torch.no_grad():
        torch.testing.assert_close(run(weights, symbols), apart)
    gradients = [
        torch.autograd.grad(found.square().sum(), list(weights.values()), retain_graph=True)
        for found in (together, mapped)
    ]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_symbol_without_an_operator_is_refused(operators: Operators) -> None:
    for wrong in (-1, V):
        symbols = torch.full((R, B, T), wrong)
        with pytest.raises(IndexError):
            operators.read(symbols, normal(R, B, H), normal(R, C, H), kernel="native")


def test_what_replicas_cannot_share_is_mapped() -> None:
    kind = MODELS["bilinear"]
    for given in ({"embed_dim": 3}, {"additive": "input"}):
        settings = kind.settings_class(**given)
        assert not kind(settings, num_symbols=V, num_labels=C).reads_replicas
