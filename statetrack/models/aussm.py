"""AUSSM: a complex diagonal recurrence that turns by input-dependent angles and never forgets.

    h_t = exp(i phi_t) * h_{t-1} + (dt_t x_t) B,    y_t = Re(h_t C) + D * x_t
    phi_t = W x_t / sqrt(D) + w,    dt_t = softplus(V U x_t + v)

with N complex numbers in h for each of the D channels of x, an angle for each of them, and B and
C [N] (modulus by softplus, phase) that do not depend on the input. x_t is a short causal
convolution of the projected input; y_t is gated by SiLU of a second projection. Every eigenvalue
of a transition has modulus 1, at any angle: it turns through the phases of a modular counter.

Source: Karuvally, Nowak, Keller, Amo Alonso, Sejnowski & Siegelmann (2025), arXiv:2507.05238,
with the details of the authors' public layer.

State: 2 D N numbers and the last `conv - 1` positions of x, a block. Parameters, a block:
3 D^2 for the projections, D (conv + 1), (D + 1) D N for the angles, 2 D rank + D for the time
steps, 4 N and D.

Departures: this layer alone (the paper alternates it with Mamba's); the bias v of the time steps
is added once (the public layer adds it twice), and starts where Mamba's does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra.recurrences import Size, UnitLayers
from statetrack.models import MODELS
from statetrack.models._base import State
from statetrack.models._blocks import BlockModel, Mixer, ShortConvolution
from statetrack.models._settings import BlockSettings
from statetrack.models._time_steps import draw_time_steps, inverse_softplus
from statetrack.ops.precision import widened
from statetrack.settings import option

PIECE = 16
"""Positions whose states are held at once: D N complex numbers each, which outgrow the caches."""


class AUSSMSettings(BlockSettings):
    """Settings of AUSSM."""

    state: int = option(16, "Complex numbers N remembered for each channel.", min=1)
    conv: int = option(4, "Positions the short convolution sees, its own included.", min=1)
    rank: int = option(
        0, "Rank of the map to the time steps; 0 means a sixteenth of the width.", min=0
    )

    @property
    def recurrence(self) -> UnitLayers:
        """Gains of modulus 1."""
        return UnitLayers(layers=Size("layers", self.layers))


@MODELS.register("aussm")
class AUSSM(BlockModel):
    """AUSSM: unit-modulus complex gains at input-dependent angles."""

    settings_class = AUSSMSettings
    family = "diagonal"
    source = "Karuvally et al. 2025, arXiv:2507.05238"
    training_defaults = {**BlockModel.training_defaults, "lrs": (1e-2,)}

    def make_mixer(self, layer: int) -> Mixer:  # noqa: D102
        assert isinstance(self.settings, AUSSMSettings)
        return AUSSMMixer(self.settings)


class AUSSMMixer(Mixer):
    """Projection, short convolution, turning recurrence, gate, projection.

    Its state is that of the convolution and h [B, D, N], complex.
    """

    def __init__(self, settings: AUSSMSettings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        rank = settings.rank or -(-width // 16)
        self.inward = nn.Linear(width, 2 * width, bias=False)
        self.convolution = ShortConvolution(width, settings.conv)
        self.angles = nn.Linear(width, width * state)
        self.selection = nn.Linear(width, rank, bias=False)  # U
        self.time_steps = nn.Linear(rank, width)  # V, v
        self.writings = nn.Parameter(torch.randn(2, state) / 2**0.5)  # B: before softplus, phase
        self.readings = nn.Parameter(torch.randn(2, state) / 2**0.5)  # C: before softplus, phase
        self.skip = nn.Parameter(torch.ones(width))
        self.outward = nn.Linear(width, width, bias=False)
        with torch.no_grad():
            self.angles.bias.uniform_(-math.pi, math.pi)
            self.time_steps.bias.copy_(inverse_softplus(draw_time_steps(width)))

    def initial_state(self, num_words: int) -> State:  # noqa: D102
        writings = _by_modulus_and_phase(self.writings).detach()
        zeros = writings.new_zeros(num_words, len(self.skip), len(writings))
        return self.convolution.initial_state(num_words), zeros

    def scan(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:  # noqa: D102
        window, h = state
        assert isinstance(window, Tensor) and isinstance(h, Tensor)
        x, gate = self.inward(inputs).chunk(2, -1)
        x, window = self.convolution.scan(x, window)
        outputs = []
        for piece in x.transpose(0, 1).split(PIECE):
            gains, terms = self._select(piece)  # [T, B, D, N]
            states = ops.diagonal_recurrence(gains.flatten(2), h.flatten(1), terms.flatten(2))
            states = states.unflatten(2, h.shape[1:])
            outputs.append(self._read(states))
            h = states[-1]
        return self._finish(torch.cat(outputs).transpose(0, 1), x, gate), (window, h)

    def step(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:  # noqa: D102
        window, h = state
        assert isinstance(window, Tensor) and isinstance(h, Tensor)
        x, gate = self.inward(inputs).chunk(2, -1)
        x, window = self.convolution.step(x, window)
        gains, terms = self._select(x)
        h = gains * h + terms
        return self._finish(self._read(h), x, gate), (window, h)

    def transition(self, inputs: Tensor) -> Tensor:
        """The diagonal of every transition, complex [B, T, D, N], for inputs [B, T, D]."""
        x, _ = self.inward(inputs).chunk(2, -1)
        x, _ = self.convolution.scan(x, self.convolution.initial_state(len(inputs)))
        gains, _ = self._select(x)
        return gains

    def _select(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Gains and input terms, complex [.., D, N]."""
        width = x.shape[-1]
        turns = functional.linear(x, self.angles.weight / width**0.5, self.angles.bias)
        turns = widened(turns).unflatten(-1, (width, -1))
        steps = functional.softplus(widened(self.time_steps(self.selection(x))))
        terms = (steps * x).unsqueeze(-1) * _by_modulus_and_phase(self.writings)
        return torch.complex(turns.cos(), turns.sin()), terms

    def _read(self, states: Tensor) -> Tensor:
        """Re(h C), [.., D], of states [.., D, N]."""
        return (states @ _by_modulus_and_phase(self.readings)).real

    def _finish(self, read: Tensor, x: Tensor, gate: Tensor) -> Tensor:
        finished: Tensor = self.outward((read + self.skip * x) * functional.silu(gate))
        return finished


def _by_modulus_and_phase(parts: Tensor) -> Tensor:
    """Complex numbers [N] of their moduli before softplus and their phases, [2, N]."""
    modulus, phase = functional.softplus(parts[0]), parts[1]
    return torch.complex(modulus * phase.cos(), modulus * phase.sin())
