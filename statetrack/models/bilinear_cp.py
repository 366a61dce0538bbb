"""The bilinear RNN whose transition tensor has CP rank R.

    h_t = W1 diag(Wx^T x_t) W2^T h_{t-1},    logits = C h_t

with W1, W2 of H x K and Wx of D x K: K (2 H + D) parameters in place of H^2 D, at rank K (the
source writes R).

Source: Ebrahimi & Memisevic (2025), arXiv:2505.21749 (the factored bilinear model).

Checked: against the equation above with its tensor W written out entry by entry, to 1e-9 in
tests/references/test_bilinear.py; no code was released.

Departures: symbols are one-hot by default, and H = 64 (256 in the source); W1 and W2 start as
orthogonal factors, because the source does not give its initialisation; whether the first state
is trained is not known, here it is. With gradients the recurrence runs in rank space, p_t = W2^T
h_t, where p_t = (W2^T W1) (gains_t * p_{t-1}): the same function, without the two H x K products a
step. Without gradients A(x) is summed for every symbol, in float64, and rounded once: the terms of
a CP decomposition cancel, and in rank space each of them is rounded at every step, which shortens
the length to which a trained model is right by a factor of 10 to 100. Where the sums would take
more than 2^23 products, and in float16 and bfloat16, rank space is kept.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from statetrack.algebra import Factored, Size
from statetrack.models._base import LinearModel
from statetrack.models._registry import MODELS
from statetrack.models._settings import LinearSettings
from statetrack.ops import FactoredOperators, Operators
from statetrack.settings import option

MOST_PRODUCTS = 2**23
"""Products that sum up the matrices of all symbols, where these are used."""


class BilinearCPSettings(LinearSettings):
    """Settings of the factored bilinear RNN."""

    rank: int = option(64, "CP rank of the transition tensor.", min=1)
    gain: float = option(
        0.5, "Scale of the gains Wx at the start, drawn from N(0, gain^2).", above=0
    )

    @property
    def recurrence(self) -> Factored:
        """A matrix of rank K for every symbol."""
        return Factored(
            rank=Size("rank", self.rank),
            additive=self.additive,
            readout_bias=self.readout_bias,
        )


@MODELS.register("bilinear-cp")
class BilinearCP(LinearModel):
    """Bilinear RNN with a CP-factored transition tensor."""

    settings_class = BilinearCPSettings
    operators_by_replica = True
    training_defaults = {"lrs": (3e-2,), "steps": 1000, "clip": 1.0, "finish": "exact"}

    def __init__(self, settings: BilinearCPSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        hidden, rank = settings.hidden, settings.rank
        self.left = nn.Parameter(nn.init.orthogonal_(torch.empty(hidden, rank)))
        self.right = nn.Parameter(nn.init.orthogonal_(torch.empty(hidden, rank)))
        gains = settings.gain * torch.randn(self.embedding.num_rows, rank)
        self.gains = self.embedding.parameter(gains)

    def operators(self) -> FactoredOperators:
        """A(x) = W1 diag(Wx^T x) W2^T, factored."""
        return FactoredOperators(self.left, self.embedding(self.gains), self.right)

    def running_operators(self) -> Operators:
        """The matrices A(x) without gradients, unless they are too many; else their factors."""
        operators = self.operators()
        products = math.prod(operators.gains.shape[-2:]) * self.left.shape[-2] ** 2
        wide = self.left.dtype in (torch.float32, torch.float64) and self.left.device.type != "mps"
        if torch.is_grad_enabled() or not wide or products > MOST_PRODUCTS:
            return operators
        return operators.summed()
