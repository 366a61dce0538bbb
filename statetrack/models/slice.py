"""SLiCE: the block-diagonal linear controlled differential equation.

    h_t = h_{t-1} + A(x_t) h_{t-1} dt,    A(x) = blockdiag(A_1(x), .., A_N(x))
    y_t = x_t + h_t,    z_t = y_t + tanh(W y_t + w),    output = norm(z_t)

with N = D / b blocks of size b, each linear in (1, x_t), the 1 being the increment of time; so
each block of a transition I + dt A(x) can be any real matrix, and its eigenvalues any numbers that
are real or conjugate in pairs. The first symbol is mapped to the first state, h_1 = W_0 x_1 + b_0,
and the others act on it; with `--first learned`, every symbol acts on a learned vector. Block size
1 is the diagonal model, size D the dense one. State: D numbers per layer, and whether a symbol was
read. Parameters of a layer: (D + 1) D b for A, (D + 1) D for the first state (D where it is
learned), (D + 1) D for W and w, and 2 D of the norm.

Source: Walker, Yang, Cirone, Salvi & Lyons (2025), arXiv:2505.17761 (the block-diagonal variant;
the stage after the recurrence, dt = 1/40 and the normal initialisation as in its released code).

Checked: Benjamin-Walker/structured-linear-cdes @ 00f6055 (two blocks, embedding and readout), to
1e-12 in tests/references/test_recorded_matrices.py. Checked: against the equations above written
with dense matrices, to 1e-9 in tests/references/test_full_matrices.py.

Departures: states are not limited (the released code adds 10^11 tanh(dt A h / 10^11) to them); the
norm scales numbers above 2^30 down before it squares them; no dropout (0.01 in the source's runs);
width 64 and one block rather than 128 and two; its runs start with `--gain 0.5`.

B batch, T time, N blocks, b block size, D width.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from statetrack import ops
from statetrack.algebra import Blocks, Size
from statetrack.models._base import require_divisor
from statetrack.models._blocks import AffineMixer, PostNormModel
from statetrack.models._layers import Window
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings, NormKind
from statetrack.ops import BlockOperators, Operators, in_full_precision, widened
from statetrack.settings import option


class SliceSettings(BlockSettings):
    """Settings of the block-diagonal SLiCE."""

    norm: NormKind = option("layer", "Normalisation after each block.")
    block_size: int = option(4, "Size b of each block; the width is a multiple of it.", min=1)
    dt: float = option(0.025, "Increment of time between two symbols.", above=0)
    gain: float = option(
        1.0, "Scale of the weights of blocks and first state at the start.", above=0
    )
    first: Literal["symbol", "learned"] = option(
        "symbol",
        "What the first state is: a linear map of the first symbol, or a learned vector that "
        "every symbol acts on.",
    )
    stage: Literal["tanh", "glu", "none"] = option(
        "tanh",
        "What is added after the recurrence: tanh(W y + w), a gated linear unit, or nothing.",
    )

    @property
    def recurrence(self) -> Blocks:
        """Free blocks, linear in the input."""
        return Blocks(size=Size("block_size", self.block_size), linear_readout=False)


SliceState = tuple[Window, Tensor]
"""[B, 1], which is 1 before the first symbol and 0 after it, or an empty tuple; h [B, D]."""

Terms: TypeAlias = "tuple[Tensor, Tensor | None]"
"""Blocks [..., N, b, b], and what is added to the first state [B, D]; None: nothing."""


class SliceMixer(AffineMixer[SliceState, Terms]):
    """h_t = (I + dt A(x_t)) h_{t-1}, block by block."""

    by_position = False

    def __init__(self, settings: SliceSettings) -> None:
        super().__init__()
        width, size = settings.width, settings.block_size
        require_divisor(width, "block_size", size)
        self.blocks = (width // size, size, size)
        self.dt = settings.dt
        self.fields = Linear(width, width * size)
        deviation = settings.gain / size**0.5
        nn.init.normal_(self.fields.weight, std=deviation)
        nn.init.normal_(self.fields.bias, std=deviation)
        self.first: nn.Parameter | None = None
        self.first_of_symbol: nn.Linear | None = None
        if settings.first == "learned":
            self.first = nn.Parameter(torch.randn(width))
        else:
            self.first_of_symbol = Linear(width, width)
            nn.init.normal_(self.first_of_symbol.weight, std=settings.gain)
            nn.init.normal_(self.first_of_symbol.bias, std=settings.gain)

    def initial_state(self, num_words: int) -> SliceState:
        """No window and the learned first state; or ones [B, 1] and zeros [B, D]."""
        if self.first is not None:
            return (), self.first.expand(num_words, -1)
        zeros = self.fields.weight.new_zeros(num_words, self.fields.in_features)
        return torch.ones_like(zeros[:, :1]), zeros

    def terms(self, inputs: Tensor, window: Window) -> tuple[Terms, Window]:
        """The blocks of I + dt A(x), and what is added after the first of them, or None."""
        fields = widened(self.fields(inputs)).unflatten(-1, self.blocks)
        identity = torch.eye(self.blocks[-1], dtype=fields.dtype, device=fields.device)
        matrices = identity + self.dt * fields
        if self.first_of_symbol is None or isinstance(window, tuple):
            return (matrices, None), window
        now = inputs[:, 0] if inputs.dim() == 3 else inputs
        start = window * widened(self.first_of_symbol(now))
        return (matrices, start), torch.zeros_like(window)

    @in_full_precision
    def advance(self, terms: Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The next state [B, D], twice."""
        matrices, start = terms
        blocks = memory.unflatten(-1, self.blocks[:2])
        memory = (matrices @ blocks.unsqueeze(-1)).flatten(1)
        memory = memory if start is None else memory + start
        return memory, memory

    def recur(self, terms: Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """All states [B, T, D], and the last one."""
        matrices, start = terms
        states: list[Tensor] = []
        for here in matrices.unbind(1):
            memory, _ = self.advance((here, None if states else start), memory)
            states.append(memory)
        return torch.stack(states, 1), memory

    def recur_by_symbol(
        self, terms: Terms, symbols: Tensor, memory: Tensor
    ) -> tuple[Terms, Tensor, Tensor]:
        """The same, by one block for each symbol."""
        blocks = memory.unflatten(-1, self.blocks[:2])
        states = ops.block_recurrence(terms[0], symbols, blocks).flatten(-2)
        return terms, states.transpose(0, 1), states[-1]

    def operators(self, terms: Terms) -> Operators:
        """The blocks of every position."""
        return BlockOperators(terms[0].flatten(0, 1))

    def finish(self, read: Tensor, terms: Terms, inputs: Tensor) -> Tensor:
        """The states themselves."""
        return read


@MODELS.register("slice")
class Slice(PostNormModel[SliceSettings]):
    """Block-diagonal SLiCE: a small matrix for every block, linear in the input."""

    settings_class = SliceSettings
    same_since = "0.2.0"
    mixer_class = SliceMixer
    family = "controlled differential equation"
    source = "Walker et al. 2025, arXiv:2505.17761"

    def make_stage(self) -> nn.Module | None:
        """The map that is added after the recurrence."""
        width, stage = self.settings.width, self.settings.stage
        if stage == "none":
            return None
        if stage == "glu":
            return nn.Sequential(Linear(width, 2 * width), nn.GLU(-1))
        return nn.Sequential(Linear(width, width), nn.Tanh())
