"""Linear attention, as a recurrence.

    S_i = S_{i-1} + phi(k_i) v_i^T,    z_i = z_{i-1} + phi(k_i)
    y_i = S_i^T phi(q_i) / (phi(q_i) . z_i),    phi(x) = elu(x) + 1

for each of N heads, with q, k, v linear in the block's input; the heads are joined by a linear
map. A step only adds to the state: every transition is the identity.

Source: Katharopoulos, Vyas, Pappas & Fleuret (2020), Transformers are RNNs: Fast Autoregressive
Transformers with Linear Attention, arXiv:2006.16236.

State: D (D / N + 1) numbers per word in each layer. Parameters: 4 D^2 in each mixer.

Checked: fla-org/flash-linear-attention 0.6.0, its layer with elu + 1 and normalised weights in
Triton's interpreter, to 2e-6 in tests/references/test_attention_and_gates.py. Checked: fla-core's
naive normalised linear attention, with gradients, to 2e-4 in
tests/references/test_attention_and_gates.py. Checked: against attention with a kernel, with
gradients, to 1e-9 in tests/references/test_attention_and_gates.py.

Departures: normalisation is before each sublayer instead of after it; there are no positions
(`--conv 4` computes q, k and v by a short convolution instead); the four maps have no biases;
1e-6 is added to the denominator; the MLP's activation is GELU; one block by default; all weights
start as `torch.nn` draws them, embeddings from N(0, 1).

B batch, T time, D width, N heads.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from statetrack.algebra import FixedPositiveLayers, Size
from statetrack.models._base import require_divisor, through, zeros
from statetrack.models._blocks import BlockModel, MatrixMixer, MatrixTerms
from statetrack.models._layers import Projection, Window, split_heads
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import (
    ABOUT_CONV,
    ABOUT_HEADS,
    ABOUT_MLP,
    ABOUT_NORM,
    KernelSettings,
    NormKind,
)
from statetrack.ops import widened
from statetrack.settings import option

SMALLEST_SUM = 1e-6
"""Added to the sum of weights, which float32 could round to 0."""


class LinearAttentionSettings(KernelSettings):
    """Settings of linear attention."""

    norm: NormKind = option("layer", ABOUT_NORM)
    mlp: float = option(4.0, ABOUT_MLP, min=0)
    heads: int = option(4, ABOUT_HEADS, min=1)
    conv: int = option(0, ABOUT_CONV, min=0)

    @property
    def recurrence(self) -> FixedPositiveLayers:
        """The identity: a step only adds a term."""
        return FixedPositiveLayers(
            layers=Size("layers", self.layers),
            decays=False,
            has_mlp=self.mlp > 0,
            sees_one=self.conv == 0,
            structure="identity",
            eigenvalues="[1, 1]",
        )


class LinearAttentionMixer(MatrixMixer[tuple[Window, Tensor]]):
    """Additive outer products, read by a normalised query."""

    def __init__(self, settings: LinearAttentionSettings) -> None:
        super().__init__()
        require_divisor(settings.width, "heads", settings.heads)
        self.heads = settings.heads
        self.size = settings.width // settings.heads
        self.projection = Projection(settings.width, 3 * settings.width, settings.conv)
        self.output = Linear(settings.width, settings.width, bias=False)

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The projection's state, and sums [B, N, D / N, D / N + 1] of zeros."""
        weight = self.output.weight
        sums = zeros(weight, num_words, self.heads, self.size, self.size + 1)
        return self.projection.initial_state(num_words), sums

    def terms(self, inputs: Tensor, window: Window) -> tuple[MatrixTerms, Window]:
        """Phi(q) and phi(k) [..., N, D / N], and v with a last coordinate of 1."""
        projected, window = self.projection.scan(inputs, window)
        queries, keys, values = split_heads(widened(projected), 3 * self.heads).chunk(3, -2)
        values = torch.cat([values, torch.ones_like(values[..., :1])], -1)
        return MatrixTerms(functional.elu(queries) + 1, functional.elu(keys) + 1, values), window

    def finish(self, read: Tensor, terms: MatrixTerms, inputs: Tensor) -> Tensor:
        """The weighted sum of values over the sum of weights, heads joined and mapped."""
        mean = read[..., :-1] / (read[..., -1:] + SMALLEST_SUM)
        return through(self.output, mean.flatten(-2))


@MODELS.register("linear-attention")
class LinearAttention(BlockModel[LinearAttentionSettings]):
    """Linear attention: a sum of outer products of keys and values, read by queries."""

    settings_class = LinearAttentionSettings
    mixer_class = LinearAttentionMixer
    family = "attention"
    source = "Katharopoulos et al. 2020, arXiv:2006.16236"
