"""The minimal gated recurrent unit: a GRU whose gate and candidate do not read the state.

    z_t = sigmoid(W_z x_t),    h_t = (1 - z_t) * h_{t-1} + z_t * g(W_h x_t),    output = W_o h_t

with E = expand x D coordinates; g(u) = u + 1/2 for u >= 0 and sigmoid(u) below, so that states stay
positive and can be scanned in the space of logarithms, or the identity (`--candidate linear`). The
transition is diagonal, its gains 1 - z_t lie in (0, 1): without the state in its gates, a GRU keeps
no group apart, so it cannot compute parity.

Source: Feng, Tung, Ahmed, Bengio & Hajimirsadeghi (2024), Were RNNs All We Needed?,
arXiv:2410.01201 (both forms; the positive one is that of its appendix B.3).

Checked: lucidrains/minGRU-pytorch @ 2707433 (the layer, run from the package minGRU-pytorch 0.2.1,
which is not by the paper's authors), to 1e-12 in tests/references/test_recorded_matrices.py.

State: E numbers per word in each layer. Parameters: 3 D E in each mixer, and those of the MLP.

Departures: no convolution before the recurrence; maps have no biases, as in the code above, and
start as torch has it; the states are computed as they stand, not by logarithms; no dropout.

B batch, T time, D width, E inner width.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from statetrack.algebra import PositiveLayers, Size
from statetrack.models._base import through
from statetrack.models._blocks import BlockModel, DiagonalMixer, DiagonalTerms, PlainMixer
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_MLP, BlockSettings
from statetrack.ops import widened
from statetrack.settings import option


class MinGRUSettings(BlockSettings):
    """Settings of the minimal gated recurrent unit."""

    mlp: float = option(4.0, ABOUT_MLP, min=0)
    expand: float = option(1.5, "Inner width E of a mixer, as a multiple of D.", above=0)
    candidate: Literal["positive", "linear"] = option(
        "positive",
        "g, applied to every candidate: positive is u + 1/2 for u >= 0, else sigmoid(u); linear "
        "is the identity.",
    )

    @property
    def recurrence(self) -> PositiveLayers:
        """Gains in (0, 1)."""
        return PositiveLayers(layers=Size("layers", self.layers))


class MinGRUMixer(PlainMixer[Tensor, DiagonalTerms], DiagonalMixer[Tensor]):
    """h_t = (1 - z_t) * h_{t-1} + z_t * g(W_h x_t), from zeros."""

    def __init__(self, settings: MinGRUSettings) -> None:
        super().__init__()
        width, inner = settings.width, max(1, int(settings.expand * settings.width))
        self.positive = settings.candidate == "positive"
        self.inward = Linear(width, 2 * inner, bias=False)  # W_h, W_z
        self.outward = Linear(inner, width, bias=False)

    def initial_state(self, num_words: int) -> Tensor:
        """Zeros [B, E]."""
        return self.outward.weight.new_zeros(num_words, self.outward.in_features)

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[DiagonalTerms, tuple[()]]:
        """1 - z and z g(W_h x)."""
        candidate, gate = widened(self.inward(inputs)).chunk(2, -1)
        if self.positive:
            candidate = torch.where(candidate >= 0, candidate + 0.5, candidate.sigmoid())
        return DiagonalTerms(torch.sigmoid(-gate), torch.sigmoid(gate) * candidate), window

    def finish(self, read: Tensor, terms: DiagonalTerms, inputs: Tensor) -> Tensor:
        """The states, mapped."""
        return through(self.outward, read)


@MODELS.register("min-gru")
class MinGRU(BlockModel[MinGRUSettings]):
    """Minimal gated recurrent unit: gates that do not read the state."""

    settings_class = MinGRUSettings
    mixer_class = MinGRUMixer
    source = "Feng et al. 2024, arXiv:2410.01201"
