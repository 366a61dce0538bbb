"""What the generations of RWKV share: the token shift, decays exp(-exp(.)), low-rank maps.

The token shift mixes what is read at a position with the position before it.

B batch, T time, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

LARGEST_LOG_RATE = 20.0
"""Where log(-log w) is cut: w is 0 in floats long before, and e to the power of more overflows."""


def positions_before(inputs: Tensor, last: Tensor) -> Tensor:
    """The position before each of the inputs [B, T, D]; `last` [B, D] is before the first."""
    return torch.cat([last.unsqueeze(1), inputs[:, :-1]], 1)


def first_shifts(width: int, depth: float, powers: Sequence[float]) -> Tensor:
    """How much of the position before each coordinate takes at the start, one row a power.

    Earlier coordinates take more of it, and so do, at a given coordinate, earlier layers; `depth`
    is the number of layers below over that of all.
    """
    place = torch.arange(width) / width
    return 1 - place ** (torch.tensor(powers).unsqueeze(-1) * (1 - depth))


def log_decays_of(log_rates: Tensor) -> Tensor:
    """The logarithm of w = exp(-exp(log_rates))."""
    return -log_rates.clamp_max(LARGEST_LOG_RATE).exp()


class LowRank(nn.Module):
    """bias + activation(x W_1) W_2, which starts as the bias: W_1 is 0, W_2 orthogonal."""

    def __init__(
        self, bias: Tensor | None, rank: int, activation: nn.Module, *, width: int = 0
    ) -> None:
        super().__init__()
        width = width if bias is None else len(bias)
        self.bias = None if bias is None else nn.Parameter(bias)
        self.inner = nn.Linear(width, rank, bias=False)
        self.outer = nn.Linear(rank, width, bias=False)
        self.activation = activation
        nn.init.zeros_(self.inner.weight)
        nn.init.orthogonal_(self.outer.weight, gain=0.1 * max(1.0, rank / width) ** 0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., D] of inputs [..., D]."""
        outputs: Tensor = self.outer(self.activation(self.inner(inputs)))
        return outputs if self.bias is None else outputs + self.bias
