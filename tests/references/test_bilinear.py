"""The bilinear models against one dense recurrence, whose matrices are built from their weights.

h_t = A(x_t) h_{t-1} with A(x)_ij = sum_k W_ijk x_k, the source's own equation: each model's A(x) is
written as a dense matrix from what the source says of its class, for learned embeddings x [D], in
float64. B batch, T time, V symbols, H hidden, D embedding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor

from statetrack.models import MODELS, LinearModel
from statetrack.settings import build
from tests.references.recorded import stated_difference

B, T, V, H, D = 3, 30, 4, 6, 5

Weights = Mapping[str, Tensor]
Matrix = Callable[[Weights, Tensor], Tensor]
"""A(x) [H, H] from the weights of a model and one embedding x [D]."""


def full(weights: Weights, x: Tensor) -> Tensor:
    return torch.einsum("ijk,k->ij", weights["weight"], x)


def blocks(weights: Weights, x: Tensor) -> Tensor:
    return torch.block_diag(*(torch.einsum("ijk,k->ij", each, x) for each in weights["weight"]))


def factors(weights: Weights, x: Tensor) -> Tensor:
    tensor = torch.einsum("ir,jr,rk->ijk", weights["left"], weights["right"], weights["gains"])
    return torch.einsum("ijk,k->ij", tensor, x)


def rotations(weights: Weights, x: Tensor) -> Tensor:
    angles = (weights["angles"] @ x).tolist()
    turns = [[[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]] for a in angles]
    return torch.block_diag(*(torch.tensor(turn, dtype=torch.float64) for turn in turns))


def complex_gains(weights: Weights, x: Tensor) -> Tensor:
    pairs = torch.einsum("npk,k->np", weights["gains"], x).tolist()
    planes = [[[re, -im], [im, re]] for re, im in pairs]
    return torch.block_diag(*(torch.tensor(plane, dtype=torch.float64) for plane in planes))


def gains(weights: Weights, x: Tensor) -> Tensor:
    return torch.diag(weights["gains"] @ x)


def positive_gains(weights: Weights, x: Tensor) -> Tensor:
    return torch.diag(1 / (1 + torch.exp(-weights["gain_logits"] @ x)))


@pytest.mark.parametrize(
    ("name", "matrix", "options"),
    [
        ("bilinear", full, {}),
        ("bilinear-block", blocks, {"block_size": 3}),
        ("bilinear-cp", factors, {"rank": 4}),
        ("bilinear-rotation", rotations, {}),
        ("diagonal-complex", complex_gains, {}),
        ("diagonal-real", gains, {}),
        ("diagonal-positive", positive_gains, {}),
    ],
)
def test_logits_are_those_of_the_equation(name: str, matrix: Matrix, options: dict[str, object]):
    torch.manual_seed(0)
    kind = MODELS[name]
    settings = build(kind.settings_class, {"hidden": H, "embed_dim": D, **options}, name)
    model = kind(settings, num_symbols=V, num_labels=3).double()
    assert isinstance(model, LinearModel) and model.embedding.vectors is not None
    weights = {key: value.detach() for key, value in model.state_dict().items()}
    operators = [matrix(weights, x) for x in model.embedding.vectors.detach()]
    symbols = torch.randint(V, (B, T))
    expected = torch.empty(B, T, 3, dtype=torch.float64)
    for word, row in zip(symbols.tolist(), expected, strict=True):
        state = weights["first"]
        for t, symbol in enumerate(word):
            state = operators[symbol] @ state
            row[t] = weights["readout.weight"] @ state
    tolerance = stated_difference(name)
    torch.testing.assert_close(
        model(symbols).detach(), expected, rtol=tolerance, atol=tolerance * 1e-3
    )
