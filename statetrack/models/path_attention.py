"""PaTH attention: softmax attention with products of reflections in place of positions.

    y_i = sum_{j <= i} p_ij v_j,    p_ij = softmax_j(q_i . H_i H_{i-1} ... H_{j+1} k_j / sqrt(K))
    H_t = I - beta_t w_t w_t^T,    beta_t = 2 sigmoid(b . x_t + c),    w_t = silu(conv(W_2 W_1 x_t))

for each of N heads, with w_t divided by its length and q, k, v linear in the normalised input x;
then x = x + W_o y and x = x + mlp(norm(x)). What lies between two positions acts on the score of
the later for the earlier, as DeltaNet's transitions act on its state: each H_t has the eigenvalue
1 (K - 1 times) and 1 - beta_t in (-1, 1).

It has no state of constant size: every position attends to all earlier ones, so words are read as a
whole. With R_s(j) = beta_s w_s . H_{s-1} ... H_{j+1} k_j the score is q_i . k_j minus the sum of
(q_i . w_s) R_s(j) over j < s <= i, and the numbers R solve one triangular system for each head,
which takes time proportional to T^3.

Source: Yang, Shen, Wen, Tan, Mishra, Ren, Panda & Kim (2025), PaTH Attention: Position Encoding
via Accumulating Householder Transformations, arXiv:2505.16381.

Parameters: 4 D^2 + 2 R D + (conv + N) D + N in each block without its MLP, R the rank of w, and D
in each norm.

Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's interpreter, to 2e-6 in
tests/references/test_attention_and_gates.py. Checked: against the products written out, with
gradients, to 1e-9 in tests/references/test_attention_and_gates.py.

Departures: the MLP's activation is GELU by default (`--mlp-kind swiglu` is the library's); there is
no forget gate (the source's PaTH-FoX has one), no norm of queries and keys, and every head has its
own keys; two blocks by default; the readout has a bias. Maps, convolutions, embeddings and readout
start from N(0, 0.02^2), as in version 0.6.0 of the library.

B batch, T time, D width, N heads, K head size.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Attention, Size
from statetrack.models._base import SequenceModel, require_divisor, through
from statetrack.models._layers import (
    ShortConvolution,
    after_mlp,
    beside,
    make_mlp,
    make_norm,
    of_unit_length,
    split_heads,
)
from statetrack.models._linear import Linear, compute_by
from statetrack.models._registry import MODELS
from statetrack.models._settings import (
    ABOUT_BOS,
    ABOUT_HEADS,
    ABOUT_MLP,
    MOST_LAYERS,
    BlockSettings,
)
from statetrack.ops import in_full_precision, widened
from statetrack.settings import option


class PathAttentionSettings(BlockSettings):
    """Settings of PaTH attention."""

    layers: int = option(2, "Number of blocks.", min=1, max=MOST_LAYERS)
    mlp: float = option(4.0, ABOUT_MLP, min=0)
    heads: int = option(4, ABOUT_HEADS, min=1)
    rank: int = option(32, "Rank R of the map from the input to w.", min=1)
    conv: int = option(3, "Kernel of the short convolution of w; 0 leaves it out.", min=0)

    bos: bool = option(False, ABOUT_BOS)

    @property
    def recurrence(self) -> Attention:
        """Softmax attention over transformed keys."""
        return Attention(
            layers=Size("layers", self.layers),
            positions="path",
            has_mlp=self.mlp > 0,
            bos=self.bos,
        )


class PathAttentionBlock(nn.Module):
    """Attention, then (unless its width is 0) an MLP, each of the normalised stream."""

    def __init__(self, settings: PathAttentionSettings) -> None:
        super().__init__()
        width = settings.width
        self.heads = settings.heads
        self.residual = settings.residual
        self.attention_norm = make_norm(settings.norm, width)
        self.projection = Linear(width, 3 * width, bias=False)
        self.directions = nn.Sequential(
            Linear(width, settings.rank, bias=False), Linear(settings.rank, width, bias=False)
        )
        self.convolution = ShortConvolution(width, settings.conv, nn.SiLU(), bias=False)
        self.betas = Linear(width, settings.heads)
        self.output = Linear(width, width, bias=False)
        self.mlp = make_mlp(settings)

    def forward(self, stream: Tensor) -> Tensor:
        """The stream [B, T, D] after this block."""
        inputs, stream = beside(self.attention_norm, stream)
        heads = split_heads(widened(self.projection(inputs)), 3 * self.heads)
        queries, keys, values = heads.transpose(1, 2).chunk(3, 1)  # [B, N, T, K]
        first = self.convolution.initial_state(len(inputs))
        directions, _ = self.convolution.scan(self.directions(inputs), first)
        directions = of_unit_length(split_heads(widened(directions), self.heads)).transpose(1, 2)
        betas = 2 * torch.sigmoid(widened(self.betas(inputs))).mT  # [B, N, T]
        read = attend(queries, keys, values, directions, betas)
        read = read.transpose(1, 2).flatten(-2)
        stream = through(self.output, read, stream if self.residual else None)
        return after_mlp(self.mlp, stream, self.residual)


@MODELS.register("path-attention")
class PathAttention(SequenceModel):
    """PaTH: softmax attention through products of reflections that the inputs choose."""

    settings_class = PathAttentionSettings
    family = "attention"
    source = "Yang et al. 2025, arXiv:2505.16381"
    training_defaults = {"lrs": (1e-3,), "steps": 2000, "warmup": 0.1, "clip": 1.0}

    def __init__(
        self, settings: PathAttentionSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        require_divisor(settings.width, "heads", settings.heads)
        self.bos = int(settings.bos)
        self.embedding = nn.Embedding(num_symbols + self.bos, settings.width)
        self.blocks = nn.ModuleList(PathAttentionBlock(settings) for _ in range(settings.layers))
        self.norm = make_norm(settings.norm, settings.width)
        self.readout = Linear(settings.width, num_labels)
        compute_by(settings.kernel, self)
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Conv1d | nn.Embedding):
                nn.init.normal_(part.weight, std=0.02)
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T]."""
        begun = functional.pad(symbols, (self.bos, 0), value=self.embedding.num_embeddings - 1)
        stream = self.embedding(begun)
        for block in self.blocks:
            stream = block(stream)
        return through(self.readout, self.norm(stream[:, self.bos :]))


@in_full_precision
def attend(
    queries: Tensor, keys: Tensor, values: Tensor, directions: Tensor, betas: Tensor
) -> Tensor:
    """The reads [B, N, T, K] of heads [B, N, T, K], with unit directions w and betas [B, N, T]."""
    betas = betas.unsqueeze(-1)
    between = betas * (directions @ directions.mT).tril(-1)
    first = betas * (directions @ keys.mT).tril(-1)
    removed = torch.linalg.solve_triangular(between, first, upper=False, unitriangular=True)
    scores = queries @ keys.mT - (queries @ directions.mT).tril() @ removed
    later = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
    scores = (scores / keys.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
    return functional.softmax(scores, -1) @ values
