"""Parts of blocks: root mean square normalisation within and beyond torch's range, and MLPs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch.nn import functional

from statetrack.models import MODELS
from statetrack.models._blocks import BlockModel
from statetrack.models._layers import (
    HeadNorm,
    RMSNorm,
    make_mlp,
    rms_norm,
)
from statetrack.models._settings import BlockSettings

WIDTH = 24


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-9, 1e-3, 1.0, 1e3, 1e8])
def test_vectors_of_usual_size_are_normalised_exactly_as_torch_does_it(
    size: float, dtype: torch.dtype
) -> None:
    inputs = (size * torch.randn(50, WIDTH)).to(dtype).requires_grad_()
    gain, weights = torch.randn(WIDTH).to(dtype), torch.randn(50, WIDTH).to(dtype)
    found, expected = rms_norm(inputs, gain), functional.rms_norm(inputs, (WIDTH,), gain, 1e-6)
    assert torch.equal(found, expected)
    mine, theirs = (
        torch.autograd.grad((one * weights).sum(), inputs)[0] for one in (found, expected)
    )
    assert torch.equal(mine, theirs)


@pytest.mark.parametrize("size", [1e10, 1e17, 1e20, 1e25, 1e37])
@pytest.mark.parametrize("norm", [RMSNorm(WIDTH), HeadNorm("rms", 1, WIDTH)])
def test_vectors_whose_squares_overflow_are_normalised(norm: torch.nn.Module, size: float) -> None:
    """Their direction counts alone, and gradients by it are the same at every size."""
    direction, weights = torch.randn(50, WIDTH).clamp(-9, 9), torch.randn(50, WIDTH)
    large = (size * direction).requires_grad_()
    found = norm(large.unsqueeze(-2) if isinstance(norm, HeadNorm) else large)
    exact = direction.double().requires_grad_()
    expected = exact / exact.square().mean(-1, keepdim=True).sqrt()
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)
    (gradient,) = torch.autograd.grad((found * weights).sum(), large)
    (wanted,) = torch.autograd.grad((expected * weights).sum(), exact)
    tolerance = 1e-5 if size < 1e37 else 1e-1  # such a gradient has few bits left, near 1e-38
    torch.testing.assert_close(size * gradient.double(), wanted, rtol=tolerance, atol=tolerance)


def test_one_large_vector_leaves_its_neighbours_as_they_are() -> None:
    inputs = torch.randn(3, WIDTH)
    inputs[1] *= 1e30
    found, expected = rms_norm(inputs), functional.rms_norm(inputs, (WIDTH,), None, 1e-6)
    assert torch.equal(found[::2], expected[::2]) and found.isfinite().all()


@pytest.mark.parametrize(
    ("kind", "gate"), [("swiglu", functional.silu), ("geglu", functional.gelu)]
)
def test_a_gated_mlp_is_its_equation(
    kind: Literal["swiglu", "geglu"], gate: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    mlp = make_mlp(BlockSettings(width=WIDTH, mlp=1.5, mlp_kind=kind, norm="none"))
    assert mlp is not None
    sizes = {name: tuple(weight.shape) for name, weight in mlp.named_parameters()}
    assert sizes == {
        "1.gate.weight": (36, WIDTH),
        "1.up.weight": (36, WIDTH),
        "1.down.weight": (WIDTH, 36),
    }
    inputs, weights = torch.randn(5, WIDTH), dict(mlp.named_parameters())
    inner = gate(inputs @ weights["1.gate.weight"].T) * (inputs @ weights["1.up.weight"].T)
    torch.testing.assert_close(mlp(inputs), inner @ weights["1.down.weight"].T)


@pytest.mark.parametrize("name", ["deltanet", "transformer"])
def test_the_mlp_of_a_model_is_of_the_kind_of_its_settings(name: str) -> None:
    kind = MODELS[name]
    settings = kind.settings_class.model_validate({"mlp": 2.0, "mlp_kind": "swiglu"})
    parts = {type(part).__name__ for part in kind(settings, num_symbols=2, num_labels=2).modules()}
    assert "GatedMLP" in parts and "GELU" not in parts


BLOCK_MODELS = [(name, {}) for name, kind in MODELS.items() if issubclass(kind, BlockModel)]


@pytest.mark.parametrize(("name", "given"), [*BLOCK_MODELS, ("pd-ssm", {"one_hot": "rows"})])
def test_what_depends_on_a_symbol_alone_is_computed_once_for_each(
    name: str, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits and gradients are those of a first block that reads position by position."""
    kind = MODELS[name]
    torch.manual_seed(0)
    settings = kind.settings_class.model_validate(given)
    model = kind(settings, num_symbols=4, num_labels=3).double()
    symbols, weights = torch.randint(4, (5, 7)), torch.randn(5, 7, 3, dtype=torch.float64)
    found = [model(symbols)]
    monkeypatch.setattr(BlockModel, "_embedded", lambda self, symbols: self.embedding(symbols))
    found.append(model(symbols))
    mine, theirs = (
        [logits, *torch.autograd.grad((logits * weights).sum(), list(model.parameters()))]
        for logits in found
    )
    tolerance = 1e-5 if kind.computes_in_float32 else 1e-10
    torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)
