"""The matrix LSTM.

    C_t = f_t C_{t-1} + i_t v_t k_t^T,    n_t = f_t n_{t-1} + i_t k_t
    h_t = C_t q_t / (max(|n_t . q_t|, 1) + 10^-6 exp(m_t))
    i_t = exp(w_i . [q, k, v]_t + b_i),    f_t = sigmoid(w_f . [q, k, v]_t + b_f)

for each of N heads, k scaled by 1 / sqrt(K). Around it, the block's input is mapped to twice an
inner width E: one half u gives v directly, and q, k through a short convolution and silu, all by
block-diagonal maps; the other half z gates the output, W_o ((norm(h) + s * conv(u)) * silu(z)),
with the norm by head and a learned skip s. The transition of a head is f_t times the identity:
its only eigenvalue is f_t, in (0, 1) (`--forget exponential`: in (0, inf)).

Source: Beck, Pöppel, Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter
(2024), xLSTM: Extended Long Short-Term Memory, arXiv:2405.04517.

State: E (E / N + 1) + N numbers per word in each layer, and the convolution's (kernel - 1) E.
Parameters: 3 D E + E (3 b + kernel + 3 + 6 N) + 2 N in each mixer, b the size of a block.

Checked: NX-AI/xlstm @ 8901ba0 (package xlstm 2.0.6, the layer in its recurrent form), to 1e-12 in
tests/references/test_recorded_matrices.py. Checked: against the equations above in their order, to
1e-9 in tests/references/test_attention_and_gates.py.

Departures: as in the authors' layer, gates are linear in [q, k, v] rather than in x; i_t and f_t
are stored as differences from a running maximum m_t = max(m_{t-1} + log f_t, log i_t), m_0 = 0, by
which alone h_t changes, through the 10^-6 of the authors' code (their parallel form has another m
while only the first gates have been seen), and no gradient flows through m: it is about zero while
10^-6 exp(m_t) is small beside max(|n_t . q_t|, 1), as it is with sigmoid forget gates, but need not
be with `--forget exponential`, whose m grows; the inner width is not rounded up to a multiple of
64; norms and the readout have biases, which start at 0; width 64 and one block; no dropout (0 in
the source, too). Weight decay is applied to the weights of maps and convolutions alone, as in the
authors' code.

The scan takes words in chunks of 32: inside a chunk it is gated attention, and the state is
passed from chunk to chunk.

B batch, T time, D width, E inner width, N heads, K key size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import PositiveLayers, Recurrence, Size
from statetrack.errors import SettingsError, setting
from statetrack.models._base import require_divisor, through, zeros
from statetrack.models._blocks import AffineMixer, BlockModel
from statetrack.models._layers import (
    BlockDiagonal,
    HeadNorm,
    ShortConvolution,
    Window,
    gated,
    initialise_mlp,
    residual_deviation,
    small_deviation,
    split_heads,
)
from statetrack.models._linear import Linear, is_watched, linear_beside, linear_map
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_MLP_KIND, ABOUT_NORM, BlockSettings, MLPKind, NormKind
from statetrack.ops import (
    ColumnwiseOperators,
    DiagonalOperators,
    Operators,
    in_full_precision,
    kernel_for,
    native,
    natively,
    sums_between,
    widened,
)
from statetrack.settings import option

CHUNK = 32
"""Positions of a chunk, inside which the recurrence is computed as attention."""

EPSILON = 1e-6
"""What the authors' code adds to the normaliser, in multiples of exp(m)."""


ForgetKind = Literal["sigmoid", "exponential"]


class ExponentialGateSettings(BlockSettings):
    """Settings of the recurrences with exponential gates."""

    norm: NormKind = option("layer", ABOUT_NORM)
    mlp_kind: MLPKind = option("geglu", ABOUT_MLP_KIND)
    heads: int = option(4, "Number of heads, which see channels of their own.", min=1)
    conv: int = option(
        4, "Positions that the short convolution of a mixer spans; 0 leaves it out.", min=0
    )
    forget: ForgetKind = option(
        "sigmoid", "The forget gate's activation; the input gate's is exponential."
    )


def log_forget(kind: ForgetKind, logits: Tensor) -> Tensor:
    """The logarithm of a forget gate."""
    return functional.logsigmoid(logits) if kind == "sigmoid" else logits


ExponentialSettingsT = TypeVar("ExponentialSettingsT", bound=ExponentialGateSettings)


class ExponentialGateModel(BlockModel[ExponentialSettingsT]):
    """A block model whose frame starts as that of the source's language models."""

    family = "non-linear"

    def decays(self, name: str) -> bool:
        """Weights of maps alone: no embedding, norm, bias or recurrent matrix, as in the source."""
        maps = name.endswith(".weight") and self.get_parameter(name).ndim > 1
        return maps and "norm" not in name and not name.startswith("embedding.")

    def initialise_frame(self) -> None:
        """Embedding, MLPs and readout start small, biases at 0."""
        width, layers = self.settings.width, self.settings.layers
        nn.init.normal_(self.embedding.weight, std=small_deviation(width))
        nn.init.normal_(self.readout.weight, std=small_deviation(width))
        nn.init.zeros_(self.readout.bias)
        for block in self._blocks():
            initialise_mlp(block.mlp, width, layers)


class MLSTMSettings(ExponentialGateSettings):
    """Settings of the matrix LSTM."""

    expand: float = option(2.0, "Inner width E of a mixer, as a multiple of D.", above=0)
    projection_block: int = option(
        4, "Channels in each block of the maps to q, k and v; must divide E.", min=1
    )

    @property
    def recurrence(self) -> Recurrence:
        """A gain for each head."""
        return PositiveLayers(
            layers=Size("layers", self.layers),
            structure="one scalar per head",
            eigenvalues="(0, 1)" if self.forget == "sigmoid" else "(0, inf)",
        )


class HeadInputs(NamedTuple):
    """The inputs of the recurrence: heads [B, T, N, K], and gates [B, T, N] as logarithms."""

    queries: Tensor
    keys: Tensor  # divided by sqrt(K)
    values: Tensor
    log_input: Tensor
    log_forget: Tensor


class MLSTMState(NamedTuple):
    """The state: C and n divided by e^m, in one matrix."""

    window: Window  # of the convolution
    scaled: Tensor  # [C, n] / e^m, [B, N, K, K + 1]
    maxima: Tensor  # m, [B, N]


Terms = tuple[HeadInputs, Tensor, Tensor]
"""The inputs of the recurrence, conv(u) [..., E], and z [..., E]."""


class MLSTMMixer(AffineMixer[MLSTMState, Terms]):
    """A matrix memory with exponential gates, between an up- and a down-projection."""

    def __init__(self, settings: MLSTMSettings) -> None:
        super().__init__()
        width, heads, block = settings.width, settings.heads, settings.projection_block
        inner = round(settings.expand * width)
        if inner == 0:
            raise SettingsError(
                f"{setting('expand', settings.expand)} leaves a mixer no channels: "
                f"take {heads / width:g} or more"
            )
        require_divisor(inner, "heads", heads, "the inner width")
        require_divisor(inner, "projection_block", block, "the inner width")
        self.heads = heads
        self.inner = inner
        self.forget_kind = settings.forget
        self.up = Linear(width, 2 * inner, bias=False)
        self.convolution = ShortConvolution(inner, settings.conv, nn.SiLU())
        deviation = small_deviation(width)
        self.queries_and_keys = BlockDiagonal(inner, inner // block, 2 * block, deviation)
        self.values = BlockDiagonal(inner, inner // block, block, deviation)
        self.gates = Linear(3 * inner, 2 * heads)
        self.norm = HeadNorm("layer", heads, inner // heads)
        self.skip = nn.Parameter(torch.ones(inner))
        self.down = Linear(inner, width, bias=False)
        nn.init.normal_(self.up.weight, std=deviation)
        nn.init.normal_(self.down.weight, std=residual_deviation(width, settings.layers))
        nn.init.zeros_(self.gates.weight)
        with torch.no_grad():
            input_bias, forget_bias = self.gates.bias.chunk(2)
            input_bias.normal_(std=0.1)
            forget_bias.copy_(torch.linspace(3, 6, heads))

    def initial_state(self, num_words: int) -> MLSTMState:
        """The convolution's state, [C, n] as zeros [B, N, K, K + 1], and m as zeros [B, N]."""
        size, weight = self.inner // self.heads, self.down.weight
        return MLSTMState(
            self.convolution.initial_state(num_words),
            zeros(weight, num_words, self.heads, size, size + 1),
            weight.new_zeros(num_words, self.heads),
        )

    def recurrent_part(self, state: MLSTMState) -> Tensor:
        """[C, n], [B, N, K, K + 1], which can leave the range of floats."""
        return state.scaled * state.maxima.exp()[..., None, None]

    def with_recurrent_part(self, state: MLSTMState, part: Tensor) -> MLSTMState:
        """Another [C, n], held as a multiple of the same e^m."""
        return state._replace(scaled=part * (-state.maxima).exp()[..., None, None])

    def split(self, state: MLSTMState) -> tuple[Window, tuple[Tensor, Tensor]]:
        """The convolution's state, and [C, n] with m."""
        return state.window, (state.scaled, state.maxima)

    def join(self, window: Window, memory: tuple[Tensor, Tensor]) -> MLSTMState:
        """The inverse of `split`."""
        return MLSTMState(window, *memory)

    def terms(self, inputs: Tensor, window: Window) -> tuple[Terms, Window]:
        """Queries, keys, values and gates; conv(u) and z."""
        if is_watched(self.up):
            upper, gate = self.up(inputs).chunk(2, -1)
        else:
            of_upper, of_gate = self.up.weight.chunk(2)
            upper, inputs = linear_beside(inputs, of_upper, None, self.kernel)
            gate = linear_map(inputs, of_gate, None, self.kernel)
        seen = upper if upper.dim() == 3 else upper.unsqueeze(1)
        mixed, window = self.convolution.scan(seen, window)
        mixed = mixed if upper.dim() == 3 else mixed.squeeze(1)
        *flat, gates, mixed = self._projected(mixed, upper)
        log_input, forget = widened(gates).chunk(2, -1)
        queries, keys, values = (split_heads(widened(part), self.heads) for part in flat)
        heads = HeadInputs(queries, keys, values, log_input, log_forget(self.forget_kind, forget))
        return (heads, mixed, gate), window

    def _projected(self, mixed: Tensor, upper: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys over sqrt(K), values [..., E], arguments [..., 2 N] of the gates.

        Last are the rows `mixed`, for other uses.
        """
        scale = (self.inner // self.heads) ** -0.5
        maps = self.queries_and_keys, self.values, self.gates
        if natively(self.kernel, mixed) and not is_watched(*maps):
            of_queries, of_keys = self.queries_and_keys.weight.chunk(2, -1)
            blocks = of_queries, of_keys * scale, self.values.weight
            for_queries, for_keys, for_values = self.gates.weight.chunk(3, 1)
            weights = for_queries, for_keys / scale, for_values
            found = native.gated_projections(
                mixed, upper, blocks, torch.stack(weights), self.gates.bias
            )
            return found[:5]
        parts = (*self.queries_and_keys(mixed).chunk(2, -1), self.values(upper))
        queries, keys, values = (part.flatten(-2) for part in parts)
        gates = self.gates(torch.cat((queries, keys, values), -1))
        return queries, keys * scale, values, gates, mixed

    def advance(
        self, terms: Terms, memory: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """H [B, N, K], and the next [C, n] and m."""
        (now, _, _), (scaled, maxima) = terms, memory
        before = now.log_forget + maxima
        maxima = torch.maximum(before, now.log_input).detach()
        forget, write = torch.exp(before - maxima), torch.exp(now.log_input - maxima)
        products = now.keys.unsqueeze(-1) * with_one(now.values).unsqueeze(-2)
        scaled = forget[..., None, None] * scaled + write[..., None, None] * products
        read = torch.einsum("bnk,bnkv->bnv", now.queries, scaled)
        return normalised(read, maxima), (scaled, maxima)

    def recur(
        self, terms: Terms, memory: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """H [B, T, N, K], and the last [C, n] and m."""
        by_loop = kernel_for(self.kernel, memory[0].device, memory[0].dtype) == "native"
        compute = remember_by_loop if by_loop else remember
        read, scaled, maxima = compute(*terms[0], *memory)
        return read, (scaled, maxima)

    def operators(self, terms: Terms) -> Operators:
        """The forget gate of every head, on all K (K + 1) numbers of its state."""
        heads, _, _ = terms
        forget = DiagonalOperators(heads.log_forget.exp().flatten(0, 1))
        return ColumnwiseOperators(forget, heads.keys.shape[-1] * (heads.values.shape[-1] + 1))

    def finish(self, read: Tensor, terms: Terms, inputs: Tensor) -> Tensor:
        """W_o ((norm(h) + s * conv(u)) * silu(z))."""
        _, mixed, gate = terms
        hidden = gated(self.norm(read), gate, mixed, self.skip, kernel=self.kernel)
        return through(self.down, hidden)


@MODELS.register("mlstm")
class MLSTM(ExponentialGateModel[MLSTMSettings]):
    """Matrix LSTM: a matrix memory of outer products, with exponential gates."""

    settings_class = MLSTMSettings
    mixer_class = MLSTMMixer
    family = "gated"
    source = "Beck et al. 2024, arXiv:2405.04517"


@in_full_precision
def remember(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_input: Tensor,
    log_forget: Tensor,
    matrices: Tensor,
    maxima: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gated sum of outer products and its normalised reading, chunk by chunk.

    Heads are [B, T, N, size], gates [B, T, N]; gives h [B, T, N, size], and the last [C, n]
    [B, N, K, K + 1] and m [B, N].
    """
    read = []
    for query, key, value, write, forget in _chunks(
        queries, keys, values, log_input, log_forget
    ):  # [B, N, chunk, size], gates [B, N, chunk]
        kept = sums_between(forget) + write.unsqueeze(-2)
        carried = forget.cumsum(-1) + maxima.unsqueeze(-1)
        running = torch.maximum(kept.amax(-1), carried).detach()
        weights = torch.exp(kept - running.unsqueeze(-1))
        carry = torch.exp(carried - running).unsqueeze(-1)
        among = (query @ key.mT) * weights
        value = with_one(value)
        read.append(normalised(among @ value + carry * (query @ matrices), running))
        last = weights[..., -1, :].unsqueeze(-1)
        matrices = carry[..., -1:, :] * matrices + (key * last).mT @ value
        maxima = running[..., -1]
    return torch.cat(read, 2).transpose(1, 2), matrices, maxima


@in_full_precision
def remember_by_loop(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    log_input: Tensor,
    log_forget: Tensor,
    matrices: Tensor,
    maxima: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same as decayed attention.

    With F_t the sum of log f up to t,

        m_t = F_t + max(m_0, max_{s <= t} log i_s - F_s)

    and C_t / e^m_t decays by f_t e^(m_{t-1} - m_t) and gets e^(i_t - m_t) k_t v_t^T.
    """
    with torch.no_grad():
        sums = log_forget.cumsum(1)
        highest = torch.maximum((log_input - sums).cummax(1).values, maxima.unsqueeze(1))
        running = sums + highest
        before = torch.cat([maxima.unsqueeze(1), running[:, :-1]], 1)
    weights = torch.exp(log_input - running)
    log_decays = log_forget + (before - running)
    read, matrices = native.decayed_attention(
        queries, keys, values, log_decays, matrices, weights=weights, summed=True
    )
    return native.divided(read, running, EPSILON), matrices, running[:, -1]


def with_one(values: Tensor) -> Tensor:
    """Values [..., K] with a last coordinate of 1, by which the normaliser n is a column of C."""
    return torch.cat([values, torch.ones_like(values[..., :1])], -1)


def normalised(read: Tensor, maxima: Tensor) -> Tensor:
    """C q / (max(|n . q|, 1) + 10^-6 exp(m)), where C and n are held as multiples of exp(m)."""
    one = torch.exp(-maxima).clamp_min(torch.finfo(maxima.dtype).tiny)
    size = torch.maximum(read[..., -1].abs(), one) + EPSILON
    return read[..., :-1] / size.unsqueeze(-1)


def _chunks(*sequences: Tensor) -> Iterator[tuple[Tensor, ...]]:
    pieces = (sequence.transpose(1, 2).split(CHUNK, 2) for sequence in sequences)
    return zip(*pieces, strict=True)
