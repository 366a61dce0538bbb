"""The MinMax recurrence: every coordinate is clamped between two bounds given by the input.

    h_t = max(min(r_t, h_{t-1}), s_t),    r_t = W_r u_t,    s_t = W_s u_t
    y_t = W_o (h_t * sigmoid(W_g u_t))

A coordinate between its bounds is unchanged, without rounding; outside of them it takes the value
of the nearer bound, and where the bounds cross, of the lower bound s. The derivative of a state by
an earlier one is 0 or 1 in each coordinate. The composition of such maps is such a map, so they
could be scanned in parallel; on a CPU the loop is faster, with two operations per step. In the
elementwise form used here its transition monoid is aperiodic: it computes star-free languages only,
and cannot compute parity.

Source: Ronca (2026), MinMax Recurrent Neural Cascades, arXiv:2605.06384; the elementwise form, the
output gate and the order of the bounds are those of the author's public description of the model.

State: N numbers and the last position of u, per block. Parameters per block: 4 D N for the maps,
D (conv + 1) for the convolution, and 2 D M + M + 2 D for the MLP of width M and its norm.

Departures: only the elementwise form, not that of matrices over the min-max algebra, whose
parametrisation we could not find; one short convolution, channel by channel, before the
recurrence and one MLP (GELU) after it, where the author has a mixing convolution of two positions
and then a gated MLP (ReGLU), each with a residual of its own, before the recurrence; no dropout.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.algebra.recurrences import Clamped, Size
from statetrack.models import MODELS
from statetrack.models._blocks import BlockModel, Mixer, ShortConvolution
from statetrack.models._settings import BlockSettings
from statetrack.ops.precision import widened
from statetrack.settings import option


class MinMaxSettings(BlockSettings):
    """Settings of the MinMax recurrence."""

    mlp: float = option(
        1.3, "Width M of each block's MLP, as a multiple of D; 0 leaves it out.", min=0
    )
    state: int = option(64, "Numbers N remembered.", min=1)
    conv: int = option(2, "Positions the short convolution sees, its own included.", min=1)

    @property
    def recurrence(self) -> Clamped:
        """A clamped state."""
        return Clamped(layers=Size("layers", self.layers))


class MinMaxMixer(Mixer[tuple[Tensor, Tensor]]):
    """Short convolution, bounds, clamped state, gate. Its state is the convolution's, h [B, N]."""

    def __init__(self, settings: MinMaxSettings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        self.convolution = ShortConvolution(width, settings.conv)
        self.inward = nn.Linear(width, 3 * state, bias=False)  # W_r, W_s, W_g
        self.outward = nn.Linear(state, width, bias=False)

    def initial_state(self, num_words: int) -> tuple[Tensor, Tensor]:
        """The convolution's state, and zeros [B, N]."""
        weight = self.outward.weight
        return self.convolution.initial_state(num_words), weight.new_zeros(
            num_words, weight.shape[1]
        )

    def scan(
        self, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        window, h = state
        inputs, window = self.convolution.scan(inputs, window)
        upper, lower, gate = self.bounds(inputs)
        states = []
        for low, high in zip(lower.unbind(1), upper.unbind(1), strict=True):
            h = torch.maximum(torch.minimum(high, h), low)
            states.append(h)
        return self.outward(torch.stack(states, 1) * gate), (window, h)

    def step(
        self, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [B, D] and the next state, of inputs [B, D]."""
        window, h = state
        inputs, window = self.convolution.step(inputs, window)
        upper, lower, gate = self.bounds(inputs)
        h = torch.maximum(torch.minimum(upper, h), lower)
        return self.outward(h * gate), (window, h)

    def bounds(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Upper bounds r, lower bounds s and gates, [.., N]."""
        upper, lower, gate = widened(self.inward(inputs)).chunk(3, -1)
        return upper, lower, gate.sigmoid()


@MODELS.register("minmax")
class MinMax(BlockModel[MinMaxSettings]):
    """MinMax recurrence: a state clamped between input-dependent bounds."""

    settings_class = MinMaxSettings
    mixer_class = MinMaxMixer
    family = "min-max"
    source = "Ronca 2026, arXiv:2605.06384"
