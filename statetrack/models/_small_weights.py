"""First weights that are small, in maps that end in a residual stream the smaller the deeper it is.

Sources: Nguyen & Salazar (2019), arXiv:1910.05895 (small); Radford et al. (2019), GPT-2, and Beck
et al. (2024), arXiv:2405.04517 (residual).
"""

from __future__ import annotations

from torch import nn


def small_deviation(width: int) -> float:
    """The standard deviation of the first weights of a map from `width` numbers."""
    return float((2 / (5 * width)) ** 0.5)


def residual_deviation(width: int, layers: int) -> float:
    """The standard deviation of the first weights of a map that ends in the residual stream."""
    return float(2 / layers / width**0.5)


def initialise_mlp(mlp: nn.Module | None, width: int, layers: int) -> None:
    """Small weights in an MLP, the last map's as `residual_deviation(width, layers)`; no biases."""
    maps = [] if mlp is None else [part for part in mlp.modules() if isinstance(part, nn.Linear)]
    for number, linear in enumerate(maps, 1):
        small = small_deviation(linear.in_features)
        last = number == len(maps)
        nn.init.normal_(linear.weight, std=residual_deviation(width, layers) if last else small)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
