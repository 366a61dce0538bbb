"""The bilinear RNN of plane rotations, R2.

    h_t = blockdiag(R(theta_1(x_t)), .., R(theta_N(x_t))) h_{t-1},    logits = C h_t

where R(theta) rotates a plane by theta, and the angles are linear in x: H D / 2 parameters.
All operators commute, so only abelian groups can be tracked (Proposition 2 of the source).

Source: Ebrahimi & Memisevic (2025), arXiv:2505.21749 (the R2 model).

Checked: against the equation above with its matrices A(x) written out, to 1e-9 in
tests/references/test_bilinear.py; no code was released.

Departures: symbols are one-hot by default, and H = 64 (256 in the source); angles start uniform on
the circle, because the source does not give its initialisation; whether the first state is trained
is not known, here it is.
"""

from __future__ import annotations

import math

import torch

from statetrack.models._base import LinearModel, require_even
from statetrack.models._registry import MODELS
from statetrack.models._settings import DiagonalSettings
from statetrack.ops import RotationOperators
from statetrack.settings import option


class BilinearRotationSettings(DiagonalSettings):
    """Settings of the rotation model."""

    gains = "unit"

    hidden: int = option(64, "Width H of the hidden state: H / 2 planes.", min=2, max=10**6)


@MODELS.register("bilinear-rotation")
class BilinearRotation(LinearModel):
    """Bilinear RNN of 2 x 2 rotation blocks (R2)."""

    settings_class = BilinearRotationSettings
    operators_by_replica = True
    training_defaults = {"lrs": (1e-1,), "steps": 1500}

    def __init__(
        self, settings: BilinearRotationSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        require_even(settings.hidden, "the plane size")
        turns = torch.rand(self.embedding.num_rows, settings.hidden // 2)
        self.angles = self.embedding.parameter(2 * math.pi * (turns - 0.5))

    def operators(self) -> RotationOperators:
        """A(x) as angles [V, N]."""
        return RotationOperators(self.embedding(self.angles))
