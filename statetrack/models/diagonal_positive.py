"""The positive diagonal bilinear RNN: the class of Mamba's recurrence.

    h_t = sigmoid(Wx^T x_t) * h_{t-1},    logits = C h_t

Every gain lies in (0, 1), so no coordinate ever changes its sign: no group can be tracked,
not even parity (Sarrof, Veitsman & Hahn 2024, arXiv:2405.17394; Grazzi et al. 2024,
arXiv:2411.12537, Theorem 1).

Source: Ebrahimi & Memisevic (2025), arXiv:2505.21749 (the lowest class of its hierarchy).

Checked: against the equation above with its matrices A(x) written out, to 1e-9 in
tests/references/test_bilinear.py; no code was released.

Departures: the source describes this class as that of Mamba's recurrence and trains Mamba; this is
the recurrence alone, without convolution, gate, normalisation and additive term. Symbols are
one-hot by default, the gains' logits start normal, and the first state is trained.
"""

from __future__ import annotations

import torch

from statetrack.models._base import LinearModel
from statetrack.models._registry import MODELS
from statetrack.models._settings import DiagonalSettings
from statetrack.ops import DiagonalOperators
from statetrack.settings import option


class DiagonalPositiveSettings(DiagonalSettings):
    """Settings of the positive diagonal RNN."""

    gains = "positive"

    spread: float = option(
        1.0, "Scale of the gains' logits at the start, drawn from N(0, spread^2).", above=0
    )


@MODELS.register("diagonal-positive")
class DiagonalPositive(LinearModel):
    """Positive diagonal RNN: gains in (0, 1), as in Mamba."""

    settings_class = DiagonalPositiveSettings
    operators_by_replica = True
    training_defaults = {"lrs": (3e-2,), "steps": 400}

    def __init__(
        self, settings: DiagonalPositiveSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        logits = torch.randn(self.embedding.num_rows, settings.hidden)
        self.gain_logits = self.embedding.parameter(settings.spread * logits)

    def operators(self) -> DiagonalOperators:
        """A(x) as gains [V, H] in (0, 1)."""
        return DiagonalOperators(self.embedding(self.gain_logits).sigmoid())
