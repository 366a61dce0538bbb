"""RG-LRU: the real-gated linear recurrent unit of Hawk and Griffin.

    h_t = a_t * h_{t-1} + sqrt(1 - a_t^2) * (i_t * u_t)
    a_t = exp(-8 r_t softplus(l)),    r_t = sigmoid(W_r u_t + w_r),    i_t = sigmoid(W_i u_t + w_i)
    y_t = W_o (h_t * gelu(W_y x_t + w_y)) + w_o,    u_t = conv(W_u x_t + w_u)

with a number per channel in h, block-diagonal gates W_r and W_i (one block per head), and a short
causal convolution without an activation. The first term is written whole: at the first position
the factor sqrt(1 - a^2) is 1. Gains lie in (0, 1): no group at all, whatever the depth, which makes
it a negative control for state tracking.

Source: De et al. (2024), arXiv:2402.19427, with the details (first position, GELU by tanh, first
weights) of the authors' public code.

Checked: google-deepmind/recurrentgemma @ 1.0.1 (RecurrentBlock in torch), to 1e-12 in
tests/references/test_recorded_state_space.py; outputs, gradients and first weights. Checked:
against the sums over earlier positions written out, to 1e-9 in
tests/references/test_state_space_models.py; outputs and gradients.

State: E numbers (E = expand x width), the last `conv - 1` positions of the convolution's input, and
whether a position was read, per block. Parameters per block: 2 (D + 1) E and (E + 1) D for the
projections, E (conv + 1), 2 (E^2 / heads + E) for the gates and E.

Departures: the recurrent block alone, without the gated MLP that follows each in the source
(`--mlp 3 --mlp-kind geglu` has one without biases and with the exact GELU) and without Griffin's
local attention. Gradients of the square root are not cut off (the code does at 1000, for half
precision). Embeddings start as N(0, 1), the source's from variance 1 / D, and are not shared with
the readout, whose logits the source limits by a tanh.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import PositiveLayers, Size
from statetrack.errors import setting
from statetrack.models._base import require_divisor, through
from statetrack.models._blocks import BlockModel, DiagonalMixer, DiagonalTerms
from statetrack.models._layers import ShortConvolution, Window, block_diagonal
from statetrack.models._linear import Linear, WithKernel
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_OWN_CONV, BlockSettings
from statetrack.ops import in_full_precision, widened
from statetrack.settings import option

SHARPNESS = 8.0
"""The constant c of the gains."""
RING = (0.9, 0.999)
"""Gains at an open gate lie between these at the start, uniform by the area of a ring."""

RGLRUWindow = tuple[Window, Tensor]
"""The convolution's inputs and [B, 1], which is 1 before the first position."""


class RGLRUSettings(BlockSettings):
    """Settings of the real-gated linear recurrent unit."""

    expand: int = option(1, "Channels of the recurrence, as a multiple of the width.", min=1)
    heads: int = option(4, "Diagonal blocks of each gate.", min=1)
    conv: int = option(4, ABOUT_OWN_CONV, min=1)

    @property
    def recurrence(self) -> PositiveLayers:
        """Gains in (0, 1)."""
        return PositiveLayers(layers=Size("layers", self.layers))


class RGLRUMixer(DiagonalMixer[tuple[RGLRUWindow, Tensor]]):
    """Two projections, short convolution, gated diagonal recurrence, product, projection."""

    def __init__(self, settings: RGLRUSettings) -> None:
        super().__init__()
        width, inner = settings.width, settings.expand * settings.width
        require_divisor(
            inner,
            "heads",
            settings.heads,
            f"the channels ({setting('expand')} x {setting('width')})",
        )
        self.inward = Linear(width, inner)  # W_u
        self.gate = Linear(width, inner)  # W_y
        self.convolution = ShortConvolution(inner, settings.conv)
        size = inner // settings.heads
        self.forgetting = BlockDiagonalGate(settings.heads, size)  # W_r
        self.writing = BlockDiagonalGate(settings.heads, size)  # W_i
        least, largest = (bound**2 + 1e-8 for bound in RING)
        squares = torch.empty(inner).uniform_(least, largest)
        self.rates = nn.Parameter((torch.exp(-0.5 * squares.log()) - 1).log())  # l
        self.outward = Linear(inner, width)
        filters = self.convolution.filters
        assert filters is not None and filters.bias is not None
        with torch.no_grad():
            filters.weight.normal_(std=(0.01 / settings.conv) ** 0.5)
            filters.bias.zero_()
            for linear in (self.inward, self.gate, self.outward):
                linear.weight.normal_(std=linear.in_features**-0.5)
                linear.bias.zero_()

    def initial_state(self, num_words: int) -> tuple[RGLRUWindow, Tensor]:
        """Zeros, and ones [B, 1]."""
        zeros = self.rates.new_zeros(num_words, len(self.rates))
        return (self.convolution.initial_state(num_words), torch.ones_like(zeros[:, :1])), zeros

    def terms(self, inputs: Tensor, window: RGLRUWindow) -> tuple[DiagonalTerms, RGLRUWindow]:
        """The gains a and input terms."""
        last, fresh = window
        u, last = self.convolution.scan(self.inward(inputs), last)
        first = fresh
        if inputs.dim() == 3:
            first = torch.cat([fresh, torch.zeros_like(u[:, 1:, 0])], 1).unsqueeze(-1)
        u = widened(u)
        open_gates = torch.sigmoid(self.forgetting(u))
        log_gains = -SHARPNESS * open_gates * functional.softplus(widened(self.rates))
        factors = (-torch.expm1(2 * log_gains)).sqrt()
        factors = first + (1 - first) * factors
        terms = DiagonalTerms(log_gains.exp(), factors * torch.sigmoid(self.writing(u)) * u)
        return terms, (last, torch.zeros_like(fresh))

    def finish(self, read: Tensor, terms: DiagonalTerms, inputs: Tensor) -> Tensor:
        """W_o (h * gelu(W_y x + w_y)) + w_o."""
        gate = functional.gelu(through(self.gate, inputs), approximate="tanh")
        return through(self.outward, read * gate)


class BlockDiagonalGate(WithKernel):
    """A linear map with one block for each group of channels, and a bias."""

    def __init__(self, num_blocks: int, size: int) -> None:
        super().__init__()
        self.blocks = nn.Parameter(torch.randn(num_blocks, size, size) / size**0.5)  # [G, from, to]
        self.bias = nn.Parameter(torch.zeros(num_blocks * size))

    @in_full_precision
    def forward(self, inputs: Tensor) -> Tensor:
        """[.., E] of inputs [.., E]."""
        found = block_diagonal(inputs, self.blocks, kernel=self.kernel)
        return found.flatten(-2) + self.bias


@MODELS.register("rg-lru")
class RGLRU(BlockModel[RGLRUSettings]):
    """RG-LRU: positive gains behind a short convolution, with a gated output (Hawk, Griffin)."""

    settings_class = RGLRUSettings
    mixer_class = RGLRUMixer
    family = "diagonal"
    source = "De et al. 2024, arXiv:2402.19427"
