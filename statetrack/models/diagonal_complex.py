"""The complex diagonal bilinear RNN.

    z_t = (Wx^T x_t) * z_{t-1}  in C^{H/2},    logits = C [Re z_t, Im z_t]

with a free complex gain for every coordinate: H D parameters. Operators commute, so only
abelian groups can be tracked (Proposition 2 of the source); unlike rotations, gains also
grow and shrink.

Source: Ebrahimi & Memisevic (2025), arXiv:2505.21749 (2 x 2 blocks with a shared eigenbasis).

Checked: against the equation above with its matrices A(x) written out, to 1e-9 in
tests/references/test_bilinear.py; no code was released.

Departures: the source has this class as 2 x 2 blocks that share their eigenvectors, in its
Proposition 2, and trains none of it as far as is known; symbols are one-hot by default, and gains
start with a uniform angle and the magnitude `--radius`; the first state is trained.
"""

from __future__ import annotations

import math

import torch

from statetrack.models._base import LinearModel, require_even
from statetrack.models._registry import MODELS
from statetrack.models._settings import DiagonalSettings
from statetrack.ops import ComplexDiagonalOperators
from statetrack.settings import option


class DiagonalComplexSettings(DiagonalSettings):
    """Settings of the complex diagonal RNN."""

    gains = "complex"

    hidden: int = option(
        64, "Width H of the hidden state: H / 2 complex numbers.", min=2, max=10**6
    )
    radius: float = option(1.0, "Magnitude of the gains at the start.", above=0)


@MODELS.register("diagonal-complex")
class DiagonalComplex(LinearModel):
    """Complex diagonal RNN: one free complex gain per coordinate."""

    settings_class = DiagonalComplexSettings
    operators_by_replica = True
    training_defaults = {"lrs": (1e-1,), "steps": 1500}

    def __init__(
        self, settings: DiagonalComplexSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        require_even(settings.hidden, "the size of a complex number")
        angles = 2 * math.pi * torch.rand(self.embedding.num_rows, settings.hidden // 2)
        gains = torch.polar(torch.full_like(angles, settings.radius), angles)
        self.gains = self.embedding.parameter(torch.view_as_real(gains).clone())

    def operators(self) -> ComplexDiagonalOperators:
        """A(x) as complex gains [V, H / 2]."""
        return ComplexDiagonalOperators(torch.view_as_complex(self.embedding(self.gains)))
