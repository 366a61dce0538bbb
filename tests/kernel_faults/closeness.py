"""The usual test of a kernel: outputs on random inputs, close to those of a reference.

Inputs are drawn as flash-linear-attention's tests draw them (tests/ops/test_gated_delta.py and
test_delta_product.py): q, k, v normal, k of unit length, beta = sigmoid of a uniform number,
g = logsigmoid of a uniform one, a normal first state. Their threshold is a ratio of root mean
squares of 0.005; others use `allclose`. Lengths are those of their tests and one beside a chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tests.kernel_faults.kernels import right_step_by_step

RATIO = 5e-3
LENGTHS = (63, 200)
B, N, K, V = 2, 2, 64, 64


@dataclass(frozen=True)
class Closeness:
    """The largest ratio over the lengths, and whether each test of closeness fails."""

    ratio: float
    by_ratio: bool
    by_allclose_1e2: bool
    by_allclose_1e3: bool


def drawn(length: int, num_keys: int, *, packed: bool) -> dict[str, Any]:
    torch.manual_seed(42)
    words = 1 if packed else B
    shape = (words, length, num_keys, N)
    given: dict[str, Any] = {
        "q": torch.randn(words, length, N, K),
        "k": functional.normalize(torch.randn(*shape, K), dim=-1),
        "v": torch.randn(*shape, V),
        "beta": torch.rand(*shape).sigmoid(),
        "g": functional.logsigmoid(torch.rand(words, length, N)),
        "scale": K**-0.5,
    }
    if packed:
        given["cu_seqlens"] = torch.tensor([0, length // 3, length // 2, length])
    else:
        given["state"] = torch.randn(words, N, K, V)
    return given


def closeness(
    kernel: Callable[..., tuple[Tensor, Tensor]], num_keys: int, *, packed: bool = False
) -> Closeness:
    """How close a kernel in float32 is to the reference in float64."""
    ratio, loose, tight = 0.0, True, True
    for length in LENGTHS:
        given = drawn(length, num_keys, packed=packed)
        found = kernel(**given)[0].double()
        exact = {
            n: t.double() if isinstance(t, Tensor) and t.is_floating_point() else t
            for n, t in given.items()
        }
        right = right_step_by_step(**exact)[0]
        ratio = max(
            ratio, float((found - right).square().mean().sqrt() / right.square().mean().sqrt())
        )
        loose = loose and torch.allclose(found, right, rtol=1e-2, atol=1e-2)
        tight = tight and torch.allclose(found, right, rtol=1e-3, atol=1e-3)
    return Closeness(ratio, not ratio < RATIO, not loose, not tight)
