"""Parts of multi-head recurrences: projections with a short convolution, heads, their norm.

B batch, T time, D width, N heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.models._blocks import OptionalConvolution, Window, rms_norm


class Projection(nn.Module):
    """A linear map without bias; unless `kernel` is 0, then a short convolution and SiLU.

    `bias` is whether the convolution has one. The state is that of the convolution, an empty
    tuple without one.
    """

    def __init__(self, width: int, outputs: int, kernel: int, *, bias: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(width, outputs, bias=False)
        self.convolution = OptionalConvolution(outputs, kernel, nn.SiLU(), bias=bias)

    def initial_state(self, num_words: int) -> Window:
        """The state before the first position."""
        return self.convolution.initial_state(num_words)

    def scan(self, inputs: Tensor, state: Window) -> tuple[Tensor, Window]:
        """Outputs [B, T, outputs] and the last state, of inputs [B, T, D]."""
        return self.convolution.scan(self.linear(inputs), state)

    def step(self, inputs: Tensor, state: Window) -> tuple[Tensor, Window]:
        """Outputs [B, outputs] and the next state, of inputs [B, D]."""
        return self.convolution.step(self.linear(inputs), state)


class HeadNorm(nn.Module):
    """Each head normalised over its own coordinates, with a gain per coordinate."""

    def __init__(self, kind: Literal["rms", "layer"], heads: int, size: int) -> None:
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.ones(heads, size))

    def forward(self, inputs: Tensor) -> Tensor:
        """Heads [..., N, size], normalised and joined to [..., N size]."""
        if self.kind == "rms":
            normal = rms_norm(inputs)
        else:
            normal = functional.layer_norm(inputs, inputs.shape[-1:], eps=1e-5)
        return (normal * self.weight).flatten(-2)


class BlockDiagonal(nn.Module):
    """A linear map without bias that mixes only channels of the same block."""

    def __init__(self, width: int, blocks: int, outputs_per_block: int, deviation: float) -> None:
        super().__init__()
        weight = torch.randn(blocks, width // blocks, outputs_per_block)
        self.weight = nn.Parameter(weight * deviation)

    def forward(self, inputs: Tensor) -> Tensor:
        """Blocks [..., blocks, outputs per block] of inputs [..., D]."""
        blocks = split_heads(inputs, self.weight.shape[0])
        return torch.einsum("...ni,nij->...nj", blocks, self.weight)


def split_heads(inputs: Tensor, heads: int) -> Tensor:
    """[..., D] as [..., N, D / N]."""
    split: Tensor = inputs.unflatten(-1, (heads, -1))
    return split


SMALL_GAIN = 2**-2.5
"""The gain of `draw_small`."""


def draw_small(linear: nn.Linear, sizes: Sequence[int] = ()) -> None:
    """Draw weights anew, Xavier-uniform with a gain of 2^(-5/2), and biases as zeros.

    Outputs of the given `sizes` are drawn as those of separate maps. This is how layers of
    flash-linear-attention started up to 2024.
    """
    with torch.no_grad():
        for part in linear.weight.split(list(sizes) or len(linear.weight)):
            nn.init.xavier_uniform_(part, SMALL_GAIN)
        if linear.bias is not None:
            linear.bias.zero_()
