"""The MinMax recurrence: every coordinate is clamped between two bounds given by the input.

    a_t = x_t + V [norm(x_{t-1}), norm(x_t)] + v                         convolution
    b_t = a_t + W_2 (relu(W_g norm(a_t) + w_g) * (W_1 norm(a_t) + w_1)) + w_2
    u_t = norm(b_t),    r_t = W_r u_t + c_r,    s_t = W_s u_t + c_s      bounds
    h_t = max(min(r_t, h_{t-1}), s_t)
    output = x_t + W_o (h_t * sigmoid(W_h u_t + c_h)) + c_o

A coordinate between its bounds is unchanged, without rounding; outside of them it takes the value
of the nearer bound, and where the bounds cross, of the lower bound s. The derivative of a state by
an earlier one is 0 or 1 in each coordinate. The composition of such maps is such a map, so they
could be scanned in parallel; on a CPU the loop is faster, with two operations per step. In the
elementwise form used here its transition monoid is aperiodic: it computes star-free languages only,
and cannot compute parity. Norms, biases and the maps around the recurrence do not change that:
they depend on two positions of the layer's input, so where that repeats itself, so do they. The
position before is needed: with one alone, the state after a symbol read twice is the one after it
was read once, so a stack could not even tell which symbol came before the last.

Source: Ronca (2026), MinMax Recurrent Neural Cascades, arXiv:2605.06384, and the author's public
description and code of the model.

Checked: minmaxrnc/model @ 01ad9c7 (the backbone of two layers, run from the package minmaxrnc
0.3.0), to 1e-12 in tests/references/test_recorded_matrices.py.

State: N numbers and the last position of norm(x), per block. Parameters per block: 3 (D + 1) N +
(N + 1) D for the bounds, the gate and the output, (2 D + 1) D for the convolution, 2 (D + 1) M +
(M + 1) D for the MLP of width M, and 6 D for the norms.

Departures: only the elementwise form, not that of matrices over the min-max algebra, whose code
we could not find; M = 1.3 D is rounded to the nearest integer (in the source up to an even one);
a readout with a bias in place of the embedding's transpose, because labels are not symbols, which
starts as it does; width 64 and one layer, where the source's smallest preset has 90 and two; no
dropout (0.1 in the source's MLPs after the first).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.algebra import Clamped, Size
from statetrack.models._base import through
from statetrack.models._blocks import Block, BlockModel, Mixer
from statetrack.models._layers import (
    initialise_mlp,
    make_mlp,
    make_norm,
    residual_deviation,
    small_deviation,
)
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings, MLPKind, NormKind
from statetrack.ops import clamped_recurrence, widened
from statetrack.settings import option


class MinMaxSettings(BlockSettings):
    """Settings of the MinMax recurrence."""

    norm: NormKind = option(
        "layer", "Normalisation before each convolution, MLP, recurrence and the readout."
    )
    mlp: float = option(
        1.3,
        "Width M of the MLP before each recurrence, as a multiple of D; 0 leaves it out.",
        min=0,
    )
    mlp_kind: MLPKind = option(
        "reglu",
        "The MLP: gelu is W_2 gelu(W_1 x + b_1) + b_2; swiglu, geglu and reglu are "
        "W_2 (f(W_g x + b_g) * (W_1 x + b_1)) + b_2, with f = silu, gelu or relu.",
    )
    state: int = option(64, "Numbers N remembered.", min=1)
    conv: int = option(2, "Positions the convolution sees, its own included.", min=2)

    @property
    def recurrence(self) -> Clamped:
        """A clamped state."""
        return Clamped(layers=Size("layers", self.layers))


class MinMaxMixer(Mixer[tuple[Tensor, Tensor]]):
    """Convolution, MLP, bounds, clamped state, gate. Its state is the last inputs', and h [B, N].

    Its inputs are not normalised: it has the norms of a block.
    """

    def __init__(self, settings: MinMaxSettings) -> None:
        super().__init__()
        width, state, positions = settings.width, settings.state, settings.conv
        self.convolution_norm = make_norm(settings.norm, width)
        self.convolution = Linear(positions * width, width)
        self.mlp = make_mlp(settings, bias=True)
        initialise_mlp(self.mlp, round(settings.mlp * width), settings.layers)
        self.norm = make_norm(settings.norm, width)
        self.inward = Linear(width, 3 * state)  # W_r, W_s, W_h
        self.outward = Linear(state, width)
        nn.init.normal_(self.convolution.weight, std=small_deviation(positions * width))
        nn.init.normal_(self.inward.weight, std=small_deviation(width))
        nn.init.normal_(self.outward.weight, std=residual_deviation(state, settings.layers))
        for linear in (self.convolution, self.inward, self.outward):
            nn.init.zeros_(linear.bias)

    def initial_state(self, num_words: int) -> tuple[Tensor, Tensor]:
        """Zeros [B, positions - 1, D] before the first input, and zeros [B, N]."""
        width, state = self.outward.weight.shape
        positions = self.convolution.in_features // width
        zeros = self.outward.weight.new_zeros
        return zeros(num_words, positions - 1, width), zeros(num_words, state)

    def scan(
        self, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        window, h = state
        inputs, window = self._mixed(inputs, window)
        upper, lower, gate = self.bounds(inputs)
        states, h = clamped_recurrence(lower, upper, h)
        return self.outward(states * gate), (window, h)

    def _mixed(self, inputs: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        """Convolution and MLP [B, T, D], normalised, and the last inputs."""
        seen = torch.cat([window, through(self.convolution_norm, inputs)], 1)
        starts = range(window.shape[1] + 1)
        together = torch.cat([seen[:, start : start + inputs.shape[1]] for start in starts], -1)
        inputs = inputs + self.convolution(together)
        if self.mlp is not None:
            inputs = self.mlp.added_to(inputs)
        return through(self.norm, inputs), seen[:, seen.shape[1] - window.shape[1] :]

    def bounds(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Upper bounds r, lower bounds s and gates, [.., N]."""
        upper, lower, gate = widened(self.inward(inputs)).chunk(3, -1)
        return upper, lower, gate.sigmoid()


@MODELS.register("minmax")
class MinMax(BlockModel[MinMaxSettings]):
    """MinMax recurrence: a state clamped between input-dependent bounds."""

    settings_class = MinMaxSettings
    same_since = "0.2.0"
    mixer_class = MinMaxMixer
    family = "min-max"
    source = "Ronca 2026, arXiv:2605.06384"

    def make_block(self, layer: int) -> Block:
        """A block without norm and MLP around its mixer, which has its own."""
        bare = self.settings.model_copy(update={"mlp": 0.0, "norm": "none"})
        return Block(bare, self.make_mixer(layer))

    def initialise_frame(self) -> None:
        """Embedding and readout start small."""
        deviation = small_deviation(self.settings.width)
        nn.init.normal_(self.embedding.weight, std=deviation)
        nn.init.normal_(self.readout.weight, std=deviation)
        nn.init.zeros_(self.readout.bias)
