"""The layer around a selective diagonal recurrence, used by Mamba and AUSSM.

    v, z = W x,    c = conv(v),    u = silu(c),    h_t = a_t * h_{t-1} + b_t
    y = W_o ((read(h) + D * u) * silu(z))

where the model's own file gives the gains a_t and the terms b_t, of c and u, and the function
`read`. A layer's states are N numbers for each channel, too many to hold for a whole word: they
are computed and read piece by piece.

B batch, T time, D width, E channels of the recurrence, N numbers per channel.
"""

from __future__ import annotations

import abc
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.models._base import through
from statetrack.models._blocks import ShortConvolution, WindowedMixer
from statetrack.ops import Operators, diagonal_operators

PIECE = 16
"""Positions whose states are held at once: E N numbers each, which should fit in the caches."""


class Selected(NamedTuple):
    """The terms of the recurrence at some positions."""

    gains: Tensor  # [.., E, N]
    terms: Tensor  # [.., E, N]
    readings: Tensor  # what states are read with: [.., N], or [N] for all positions


class SelectiveMixer(WindowedMixer[Tensor]):
    """Projection, short convolution, diagonal recurrence, gate, projection.

    Its state is that of the convolution and h [B, E, N].
    """

    def __init__(self, width: int, channels: int, conv: int) -> None:
        super().__init__()
        self.inward = nn.Linear(width, 2 * channels, bias=False)
        self.convolution = ShortConvolution(channels, conv)
        self.skip: nn.Parameter
        self.outward: nn.Linear

    @abc.abstractmethod
    def select(self, convolved: Tensor, x: Tensor) -> Selected:
        """The recurrence at positions with the convolution's outputs c and x = silu(c), [.., E]."""

    @abc.abstractmethod
    def read(self, states: Tensor, readings: Tensor) -> Tensor:
        """Outputs [.., E] of states [.., E, N]."""

    def scan(
        self, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        window, h = state
        x, gate = self.inward(inputs).chunk(2, -1)
        convolved, window = self.convolution.scan(x, window)
        x = functional.silu(convolved)
        outputs = []
        pieces = (part.transpose(0, 1).split(PIECE) for part in (convolved, x))
        for piece in zip(*pieces, strict=True):
            gains, terms, readings = self.select(*piece)  # [T, B, ..]
            states = ops.diagonal_recurrence(gains.flatten(2), h.flatten(1), terms.flatten(2))
            states = states.unflatten(2, h.shape[1:])  # [T, B, E, N]
            outputs.append(self.read(states, readings))
            h = states[-1]
        return self._finish(torch.cat(outputs).transpose(0, 1), x, gate), (window, h)

    def step(
        self, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs [B, D] and the next state, of inputs [B, D]."""
        window, h = state
        x, gate = self.inward(inputs).chunk(2, -1)
        convolved, window = self.convolution.step(x, window)
        x = functional.silu(convolved)
        gains, terms, readings = self.select(convolved, x)
        h = gains * h + terms
        return self._finish(self.read(h, readings), x, gate), (window, h)

    def transition(self, inputs: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Operators:
        """The gains of every position, on E N coordinates."""
        x, _ = self.inward(inputs).chunk(2, -1)
        convolved, _ = self.convolution.scan(x, self.window(state, len(inputs)))
        gains = self.select(convolved, functional.silu(convolved)).gains
        return diagonal_operators(gains.flatten(0, 1).flatten(1))

    def _finish(self, outputs: Tensor, x: Tensor, gate: Tensor) -> Tensor:
        return through(self.outward, (outputs + self.skip * x) * functional.silu(gate))
