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

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra import FixedPositiveLayers, Size
from statetrack.models._base import require_divisor
from statetrack.models._blocks import BlockModel, Window, WindowedMixer
from statetrack.models._heads import Projection, split_heads
from statetrack.models._registry import MODELS
from statetrack.models._settings import KernelSettings
from statetrack.ops import ColumnwiseOperators, DiagonalOperators, Operators, widened
from statetrack.settings import option

SMALLEST_SUM = 1e-6
"""Added to the sum of weights, which float32 could round to 0."""


class LinearAttentionSettings(KernelSettings):
    """Settings of linear attention."""

    norm: Literal["rms", "layer", "none"] = option(
        "layer", "Normalisation before each mixer, each MLP and the readout."
    )
    mlp: float = option(
        4.0, "Width M of each block's MLP, as a multiple of D; 0 leaves it out.", min=0
    )
    heads: int = option(4, "Number of heads; must divide the width.", min=1)
    conv: int = option(
        0, "Positions that a short convolution of q, k and v spans; 0 leaves it out.", min=0
    )

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


class LinearAttentionMixer(WindowedMixer[Window]):
    """Additive outer products, read by a normalised query."""

    def __init__(self, settings: LinearAttentionSettings) -> None:
        super().__init__()
        require_divisor(settings.width, "heads", settings.heads)
        self.heads = settings.heads
        self.kernel = settings.kernel
        self.size = settings.width // settings.heads
        self.projection = Projection(settings.width, 3 * settings.width, settings.conv)
        self.output = nn.Linear(settings.width, settings.width, bias=False)

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The projection's state, and sums [B, N, D / N, D / N + 1] of zeros."""
        weight = self.output.weight
        sums = weight.new_zeros(num_words, self.heads, self.size, self.size + 1)
        return self.projection.initial_state(num_words), sums

    def scan(
        self, inputs: Tensor, state: tuple[Window, Tensor]
    ) -> tuple[Tensor, tuple[Window, Tensor]]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        memory, sums = state
        projected, memory = self.projection.scan(inputs, memory)
        queries, keys, values = self._heads(projected)
        read, sums = ops.additive_attention(queries, keys, values, sums, kernel=self.kernel)
        return self.output(_divide(read)), (memory, sums)

    def step(
        self, inputs: Tensor, state: tuple[Window, Tensor]
    ) -> tuple[Tensor, tuple[Window, Tensor]]:
        """Outputs [B, D] and the next state, of inputs [B, D]."""
        memory, sums = state
        projected, memory = self.projection.step(inputs, memory)
        queries, keys, values = self._heads(projected)
        sums = sums + keys.unsqueeze(-1) * values.unsqueeze(-2)
        read = torch.einsum("bnk,bnkv->bnv", queries, sums)
        return self.output(_divide(read)), (memory, sums)

    def transition(self, inputs: Tensor, state: tuple[Window, Tensor] | None = None) -> Operators:
        """The identity at every position."""
        ones = inputs.new_ones(inputs.shape[:2].numel(), 1)
        numbers = self.heads * self.size * (self.size + 1)
        return ColumnwiseOperators(DiagonalOperators(ones), numbers)

    def _heads(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """phi(q) and phi(k) [..., N, D / N], and v with a last coordinate of 1."""
        queries, keys, values = split_heads(widened(projected), 3 * self.heads).chunk(3, -2)
        ones = torch.ones_like(values[..., :1])
        return _positive(queries), _positive(keys), torch.cat([values, ones], -1)


@MODELS.register("linear-attention")
class LinearAttention(BlockModel[LinearAttentionSettings]):
    """Linear attention: a sum of outer products of keys and values, read by queries."""

    settings_class = LinearAttentionSettings
    mixer_class = LinearAttentionMixer
    family = "attention"
    source = "Katharopoulos et al. 2020, arXiv:2006.16236"


def _positive(vectors: Tensor) -> Tensor:
    return functional.elu(vectors) + 1


def _divide(read: Tensor) -> Tensor:
    """The weighted sum of values over the sum of weights, heads joined."""
    return (read[..., :-1] / (read[..., -1:] + SMALLEST_SUM)).flatten(-2)
