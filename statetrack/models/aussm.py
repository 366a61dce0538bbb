"""AUSSM: a complex diagonal recurrence that turns by input-dependent angles and never forgets.

    h_t = exp(i phi_t) * h_{t-1} + (dt_t x_t) B,    y_t = Re(h_t C) + D * x_t
    phi_t = W c_t / sqrt(D) + w,    dt_t = softplus(V U c_t + 2 v),    x_t = silu(c_t)

with N complex numbers in h for each of the D channels of x, an angle for each of them, and B and C
[N] (modulus by softplus, phase) that do not depend on the input. c_t is a short causal convolution
of the projected input; y_t is gated by SiLU of a second projection. Every eigenvalue of a
transition has modulus 1 and any phase, so roots of unity, and with them modular counters, can be
represented.

Source: Karuvally, Nowak, Keller, Amo Alonso, Sejnowski & Siegelmann (2025), arXiv:2507.05238,
with the details of the authors' public layer.

State: 2 D N numbers and the last `conv - 1` positions of x, per block. Parameters per block:
3 D^2 for the projections, D (conv + 1), (D + 1) D N for the angles, 2 D rank + D for the time
steps, 4 N and D.

Checked: arjunkaruvally/AUSSM @ 153956b (SSMauBlock with its reference in torch), to 1e-12 in
tests/references/test_recorded_state_space.py; outputs, gradients and first weights. Checked:
against the angles between any two positions written out, to 1e-9 in
tests/references/test_state_space_models.py; outputs and gradients.

Departures: of the layer, none from the authors' code, which is where the bias v is added twice.
This layer alone, where the paper alternates it with Mamba's. The readout has a bias. Norms of the
blocks add 1e-6 to the mean square, the source 1e-5.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Size, UnitLayers
from statetrack.models._blocks import BlockModel
from statetrack.models._layers import Window
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_OWN_CONV, BlockSettings
from statetrack.models.mamba import Selected, SelectiveMixer
from statetrack.ops import widened
from statetrack.settings import option


class AUSSMSettings(BlockSettings):
    """Settings of AUSSM."""

    state: int = option(16, "Complex numbers N remembered for each channel.", min=1)
    conv: int = option(4, ABOUT_OWN_CONV, min=1)
    rank: int = option(0, "Rank of the map to the time steps; 0 means the state's N.", min=0)

    @property
    def recurrence(self) -> UnitLayers:
        """Gains of modulus 1."""
        return UnitLayers(layers=Size("layers", self.layers))


class AUSSMMixer(SelectiveMixer):
    """A recurrence of phase rotations. Its state is the convolution's and complex h [B, D, N]."""

    def __init__(self, settings: AUSSMSettings) -> None:
        width, state = settings.width, settings.state
        super().__init__(width, width, settings.conv)
        rank = settings.rank or state
        self.angles = Linear(width, width * state)
        self.selection = Linear(width, rank, bias=False)  # U
        self.time_steps = Linear(rank, width)  # V, v
        self.writings = nn.Parameter(torch.randn(2, state) / 2**0.5)  # B: before softplus, phase
        self.readings = nn.Parameter(torch.randn(2, state) / 2**0.5)  # C: before softplus, phase
        self.skip = nn.Parameter(torch.ones(width))
        self.outward = Linear(width, width, bias=False)
        with torch.no_grad():
            self.angles.bias.uniform_(-math.pi, math.pi)

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The convolution's state, and complex zeros [B, D, N]."""
        writings = _by_modulus_and_phase(self.writings).detach()
        zeros = writings.new_zeros(num_words, len(self.skip), len(writings))
        return self.convolution.initial_state(num_words), zeros

    def select(self, convolved: Tensor, x: Tensor) -> Selected:
        """Gains and input terms, complex [.., D, N], and C [N]."""
        width = x.shape[-1]
        turns = widened(self.angles(convolved / width**0.5)).unflatten(-1, (width, -1))
        steps = self.time_steps(self.selection(convolved)) + self.time_steps.bias
        steps = functional.softplus(widened(steps))
        terms = (steps * x).unsqueeze(-1) * _by_modulus_and_phase(self.writings)
        gains = torch.complex(turns.cos(), turns.sin())
        return Selected(gains, terms, _by_modulus_and_phase(self.readings))

    def read(self, states: Tensor, readings: Tensor) -> Tensor:
        """Re(h C), [.., D], of states [.., D, N]."""
        return (states @ readings).real


def _by_modulus_and_phase(parts: Tensor) -> Tensor:
    """Complex numbers [N] of their moduli before softplus and their phases, [2, N]."""
    modulus, phase = functional.softplus(parts[0]), parts[1]
    return torch.complex(modulus * phase.cos(), modulus * phase.sin())


@MODELS.register("aussm")
class AUSSM(BlockModel[AUSSMSettings]):
    """AUSSM: unit-modulus complex gains at input-dependent angles."""

    settings_class = AUSSMSettings
    same_since = "0.2.0"
    mixer_class = AUSSMMixer
    family = "diagonal"
    source = "Karuvally et al. 2025, arXiv:2507.05238"
    training_defaults = {**BlockModel.training_defaults, "lrs": (1e-2,)}
