"""Mamba-2: one decay per head.

    S_t = exp(dt_t A) S_{t-1} + B_t (dt_t x_t)^T,    y_t = S_t^T C_t + D x_t

with a matrix state S [N, P] in each of the heads, which have P channels of x each; A < 0, D and
the bias of dt_t = softplus(. + b) are one number per head, B_t and C_t [N] are shared by all heads.
x_t, B_t and C_t are outputs of one projection and a short causal convolution (SiLU); the output is
gated by SiLU, normalised (RMS) and projected back. Every eigenvalue of a transition is the head's
exp(dt_t A), in (0, 1): no parity on long words.

Source: Dao & Gu (2024), Transformers are SSMs, arXiv:2405.21060.

State: E N numbers (E = expand x width = heads x P) and the last `conv - 1` positions of x, B and
C, per block. Parameters per block: D (2 E + 2 N + heads) + E D for the projections,
(E + 2 N) (conv + 1), 3 heads and E.

Checked: state-spaces/mamba @ 2.3.2.post1 (Mamba2Simple), to 1e-12 in
tests/references/test_recorded_state_space.py; outputs, gradients and first weights. Checked:
transformers (Mamba2Mixer), to 2e-4 in tests/references/test_state_space_models.py; outputs and
gradients.

Departures: of the layer, none from the authors' code with one group of B and C. N = 64 and heads of
P = 32 channels, where the paper has 128 and 64 at widths from 768. Embeddings start as N(0, 1), the
authors' language models from N(0, 0.02^2), and those divide `outward` by the root of the number of
layers. The readout has a bias. Norms of the blocks add 1e-6 to the mean square, the source 1e-5.
Weight decay, where it is asked for, leaves `log_rates`, `time_step_bias` and `skip` alone, as in
the authors' code.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra import PositiveLayers, Size
from statetrack.errors import setting
from statetrack.models._base import require_divisor, through, zeros
from statetrack.models._blocks import AffineMixer, BlockModel
from statetrack.models._layers import (
    RMSNorm,
    ShortConvolution,
    Window,
    draw_time_steps,
    gated,
    inverse_softplus,
)
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_OWN_CONV, KernelSettings
from statetrack.ops import (
    ColumnwiseOperators,
    DiagonalOperators,
    Operators,
    in_full_precision,
    widened,
)
from statetrack.settings import option


class Mamba2Settings(KernelSettings):
    """Settings of Mamba-2."""

    state: int = option(64, "Numbers N remembered for each channel.", min=1)
    expand: int = option(2, "Channels of the recurrence, as a multiple of the width.", min=1)
    heads: int = option(4, "Heads, each with its own decay.", min=1)
    conv: int = option(4, ABOUT_OWN_CONV, min=1)

    @property
    def recurrence(self) -> PositiveLayers:
        """A gain in (0, 1) for each head."""
        return PositiveLayers(layers=Size("layers", self.layers), structure="one scalar per head")


class Mamba2Terms(NamedTuple):
    """The terms of the recurrence at some positions, and the output's gate."""

    x: Tensor  # [.., heads, P]
    writings: Tensor  # B, [.., N]
    readings: Tensor  # C, [.., N]
    steps: Tensor  # dt, [.., heads]
    log_decays: Tensor  # dt A, [.., heads]
    gate: Tensor  # [.., E]


class Mamba2Mixer(AffineMixer[tuple[Window, Tensor], Mamba2Terms]):
    """Projection, short convolution, decaying matrix states, gated norm, projection.

    Its state is that of the convolution and S [B, heads, N, P].
    """

    without_decay = ("log_rates", "time_step_bias", "skip")

    def __init__(self, settings: Mamba2Settings) -> None:
        super().__init__()
        width, inner = settings.width, settings.expand * settings.width
        heads, state = settings.heads, settings.state
        require_divisor(
            inner, "heads", heads, f"the channels ({setting('expand')} x {setting('width')})"
        )
        self.head_shape = (heads, inner // heads)
        self.state_shape = (heads, state, inner // heads)
        self.sizes = (inner, state, state)
        self.inward = Linear(width, 2 * inner + 2 * state + heads, bias=False)
        self.convolution = ShortConvolution(inner + 2 * state, settings.conv, nn.SiLU())
        self.log_rates = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())  # log(-A)
        self.time_step_bias = nn.Parameter(inverse_softplus(draw_time_steps(heads)))
        self.skip = nn.Parameter(torch.ones(heads))
        self.norm = RMSNorm(inner, 1e-5)
        self.outward = Linear(inner, width, bias=False)

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The convolution's state, and zeros [B, heads, N, P]."""
        states = zeros(self.skip, num_words, *self.state_shape)
        return self.convolution.initial_state(num_words), states

    def terms(self, inputs: Tensor, window: Window) -> tuple[Mamba2Terms, Window]:
        """X, B, C, time steps, decays and the gate."""
        heads, inner = self.head_shape[0], self.sizes[0]
        gate, mixed, steps = self.inward(inputs).split((inner, sum(self.sizes), heads), -1)
        mixed, window = self.convolution.scan(mixed, window)
        x, writings, readings = widened(mixed).split(self.sizes, -1)
        x = x.unflatten(-1, self.head_shape)
        steps = functional.softplus(widened(steps) + self.time_step_bias)
        log_decays = steps * -self.log_rates.exp()
        return Mamba2Terms(x, writings, readings, steps, log_decays, gate), window

    @in_full_precision
    def advance(self, terms: Mamba2Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What is read [B, heads, P], and the next states [B, heads, N, P]."""
        x, writings, readings, steps, log_decays, _ = terms
        written = torch.einsum("bn,bhp->bhnp", writings, steps.unsqueeze(-1) * x)
        memory = log_decays.exp()[..., None, None] * memory + written
        return torch.einsum("bhnp,bn->bhp", memory, readings), memory

    def recur(self, terms: Mamba2Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What is read [B, T, heads, P], and the last states."""
        x, writings, readings, steps, log_decays, _ = terms
        queries, keys = readings.unsqueeze(2), writings.unsqueeze(2)
        return ops.decayed_attention(
            queries, keys, x, log_decays, memory, weights=steps, kernel=self.kernel
        )

    def operators(self, terms: Mamba2Terms) -> Operators:
        """The decay of every head, on all N P numbers of its state."""
        decays = DiagonalOperators(terms.log_decays.exp().flatten(0, 1))
        return ColumnwiseOperators(decays, self.state_shape[1] * self.state_shape[2])

    def finish(self, read: Tensor, terms: Mamba2Terms, inputs: Tensor) -> Tensor:
        """With D x, gated, normalised and mapped."""
        read, x = read.flatten(-2), terms.x.flatten(-2)
        skip = self.skip.repeat_interleave(self.head_shape[1])
        outputs = gated(read, terms.gate, x, skip, kernel=self.kernel)
        return through(self.outward, self.norm(outputs))


@MODELS.register("mamba2")
class Mamba2(BlockModel[Mamba2Settings]):
    """Mamba-2: matrix states under an input-dependent scalar decay for each head."""

    settings_class = Mamba2Settings
    mixer_class = Mamba2Mixer
    family = "diagonal"
    source = "Dao & Gu 2024, arXiv:2405.21060"
