"""Parts of several generations of RWKV: token shift, decays, low-rank maps, a layer and a frame.

Decays are exp(-exp(.)). The layer is that of the sixth and seventh generation, with one matrix
state per head. The token shift mixes the input at a position with the input one position before.

B batch, T time, D width, N heads, K head size.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from statetrack.models._base import through, zeros
from statetrack.models._blocks import AffineMixer, BlockModel
from statetrack.models._linear import (
    Linear,
    RowsOfSymbols,
    WithKernel,
    is_watched,
    maps_by_loop,
)
from statetrack.models._settings import BlockSettings
from statetrack.ops import KernelChoice, native, natively

FactorsT = TypeVar("FactorsT")
SettingsT = TypeVar("SettingsT", bound=BlockSettings)

SMALLEST_EMBEDDING = 1e-4
"""Embeddings start uniform between minus this and this."""

LARGEST_LOG_RATE = 20.0
"""Upper bound of log(-log w): w underflows to 0 below it, and exp of more would overflow."""


def last_of(inputs: Tensor) -> Tensor:
    """The last of inputs [B, T, D], or those at one position, [B, D]."""
    return inputs if inputs.dim() == 2 else inputs[:, -1]


def shifted(
    inputs: Tensor,
    last: Tensor,
    shares: Tensor,
    more: Tensor | None = None,
    *,
    kernel: KernelChoice = "torch",
) -> tuple[Tensor, ...]:
    """Mixtures x + s (y - x) of inputs x and those one position before, y, for n rows of shares s.

    Inputs are [B, T, D], or [B, D]; `last` [B, D] precedes the first; shares are [n, D], to which
    `more` [..., n, D] are added.
    """
    if natively(kernel, inputs):
        if inputs.dim() == 3:
            return native.mixed(inputs, last, shares, more)
        at_once = None if more is None else more.unsqueeze(1)
        found = native.mixed(inputs.unsqueeze(1), last, shares, at_once)
        return tuple(part.squeeze(1) for part in found)
    before = last
    if inputs.dim() == 3:
        before = torch.cat([last.unsqueeze(1), inputs[:, :-1]], 1)
    change = before - inputs
    if more is None:
        return tuple(inputs + share * change for share in shares.unbind(0))
    return (inputs.unsqueeze(-2) + change.unsqueeze(-2) * (shares + more)).unbind(-2)


def maps_of_shifted(
    inputs: Tensor,
    last: Tensor,
    shares: Tensor,
    maps: Sequence[Linear],
    *,
    kernel: KernelChoice = "torch",
) -> list[Tensor]:
    """Linear maps, each of its own mixture of inputs and those one position before.

    Where inputs depend on the symbol at their position alone, a map of a mixture is the sum of a
    row for a symbol and one for the symbol before, of which there may be few.
    """
    if isinstance(inputs, RowsOfSymbols) and natively(kernel, inputs):
        table, symbols = inputs.table, inputs.symbols
        starts = last[:1] if native.reads_whole_words() else last  # the same for all words
        if 2 * len(table) + len(starts) < symbols.numel():
            nothing = torch.zeros_like(table)
            here = torch.cat([table, nothing, torch.zeros_like(starts)])
            before = torch.cat([nothing, table, starts])
            mixed = shifted(here, before, shares, kernel=kernel)
            tables = [linear(part) for linear, part in zip(maps, mixed, strict=True)]
            return list(native.at_pairs(tables, symbols, len(table)))
    mixed = shifted(inputs, last, shares, kernel=kernel)
    return [linear(part) for linear, part in zip(maps, mixed, strict=True)]


def first_shifts(width: int, depth: float, powers: Sequence[float]) -> Tensor:
    """The initial share of the previous position in each coordinate, one row per power.

    The share is larger in earlier coordinates and in earlier layers; `depth` is the number of
    layers below this one, divided by the number of all layers.
    """
    place = torch.arange(width) / width
    return 1 - place ** (torch.tensor(powers).unsqueeze(-1) * (1 - depth))


def log_decays_of(log_rates: Tensor) -> Tensor:
    """The logarithm of w = exp(-exp(log_rates))."""
    return -log_rates.clamp_max(LARGEST_LOG_RATE).exp()


class GroupNorm(nn.GroupNorm):
    """The norm of torch, also of one vector alone in groups of one number, which torch refuses."""

    def forward(self, inputs: Tensor) -> Tensor:
        """[B, D], each group normalised by itself."""
        return torch.group_norm(inputs, self.num_groups, self.weight, self.bias, self.eps)


class NormalisedEmbedding(nn.Embedding):
    """Embeddings of symbols, each then normalised to mean 0 and variance 1: the sources' `ln0`."""

    def __init__(self, num_symbols: int, width: int) -> None:
        super().__init__(num_symbols, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, symbols: Tensor) -> Tensor:
        """[..., D] of symbols [...]."""
        return through(self.norm, super().forward(symbols))


class RWKVModel(BlockModel[SettingsT]):
    """A model whose frame is that of the released training code, but for its MLPs."""

    def make_embedding(self) -> nn.Embedding:
        """Normalised embeddings."""
        return NormalisedEmbedding(self.num_symbols, self.settings.width)

    def initialise_frame(self) -> None:
        """Draw small embeddings, and an orthogonal readout with a gain of 1/2."""
        bound, weight = SMALLEST_EMBEDDING, self.readout.weight
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        nn.init.orthogonal_(weight, 0.5 * max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5)
        nn.init.zeros_(self.readout.bias)


class LowRank(WithKernel):
    """bias + activation(x W_1) W_2, which starts as the bias: W_1 is 0, W_2 orthogonal."""

    def __init__(
        self,
        bias: Tensor | None,
        rank: int,
        activation: Callable[[Tensor], Tensor] | None,
        *,
        width: int = 0,
    ) -> None:
        super().__init__()
        width = width if bias is None else len(bias)
        self.bias = None if bias is None else nn.Parameter(bias)
        self.inner = Linear(width, rank, bias=False)
        self.outer = Linear(rank, width, bias=False)
        self.activation = activation
        nn.init.zeros_(self.inner.weight)
        nn.init.orthogonal_(self.outer.weight, gain=0.1 * max(1.0, rank / width) ** 0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., D] of inputs [..., D]."""
        outputs = self.outwards(through(self.inner, inputs))
        return outputs if self.bias is None else outputs + self.bias

    def outwards(self, inner: Tensor) -> Tensor:
        """The same without the bias, of x W_1."""
        if self.activation is None:
            return through(self.outer, inner)
        if maps_by_loop(inner, self.kernel) and not is_watched(self.outer):
            signed = self.activation is torch.tanh
            return native.activated_linear(inner, self.outer.weight, signed=signed)
        return through(self.outer, self.activation(inner))


class RWKVMixer(AffineMixer[tuple[Tensor, Tensor], tuple[FactorsT, Tensor]], Generic[FactorsT]):
    """The time mixing of a generation with matrix states, in N heads of size K.

    Its terms are factors of the recurrence and the output gate [..., D]; its state is the previous
    input, [B, D], and a memory [B, N, K, K]: the transpose of the sources' S.
    """

    heads: tuple[int, int]

    @abc.abstractmethod
    def factors(self, inputs: Tensor, last: Tensor) -> tuple[FactorsT, Tensor]:
        """The recurrence's terms and the output gate [..., D], of inputs after `last` [B, D]."""

    def initial_state(self, num_words: int) -> tuple[Tensor, Tensor]:
        """Zeros [B, D] as the input before the first, and a zero memory [B, N, K, K]."""
        parameter = next(self.parameters())
        memory = zeros(parameter, num_words, *self.heads, self.heads[1])
        return parameter.new_zeros(num_words, math.prod(self.heads)), memory

    def terms(self, inputs: Tensor, window: Tensor) -> tuple[tuple[FactorsT, Tensor], Tensor]:
        """The factors and the output gate, and the last input."""
        return self.factors(inputs, window), last_of(inputs)
