"""Boxes: what is known of numbers that lie between two bounds, through the steps of a network.

Every function takes boxes of its arguments to a box that contains all results. `unit` says how
exactly those results are computed elsewhere: with 0 the boxes are those of exact arithmetic, and a
gradient goes through them (interval bounds, Gowal et al. 2018, arXiv:1810.12715); with `FLOAT32`,
for boxes in float64, they also contain what a network gives that evaluates the same function in
float32, under two assumptions.

- Sums of n products are added up in any order, with or without fused products, every operation
  being off by a factor within 1 +- 2^-24: so a sum is off by at most n u / (1 - n u) times the sum
  of the absolute values (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1).
- tanh and sigmoid are off by at most 2^-20, which is 16 units in the last place of numbers just
  below 1, and stay in [-1, 1] and [0, 1]. On 2 x 10^7 arguments, torch 2.13 on a CPU stayed within
  2^-23.

`FLOAT32` is 2^-23, twice the error of one operation: the rest covers the rounding of the bounds
themselves in float64, 2^29 times as small.

I inputs, O outputs, C labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

FLOAT32: Final = 2.0**-23
"""The unit of a network in float32, for boxes in float64."""

UNITS_OF_A_FUNCTION: Final = 8
"""By how many units tanh and sigmoid may be off."""


class Box(NamedTuple):
    """All tensors between two tensors of one shape, bounds included."""

    lower: Tensor
    upper: Tensor

    @property
    def centre(self) -> Tensor:
        """The middle of the box."""
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> Tensor:
        """Half its size along every axis."""
        return (self.upper - self.lower) / 2

    @property
    def largest(self) -> Tensor:
        """The largest absolute value of every number."""
        return torch.maximum(self.lower.abs(), self.upper.abs())

    def mapped(self, function: Callable[[Tensor], Tensor]) -> Box:
        """The box whose bounds are a function of these, which does not decrease or moves axes."""
        return Box(function(self.lower), function(self.upper))

    def part(self, index: Any) -> Box:
        """The numbers at an index."""
        return Box(self.lower[index], self.upper[index])

    def chunks(self, number: int) -> list[Box]:
        """As many boxes, of equal parts of the last axis."""
        parts = zip(self.lower.chunk(number, -1), self.upper.chunk(number, -1), strict=True)
        return [Box(*bounds) for bounds in parts]

    def grown(self, by: Tensor | float) -> Box:
        """The box with both bounds moved outward."""
        return Box(self.lower - by, self.upper + by)


class TanhStep(NamedTuple):
    """A step tanh(A(x) h + b(x)) of states in [-1, 1]^D, and a linear readout of them.

    `rounding` [V, D] is at least what the arguments of tanh are off by, as a network computes them.
    """

    matrices: Tensor  # A: [V, D, D]
    biases: Tensor  # b: [V, D]
    rounding: Tensor
    readout: Tensor  # [C, D]
    readout_bias: Tensor  # [C]


def affine(box: Box, weight: Tensor, bias: Tensor, unit: float = 0.0) -> Box:
    """W v + b for v [..., I] in a box, W [O, I] or [..., O, I], b [..., O]: a box [..., O]."""
    centre = _product(weight, box.centre) + bias
    radius = _product(weight.abs(), box.radius)
    if unit:
        sizes = _product(weight.abs(), box.largest) + bias.abs()
        radius = radius + _slack(unit, weight.shape[-1] + 2, sizes)
    return Box(centre - radius, centre + radius)


def _slack(unit: float, num_operations: int, sizes: Tensor) -> Tensor:
    """By how much so many operations are off, on numbers with a sum of absolute values of `sizes`.

    2^-100 stands for numbers that are too small for float32, and may be taken as zero.
    """
    terms = unit * num_operations
    return terms / (1 - terms) * (sizes + 2.0**-100)


def _product(weight: Tensor, vectors: Tensor) -> Tensor:
    """W v for vectors [..., I], with one W for all of them or one for each."""
    if weight.dim() == 2:
        return vectors @ weight.mT
    return (weight @ vectors.unsqueeze(-1)).squeeze(-1)


def tanh(box: Box, unit: float = 0.0) -> Box:
    """The hyperbolic tangent."""
    grown = box.mapped(torch.tanh)
    if unit:
        grown = grown.grown(UNITS_OF_A_FUNCTION * unit)
        return Box(grown.lower.clamp(min=-1), grown.upper.clamp(max=1))
    return grown


def sigmoid(box: Box, unit: float = 0.0) -> Box:
    """The logistic function."""
    grown = box.mapped(torch.sigmoid)
    if unit:
        grown = grown.grown(UNITS_OF_A_FUNCTION * unit)
        return Box(grown.lower.clamp(min=0), grown.upper.clamp(max=1))
    return grown


def plus(one: Box, other: Box, unit: float = 0.0) -> Box:
    """The sum of two boxes' numbers."""
    total = Box(one.lower + other.lower, one.upper + other.upper)
    return total.grown(_slack(unit, 1, total.largest)) if unit else total


def gated(gate: Box, box: Box, unit: float = 0.0) -> Box:
    """The product with numbers that are 0 or more: those of `gate`."""
    product = Box(
        torch.minimum(gate.lower * box.lower, gate.upper * box.lower),
        torch.maximum(gate.lower * box.upper, gate.upper * box.upper),
    )
    return product.grown(_slack(unit, 1, product.largest)) if unit else product


def between(gate: Box, new: Box, old: Box, unit: float = 0.0) -> Box:
    """(1 - g) new + g old, for a gate g in [0, 1]; the bounds are attained at bounds of g.

    In floats it is computed as that, or as new + g (old - new): at most four operations on numbers
    of at most the sum of both sizes.
    """
    lower = torch.minimum(
        new.lower + gate.lower * (old.lower - new.lower),
        new.lower + gate.upper * (old.lower - new.lower),
    )
    upper = torch.maximum(
        new.upper + gate.lower * (old.upper - new.upper),
        new.upper + gate.upper * (old.upper - new.upper),
    )
    mixed = Box(lower, upper)
    return mixed.grown(_slack(unit, 4, new.largest + old.largest)) if unit else mixed


def leads(box: Box, weight: Tensor, bias: Tensor, labels: Tensor, unit: float = 0.0) -> Tensor:
    """By how much each logit can be above that of the label, at most: [..., C].

    The logits are W v + b for v [..., I] in the box; labels are [...]. The difference of two rows
    of W is bounded at once, which is tighter than two logits apart. The label's own entry is 0.
    """
    rows = weight - weight[labels].unsqueeze(-2)  # [..., C, I]
    offsets = bias - bias[labels].unsqueeze(-1)
    found = (rows @ box.centre.unsqueeze(-1)).squeeze(-1) + offsets
    found = found + (rows.abs() @ box.radius.unsqueeze(-1)).squeeze(-1)
    if unit:
        sizes = box.largest @ weight.abs().mT + bias.abs()  # [..., C]: of the logits themselves
        sizes = sizes + sizes.gather(-1, labels.unsqueeze(-1))
        found = found + _slack(unit, weight.shape[-1] + 2, sizes)
    own = torch.zeros_like(labels.unsqueeze(-1), dtype=found.dtype)
    return found.scatter(-1, labels.unsqueeze(-1), own)
