"""The settings of the token-gated and the state-gated RNN, and their matrix for each input.

    A(x) = A_0 + sum_d x_d A_d

B batch, T time, D width, H hidden.
"""

from __future__ import annotations

from torch import Tensor, nn

from statetrack.models._settings import BlockSettings
from statetrack.ops import widened
from statetrack.settings import option

OPEN_GATE = 2.0
"""Initial bias of the gates' logits: a gate is then about sigmoid(2) = 0.88."""


class GatedRNNSettings(BlockSettings):
    """Settings of both gated RNNs."""

    hidden: int = option(32, "Width H of the hidden state.", min=1)
    gain: float = option(
        1.0, "Spectral radius, about, of the matrices at the start (before the gate).", above=0
    )


class InputMatrices(nn.Module):
    """A matrix for every input, linear in it; initially A(x) h has about the norm of h."""

    def __init__(self, width: int, hidden: int, gain: float) -> None:
        super().__init__()
        self.hidden = hidden
        self.map = nn.Linear(width, hidden * hidden)
        deviation = gain / (hidden * (width + 1)) ** 0.5
        nn.init.normal_(self.map.weight, std=deviation)
        nn.init.normal_(self.map.bias, std=deviation)

    def forward(self, inputs: Tensor) -> Tensor:
        """Matrices [..., H, H] of inputs [..., D]."""
        matrices: Tensor = self.map(inputs).unflatten(-1, (self.hidden, self.hidden))
        return widened(matrices)


def multiply(matrices: Tensor, state: Tensor) -> Tensor:
    """A(x_t) h_{t-1} [B, H] for every word: matrices [B, H, H], states [B, H]."""
    return (matrices @ state.unsqueeze(-1)).squeeze(-1)
