"""S4D: a time-invariant complex diagonal linear filter for every channel.

    h_t = Abar * h_{t-1} + Bbar u_t,    y_t = 2 Re(C . h_t) + D u_t
    Abar = exp(dt A),    Bbar = (exp(dt A) - 1) / A

for each channel u, with N complex numbers in h (each represents a conjugate pair), A with a
negative real part, and one time step dt per channel; y goes through GELU and a gated
linear map (GLU) that mixes the channels. Nothing in the transition depends on the input: its
eigenvalues lie inside the unit circle, and a single layer is a linear filter before the GELU.

A sequence is filtered by its impulse response (a convolution by FFT); `step` is the recurrence.

Source: Gu, Gupta, Goel & Re (2022), arXiv:2206.11893 (S4D-Lin: A_n = -1/2 + i pi n, zero-order
hold).

State: 2 D N numbers per block. Parameters per block: D (4 N + 2) for the filters (dt, A, C, D), and
2 D (D + 1) for the gated map.

Checked: state-spaces/s4 @ 2ed46fc (models/s4/s4d.py), to 1e-12 in
tests/references/test_recorded_state_space.py; outputs, gradients and first weights. Checked:
against each oscillator discretised by one matrix exponential, to 1e-9 in
tests/references/test_state_space_models.py; outputs and gradients.

Departures: of the layer, none from the authors' minimal code, in which B is 1 and not trained (a
filter depends only on the product of B and C). No dropout. One learning rate and weight decay for
all weights, where that code trains dt and A without decay and with a rate of at most 0.001. Norms
come before the layer and are RMS by default, where its example has layer norms after it. D denotes
the width as well as the skip, as in the paper.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Size, TimeInvariantLayers
from statetrack.models._blocks import BlockModel, PlainMixer
from statetrack.models._layers import draw_time_steps
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings
from statetrack.ops import Operators, diagonal_operators, in_full_precision, native, widened
from statetrack.settings import option

PIECE = 1024
"""Positions filtered at once: it bounds the length of the impulse response."""


class S4DSettings(BlockSettings):
    """Settings of S4D."""

    state: int = option(32, "Complex numbers N remembered for each channel.", min=1)

    @property
    def recurrence(self) -> TimeInvariantLayers:
        """Complex gains that do not depend on the input."""
        return TimeInvariantLayers(layers=Size("layers", self.layers))


class S4DMixer(PlainMixer[Tensor, Tensor]):
    """Filters, GELU, gated linear map. Its state is h [B, D, N], complex."""

    def __init__(self, settings: S4DSettings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        self.log_steps = nn.Parameter(draw_time_steps(width).log())
        self.log_damping = nn.Parameter(torch.full((width, state), math.log(0.5)))  # log(-Re A)
        self.frequencies = nn.Parameter(math.pi * torch.arange(1.0 * state).repeat(width, 1))
        self.readings = nn.Parameter(torch.randn(width, state, 2) / 2**0.5)  # C: Re, Im
        self.skip = nn.Parameter(torch.randn(width))
        self.outward = Linear(width, 2 * width)

    def initial_state(self, num_words: int) -> Tensor:
        """Complex zeros [B, D, N]."""
        gains, _, _ = self._filters()
        return gains.detach().new_zeros(num_words, *gains.shape)

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[Tensor, tuple[()]]:
        """The inputs themselves."""
        return widened(inputs), window

    def advance(self, terms: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The filters' outputs at one position, by the recurrence."""
        log_gains, writings, readings = self._filters()
        memory = log_gains.exp() * memory + writings * terms.unsqueeze(-1)
        return 2 * (readings * memory).real.sum(-1), memory

    def recur(self, terms: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The filters' outputs [B, T, D], by their impulse responses.

        Where words are read whole, states before and after them are neither used nor computed.
        """
        filters, read = self._filters(), []
        if native.reads_whole_words() and terms.shape[1] <= PIECE:
            log_gains, writings, readings = filters
            return _filtered(terms.mT, log_gains, writings * readings).mT.contiguous(), memory
        for piece in terms.split(PIECE, 1):
            output, memory = _convolve(piece.mT, memory, *filters)
            read.append(output.mT)
        return torch.cat(read, 1), memory

    def operators(self, terms: Tensor) -> Operators:
        """The gains Abar, the same at every position."""
        gains = self._filters()[0].exp().flatten()
        return diagonal_operators(gains.expand(terms.shape[:2].numel(), -1))

    def finish(self, read: Tensor, terms: Tensor, inputs: Tensor) -> Tensor:
        """GELU and the gated map, of the filters' outputs and D u."""
        outputs = functional.gelu(read + self.skip * inputs)
        return functional.glu(self.outward(outputs), -1)

    def _filters(self) -> tuple[Tensor, Tensor, Tensor]:
        """Log Abar, Bbar and C, complex [D, N]."""
        rates = torch.complex(-self.log_damping.exp(), self.frequencies)
        log_gains = self.log_steps.exp().unsqueeze(-1) * rates
        return log_gains, torch.expm1(log_gains) / rates, torch.complex(*self.readings.unbind(-1))


@MODELS.register("s4d")
class S4D(BlockModel[S4DSettings]):
    """S4D: an input-independent complex diagonal filter for each channel."""

    settings_class = S4DSettings
    mixer_class = S4DMixer
    family = "diagonal, time-invariant"
    source = "Gu et al. 2022, arXiv:2206.11893"


@in_full_precision
def _convolve(
    inputs: Tensor, first: Tensor, log_gains: Tensor, writings: Tensor, readings: Tensor
) -> tuple[Tensor, Tensor]:
    """Filtered inputs [B, D, T] and the last state [B, D, N], by the filters' responses."""
    times = torch.arange(inputs.shape[-1] + 1, device=inputs.device)
    powers = torch.exp(log_gains.unsqueeze(-1) * times)  # [D, N, T + 1]
    from_first = 2 * torch.einsum("bdn,dnt->bdt", readings * first, powers[..., 1:]).real
    written = writings.unsqueeze(-1) * powers[..., :-1].flip(-1)
    last = powers[..., -1] * first + torch.einsum("bdt,dnt->bdn", inputs.to(written), written)
    return _filtered(inputs, log_gains, writings * readings) + from_first, last


@in_full_precision
def _filtered(inputs: Tensor, log_gains: Tensor, weights: Tensor) -> Tensor:
    """The same after a state of zeros, by FFT: the response is 2 Re sum_n w_n exp(t log a_n).

    In real numbers, of which exponentials and sums take a tenth of the time.
    """
    num_steps = inputs.shape[-1]
    times = torch.arange(num_steps, device=inputs.device)
    sizes, angles = (part.unsqueeze(-1) * times for part in (log_gains.real, log_gains.imag))
    real, imaginary = (part.unsqueeze(-1) for part in (weights.real, weights.imag))
    summed = sizes.exp() * (real * angles.cos() - imaginary * angles.sin())  # [D, N, T]
    response = 2 * summed.sum(-2)
    spectrum = torch.fft.rfft(inputs, 2 * num_steps) * torch.fft.rfft(response, 2 * num_steps)
    filtered: Tensor = torch.fft.irfft(spectrum, 2 * num_steps)[..., :num_steps]
    return filtered
