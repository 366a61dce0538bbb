"""SLiCE: the block-diagonal linear controlled differential equation.

    h_t = h_{t-1} + A(x_t) h_{t-1} dt,    A(x) = blockdiag(A_1(x), .., A_N(x))

with N = D / b blocks of size b, each linear in (1, x_t), the 1 being the increment of time; so
each block of a transition I + dt A(x) can be any real matrix, and its eigenvalues any numbers that
are real or conjugate in pairs. The layer's output is h_t. Block size 1 is the diagonal model, size
D the dense one. State: D numbers per layer. Parameters of a layer's mixer: (D + 1) D b + D.

Source: Walker, Yang, Cirone, Salvi & Lyons (2025), arXiv:2505.17761 (the block-diagonal
variant; dt = 1/40 and the normal initialisation as in its released code).

Departures: the first state is a learned vector and every symbol acts on it, where the source
maps the first symbol to the first state and lets the others act; blocks are normalised before
the mixer rather than after it, and have no gated linear stage unless `--mlp` gives one; no
dropout; states are not limited to 10^11 in magnitude.

B batch, T time, N blocks, b block size, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.algebra.recurrences import Blocks, Size
from statetrack.models import MODELS
from statetrack.models._base import require_divisor
from statetrack.models._blocks import BlockModel, PlainMixer
from statetrack.models._settings import BlockSettings
from statetrack.ops.operators import BlockOperators, Operators
from statetrack.ops.precision import in_full_precision, widened
from statetrack.settings import option


class SliceSettings(BlockSettings):
    """Settings of the block-diagonal SLiCE."""

    block_size: int = option(4, "Size b of each block; the width is a multiple of it.", min=1)
    dt: float = option(0.025, "Increment of time between two symbols.", above=0)
    gain: float = option(1.0, "Scale of the blocks' weights at the start.", above=0)

    @property
    def recurrence(self) -> Blocks:
        """Free blocks, linear in the input."""
        return Blocks(size=Size("block_size", self.block_size), linear_readout=False)


class SliceMixer(PlainMixer):
    """h_t = (I + dt A(x_t)) h_{t-1}, block by block."""

    def __init__(self, settings: SliceSettings) -> None:
        super().__init__()
        width, size = settings.width, settings.block_size
        require_divisor(width, "block_size", size)
        self.blocks = (width // size, size, size)
        self.dt = settings.dt
        self.fields = nn.Linear(width, width * size)
        deviation = settings.gain / size**0.5
        nn.init.normal_(self.fields.weight, std=deviation)
        nn.init.normal_(self.fields.bias, std=deviation)
        self.first = nn.Parameter(torch.randn(width))

    def initial_state(self, num_words: int) -> Tensor:
        """The learned first state, repeated for every word: [B, D]."""
        return self.first.expand(num_words, -1)

    def scan(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, D] and the last state [B, D], of inputs [B, T, D]."""
        states = []
        for matrices in self._matrices(inputs).unbind(1):
            state = self._next(matrices, state)
            states.append(state)
        return torch.stack(states, 1), state

    def step(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, D] and the next state [B, D], of inputs [B, D]."""
        state = self._next(self._matrices(inputs), state)
        return state, state

    def transition(self, inputs: Tensor, state: Tensor | None = None) -> Operators:
        """The blocks of every position."""
        return BlockOperators(self._matrices(inputs).flatten(0, 1))

    def _matrices(self, inputs: Tensor) -> Tensor:
        """The blocks [..., N, b, b] of I + dt A(x), for inputs [..., D]."""
        fields = widened(self.fields(inputs)).unflatten(-1, self.blocks)
        identity = torch.eye(self.blocks[-1], dtype=fields.dtype, device=fields.device)
        matrices: Tensor = identity + self.dt * fields
        return matrices

    @in_full_precision
    def _next(self, matrices: Tensor, state: Tensor) -> Tensor:
        """The next state [B, D] of blocks [B, N, b, b]."""
        blocks = state.unflatten(-1, self.blocks[:2])
        products: Tensor = matrices @ blocks.unsqueeze(-1)
        return products.flatten(1)


@MODELS.register("slice")
class Slice(BlockModel[SliceSettings]):
    """Block-diagonal SLiCE: a small matrix for every block, linear in the input."""

    settings_class = SliceSettings
    mixer_class = SliceMixer
    family = "controlled differential equation"
    source = "Walker et al. 2025, arXiv:2505.17761"
