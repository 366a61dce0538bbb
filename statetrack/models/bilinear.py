"""The full bilinear RNN.

    h_t = A(x_t) h_{t-1},    A(x)_ij = sum_k W_ijk x_k,    logits = C h_t

with a tensor W in R^{H x H x D} and no additive term. With one-hot states (H >= S) it
simulates any finite automaton (Proposition 1 of the source).

Source: Ebrahimi & Memisevic (2025), Revisiting Bi-Linear State Transitions in Recurrent
Neural Networks, arXiv:2505.21749.

Checked: against the equation above with its tensor W written out entry by entry, to 1e-9 in
tests/references/test_bilinear.py; no code was released.

Departures: symbols are one-hot by default, so that W holds one H x H matrix per symbol
(`--embed-dim 256` gives the learned embeddings of the authors' next paper, arXiv:2602.18333: D/V
times the parameters, the same operators); H = 64 by default, 256 in the source; the source does
not give its initialisation, here W's entries are normal and small; whether the first state is
trained is not known, here it is.
"""

from __future__ import annotations

import torch

from statetrack.algebra import Dense, Size
from statetrack.models._base import LinearModel
from statetrack.models._registry import MODELS
from statetrack.models._settings import LinearSettings
from statetrack.ops import DenseOperators
from statetrack.settings import option


class BilinearSettings(LinearSettings):
    """Settings of the full bilinear RNN."""

    gain: float = option(
        0.3, "Spectral radius of each A(x) at the start: its entries are N(0, gain^2 / H).", above=0
    )

    @property
    def recurrence(self) -> Dense:
        """A free matrix for every symbol."""
        return Dense(
            size=Size("hidden", self.hidden),
            additive=self.additive,
            readout_bias=self.readout_bias,
        )


@MODELS.register("bilinear")
class Bilinear(LinearModel):
    """Full bilinear RNN: a free matrix for every symbol."""

    settings_class = BilinearSettings
    operators_by_replica = True
    training_defaults = {"lrs": (1e-2,), "steps": 800, "finish": "exact"}

    def __init__(self, settings: BilinearSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        hidden = settings.hidden
        weight = torch.randn(self.embedding.num_rows, hidden, hidden)
        self.weight = self.embedding.parameter(weight * (settings.gain / hidden**0.5))

    def operators(self) -> DenseOperators:
        """A(x), [V, H, H]."""
        return DenseOperators(self.embedding(self.weight))
