"""The causal Transformer: softmax attention over everything read so far.

    y_i = sum_{j <= i} p_ij v_j,    p_ij = softmax_j(q_i . k_j / sqrt(K) + position terms)

for each of N heads, with q, k, v linear in the normalised input x; then x = x + W_o y and
x = x + mlp(norm(x)). Positions are none; learned or sinusoidal vectors added to the symbols'
embeddings; rotary, which rotate pairs of coordinates of q and k by angles proportional to the
position; or ALiBi, which subtracts m_n (i - j) from the scores, with slopes m_n = 2^(-8 n / N).

It has no state of constant size: every position attends to all earlier ones, so words are read
as a whole, in time proportional to T^2.

Source: Vaswani et al. (2017), Attention Is All You Need, arXiv:1706.03762; rotary positions of
Su et al. (2021), arXiv:2104.09864; ALiBi of Press, Smith & Lewis (2022), arXiv:2108.12409.
Words that begin at random positions in training: Yang et al. (2026), arXiv:2608.13433.

Parameters: 4 D^2 + 2 D M + D + M in each block with an MLP of width M, and D in each norm.

Checked: transformers' LlamaAttention (rotary positions), with gradients, to 2e-4 in
tests/references/test_attention_and_gates.py. Checked: against softmax attention position by
position, for each kind of positions, with gradients, to 1e-9 in
tests/references/test_attention_and_gates.py.

Departures: there is a decoder only, of two blocks by default; positions are rotary by default
(`--positions sinusoidal` are the source's, whose sines and cosines alternate where ours follow
each other); normalisation (root mean square) is before each sublayer, the MLP's activation is
GELU, the four maps of attention have no biases, and there is no dropout; embeddings are not
multiplied by sqrt(D), nor shared with the readout, which has a bias. All weights start as
`torch.nn` draws them, embeddings from N(0, 1); the source does not say how. ALiBi's slopes follow
the formula also where N is not a power of two.

B batch, T time, D width, N heads, K head size.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Attention, Size
from statetrack.errors import SettingsError, setting
from statetrack.models._base import SequenceModel, require_divisor, through
from statetrack.models._layers import after_mlp, beside, make_mlp, make_norm, split_heads
from statetrack.models._linear import Linear, WithKernel, at_symbols, compute_by, is_watched
from statetrack.models._registry import MODELS
from statetrack.models._settings import (
    ABOUT_BOS,
    ABOUT_HEADS,
    ABOUT_MLP,
    MOST_LAYERS,
    BlockSettings,
)
from statetrack.ops import (
    apply,
    is_transformed,
    join_lanes,
    native,
    natively,
    refusing_second_derivatives,
)
from statetrack.settings import option

LONGEST_PERIOD = 10_000
"""The base of sinusoidal and rotary frequencies, of both sources."""


class TransformerSettings(BlockSettings):
    """Settings of the causal Transformer."""

    layers: int = option(2, "Number of blocks.", min=1, max=MOST_LAYERS)
    mlp: float = option(4.0, ABOUT_MLP, min=0)
    heads: int = option(4, ABOUT_HEADS, min=1)
    positions: Literal["none", "learned", "sinusoidal", "rotary", "alibi"] = option(
        "rotary", "How positions enter attention; none: by the causal mask alone."
    )
    max_positions: int = option(
        512, "Longest word that learned positions can read (not used by others).", min=1
    )
    random_offset: bool = option(
        False,
        "Whether each word of a training step begins at a random one of the learned positions, so "
        "that positions beyond the training lengths are trained too (not used by others).",
    )
    bos: bool = option(False, ABOUT_BOS)

    @property
    def recurrence(self) -> Attention:
        """Softmax attention."""
        return Attention(
            layers=Size("layers", self.layers),
            positions=self.positions,
            longest=self.max_positions - self.bos if self.positions == "learned" else None,
            has_mlp=self.mlp > 0,
            bos=self.bos,
        )


class TransformerBlock(WithKernel):
    """Attention, then (unless its width is 0) an MLP, each of the normalised stream."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        width = settings.width
        self.heads, self.size = settings.heads, width // settings.heads
        self.residual = settings.residual
        self.rotary = settings.positions == "rotary"
        self.attention_norm = make_norm(settings.norm, width)
        self.projection = Linear(width, 3 * width, bias=False)
        self.output = Linear(width, width, bias=False)
        self.mlp = make_mlp(settings)

    def forward(self, stream: Tensor, bias: Tensor | None) -> Tensor:
        """The stream [B, T, D] after this block; `bias` [N, T, T] is added to the scores."""
        inputs, stream = beside(self.attention_norm, stream)
        projected = self.projection(inputs)
        if bias is None and self._by_loop(projected):
            angles = waves(projected.shape[1], self.size, projected) if self.rotary else None
            read = native.softmax_attention(projected, self.heads, angles)
            return self._finish(stream, read)
        heads = split_heads(projected, 3 * self.heads).transpose(1, 2)  # [B, 3 N, T, K]
        queries, keys, values = heads.chunk(3, 1)
        if self.rotary:
            queries, keys = turned(queries), turned(keys)
        plain = is_transformed()  # by torch.func.grad, which has derivatives of its own
        attend = _attend if plain else partial(apply, _Attention)
        read = attend(queries, keys, values, bias)
        return self._finish(stream, read.transpose(1, 2).flatten(-2))

    def _by_loop(self, projected: Tensor) -> bool:
        short = projected.shape[1] <= native.LONGEST_ATTENDED
        return short and natively(self.kernel, projected)

    def _finish(self, stream: Tensor, read: Tensor) -> Tensor:
        stream = self.output(read, stream if self.residual else None)
        return after_mlp(self.mlp, stream, self.residual)


@MODELS.register("transformer")
class Transformer(SequenceModel):
    """Causal Transformer: softmax attention, with a choice of positions."""

    settings_class = TransformerSettings
    settings: TransformerSettings
    family = "attention"
    source = "Vaswani et al. 2017, arXiv:1706.03762"
    training_defaults = {"lrs": (1e-3,), "steps": 2000, "warmup": 0.1, "clip": 1.0}

    def __init__(self, settings: TransformerSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        width, positions = settings.width, settings.positions
        require_divisor(width, "heads", settings.heads)
        turns = {"sinusoidal": width, "rotary": width // settings.heads}
        require_pairs(positions, turns.get(positions, 0))
        self.positions = positions
        self.heads = settings.heads
        self.max_positions = settings.max_positions
        self.random_offset = settings.random_offset
        self.bos = int(settings.bos)
        self.embedding = nn.Embedding(num_symbols + self.bos, width)
        self.learned: nn.Parameter | None = None
        if positions == "learned":
            self.learned = nn.Parameter(0.02 * torch.randn(settings.max_positions, width))
        self.blocks = nn.ModuleList(TransformerBlock(settings) for _ in range(settings.layers))
        self.norm = make_norm(settings.norm, width)
        self.readout = Linear(width, num_labels)
        compute_by(settings.kernel, self)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T].

        Raises `SettingsError` for words longer than the number of learned positions.
        """
        stream, bias = self.embedded(symbols)
        for block in self.blocks:
            stream = block(stream, bias)
        return through(self.readout, self.norm(stream[:, self.bos :]))

    def embedded(self, symbols: Tensor) -> tuple[Tensor, Tensor | None]:
        """The stream [B, T, D] before the blocks, and what they add to scores, [N, T, T].

        With `bos` both have one position more, the first.
        """
        symbols = functional.pad(symbols, (self.bos, 0), value=self.embedding.num_embeddings - 1)
        stream: Tensor
        if is_watched(self.embedding):
            stream = self.embedding(symbols)
        else:
            stream = at_symbols(self.embedding.weight, symbols, self.settings.kernel)
        length = symbols.shape[1]
        if self.learned is not None:
            if length > self.max_positions:
                raise SettingsError(
                    f"{setting('positions', 'learned')}: a word of {length - self.bos} symbols"
                    f"{' and its first token' * self.bos} is longer than "
                    f"{setting('max_positions', self.max_positions)}: train with {length}, or take "
                    "other positions"
                )
            stream = stream + self._positions(self.learned, symbols)
        if self.positions == "sinusoidal":
            stream = stream + torch.cat(waves(length, stream.shape[-1], stream), -1)
        return stream, distances(length, self.heads, stream) if self.positions == "alibi" else None

    def _positions(self, learned: Tensor, symbols: Tensor) -> Tensor:
        """The learned vectors of positions, [T, D], or [B, T, D] where words begin anywhere."""
        num_words, length = symbols.shape
        if not (self.random_offset and self.training and torch.is_grad_enabled()):
            return learned[:length]
        firsts = torch.randint(self.max_positions - length + 1, (num_words, 1))
        return learned[firsts.to(symbols.device) + torch.arange(length, device=symbols.device)]


def require_pairs(positions: str, size: int) -> None:
    """Raise `SettingsError` where positions pair coordinates, and their number is odd."""
    if size % 2:
        raise SettingsError(
            f"{setting('positions', positions)} pairs coordinates, and {size} is odd: take an even "
            f"{'width' if positions == 'sinusoidal' else 'width per head'}"
        )


def waves(length: int, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Sines and cosines [T, width / 2] of positions times decreasing frequencies."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    places = torch.arange(length, dtype=dtype, device=like.device)
    exponents = torch.arange(0, width, 2, dtype=dtype, device=like.device) / width
    angles = places.unsqueeze(-1) * LONGEST_PERIOD**-exponents
    return angles.sin(), angles.cos()


def turned(vectors: Tensor) -> Tensor:
    """Vectors [..., T, K]: coordinates k and k + K / 2 are rotated by their position's angle."""
    sines, cosines = waves(vectors.shape[-2], vectors.shape[-1], vectors)
    one, two = vectors.chunk(2, -1)
    both = torch.cat([one * cosines - two * sines, one * sines + two * cosines], -1)
    return both.to(vectors.dtype)


def distances(length: int, heads: int, like: Tensor) -> Tensor:
    """ALiBi's terms [N, T, T]: minus slope times distance, and minus infinity for the future."""
    places = torch.arange(length, device=like.device)
    distance = places.unsqueeze(1) - places
    numbers = torch.arange(1, heads + 1, device=like.device)
    slopes = 2.0 ** (-8.0 * numbers / heads)
    bias = (-slopes[:, None, None] * distance).to(like.dtype)
    return bias.masked_fill(distance < 0, -torch.inf)


class _Attention(torch.autograd.Function):
    """Causal softmax attention of heads [B, N, T, K], by torch's fused kernel.

    On a CPU that kernel has no batching rule, so replicas are merged into the batch here. The
    backward pass recomputes the forward pass, so that no tensor of size T^2 is kept.
    """

    @staticmethod
    def forward(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        return _attend(queries, keys, values, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @refusing_second_derivatives
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, bias = ctx.saved_tensors
        heads = [part.detach().requires_grad_() for part in (queries, keys, values)]
        with torch.enable_grad():
            read = _attend(heads[0], heads[1], heads[2], bias)
        return *torch.autograd.grad(read, heads, gradient), None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor | None,
    ) -> tuple[Tensor, int]:
        assert in_dims[3] is None, "replicas have the same positions"
        merged = (
            join_lanes(part, axis, info.batch_size, 0)
            for part, axis in zip((queries, keys, values), in_dims[:3], strict=True)
        )
        read: Tensor = apply(_Attention, *merged, bias)
        return read.unflatten(0, (info.batch_size, -1)), 0


def _attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    mask = None if bias is None else bias.to(queries.dtype)
    return functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, is_causal=bias is None
    )
