"""The real diagonal bilinear RNN.

    h_t = (Wx^T x_t) * h_{t-1},    logits = C h_t

with a real gain of either sign for every coordinate: H D parameters. The only groups it can
track are products of parities (elementary abelian 2-groups); with frozen random signs a trained
readout alone learns parity (Proposition 3 of the source).

Source: Ebrahimi & Memisevic (2025), arXiv:2505.21749 (block size 1).

Checked: against the equation above with its matrices A(x) written out, to 1e-9 in
tests/references/test_bilinear.py; no code was released.

Departures: symbols are one-hot by default, and H = 64 (256 in the source); gains start uniform in
[-0.5, 0.5], because the source does not give its initialisation; whether the first state is
trained is not known, here it is. `--init signs` gives the initialisation for which Proposition 3
is exact: the first symbol acts as the identity, every other as random signs.
"""

from __future__ import annotations

from typing import Literal

import torch

from statetrack.models._base import LinearModel
from statetrack.models._registry import MODELS
from statetrack.models._settings import DiagonalSettings
from statetrack.ops import DiagonalOperators
from statetrack.settings import option


class DiagonalRealSettings(DiagonalSettings):
    """Settings of the real diagonal RNN."""

    gains = "real"

    init: Literal["uniform", "normal", "signs"] = option(
        "uniform",
        "Gains at the start: uniform in [-gain, gain], N(0, gain^2), or the identity for the "
        "first symbol and random signs for the others.",
    )
    gain: float = option(0.5, "Scale of the gains at the start (not used by signs).", above=0)


@MODELS.register("diagonal-real")
class DiagonalReal(LinearModel):
    """Real diagonal RNN: one gain of either sign per coordinate."""

    settings_class = DiagonalRealSettings
    operators_by_replica = True
    training_defaults = {"lrs": (3e-2,), "steps": 400}

    def __init__(
        self, settings: DiagonalRealSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        shape = (self.embedding.num_rows, settings.hidden)
        if settings.init == "uniform":
            gains = settings.gain * (2 * torch.rand(shape) - 1)
        elif settings.init == "normal":
            gains = settings.gain * torch.randn(shape)
        else:
            gains = torch.randint(0, 2, shape) * 2.0 - 1.0
            gains[0] = 1.0
        self.gains = self.embedding.parameter(gains)

    def operators(self) -> DiagonalOperators:
        """A(x) as gains [V, H]."""
        return DiagonalOperators(self.embedding(self.gains))
