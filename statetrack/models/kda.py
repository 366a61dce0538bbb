"""Kimi delta attention.

    S_t = (I - beta_t k_t k_t^T) diag(alpha_t) S_{t-1} + beta_t k_t v_t^T,    o_t = S_t^T q_t
    alpha_t = exp(-a softplus(W_2 W_1 x_t + b)),    beta_t = c sigmoid(w . x_t)
    y_t = W_o (RMSNorm(o_t) * sigmoid(G_2 G_1 x_t + d))

in each of N heads: Gated DeltaNet with a forget gate for every row of the state in place of one
for the head. Keys have unit length and queries the length 1 / sqrt(K); q, k and v come from a short
convolution and silu. With A = diag(alpha) the transition (I - beta k k^T) A has the eigenvalues of
the symmetric A^(1/2) (I - beta k k^T) A^(1/2): real, in [0, 1] for `--beta unit` and in [-1, 1] for
`--beta double`. It is a product of symmetric contractions, and DeltaNet's where every gate is 1,
so what is proven of DeltaNet's transitions holds: no powers but converging ones for `unit`, and
powers of every symbol's square that converge for `double`.

State of a layer: N K V numbers and, with a convolution, conv - 1 positions of N (2 K + V).
Parameters of a layer's mixer: D N (2 K + 2 V + 1) + conv N (2 K + V) + 2 D V + N V (K + V + 1)
+ N K + N + V.

Source: Kimi Team (2025), Kimi Linear: An Expressive, Efficient Attention Architecture,
arXiv:2510.26692; the range [0, 2] of beta is Grazzi, Siems et al.'s (2024), arXiv:2411.12537.

Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's interpreter, to 2e-6 in
tests/references/test_delta_rules.py. Checked: fla-core's naive recurrence, with gradients, to 2e-4
in tests/references/test_delta_rules.py. Checked: against a loop over the equations, with
gradients, to 1e-9 in tests/references/test_delta_rules.py.

Departures: one block without an MLP by default, and no full attention between blocks (the source
has one such block in four, and mixtures of experts); 4 heads of size 16 (128 in the source); the
readout has a bias. Maps, convolutions and the frame start from N(0, 0.02^2), as in version 0.6.0 of
the library. Weight decay leaves `log_rates` and `bias` alone, as in the library.

B batch, T time, N heads, K key size, V value size, D width, c positions of a chunk.
"""

from __future__ import annotations

import abc
import math
from typing import Generic, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Householder
from statetrack.models._base import through, zeros
from statetrack.models._blocks import AffineMixer, BlockModel, TermsT
from statetrack.models._delta import BETA_RANGE, DeltaOptions
from statetrack.models._layers import (
    RMSNorm,
    ShortConvolution,
    Window,
    draw_time_steps,
    inverse_softplus,
    queries_keys_values,
    split_heads,
)
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.ops import (
    ColumnwiseOperators,
    DiagonalMinusRankOneOperators,
    Operators,
    in_full_precision,
    kernel_for,
    native,
    widened,
)
from statetrack.settings import option

CHUNK = 16
"""Positions that are computed at once."""


class KDASettings(DeltaOptions):
    """Settings of Kimi delta attention."""

    value_dim: int = option(16, "Size V of a head's values, and rank of the gates.", min=1)

    @property
    def recurrence(self) -> Householder:
        """One generalised reflection in each head, after gates for each row."""
        return Householder(
            beta=self.beta, sizes=self.sizes, structure="(I - beta k k^T) diag(alpha)"
        )


class ErasingFactors(NamedTuple):
    """The terms of S_t = (I - k_t e_t^T) diag(alpha_t) S_{t-1} + k_t w_t^T, [..., N, K or V].

    Gates are given by their logarithms, of at most 0.
    """

    queries: Tensor
    keys: Tensor  # k
    written: Tensor  # w
    erased: Tensor  # e
    log_gates: Tensor


class KDAFactors(NamedTuple):
    """The terms of the recurrence at some positions, [..., N, K or V]; log_gates at most 0."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    betas: Tensor  # [..., N]
    log_gates: Tensor

    def erasing(self) -> ErasingFactors:
        """With beta v as what is written, and beta k as what is erased."""
        betas = self.betas.unsqueeze(-1)
        return ErasingFactors(
            self.queries, self.keys, betas * self.values, betas * self.keys, self.log_gates
        )


class KDALayer(AffineMixer[tuple[Window, Tensor], TermsT], Generic[TermsT]):
    """The layer around a delta rule before which each row of the state decays by its own gate."""

    without_decay = ("log_rates", "bias")
    normalises_keys = True

    def __init__(self, settings: DeltaOptions) -> None:
        super().__init__()
        width, heads = settings.width, settings.heads
        key_dim, value_dim = settings.key_dim, settings.value_dim
        self.heads = heads
        self.key_shape, self.value_shape = (heads, key_dim), (heads, value_dim)
        keys, values = math.prod(self.key_shape), math.prod(self.value_shape)
        self.sizes = [keys, keys, values]
        self.beta_range = BETA_RANGE[settings.beta]
        self.project = Linear(width, sum(self.sizes), bias=False)
        silu = nn.SiLU()
        self.convolution = ShortConvolution(sum(self.sizes), settings.conv, silu, bias=False)
        self.activation = nn.Identity() if settings.conv else silu
        self.add_gates(width)
        self.steps = nn.Sequential(
            Linear(width, value_dim, bias=False), Linear(value_dim, keys, bias=False)
        )
        self.log_rates = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        self.bias = nn.Parameter(inverse_softplus(draw_time_steps(keys)))
        self.norm = RMSNorm(value_dim)
        self.gate = nn.Sequential(Linear(width, value_dim, bias=False), Linear(value_dim, values))
        self.output = Linear(values, width, bias=False)
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Conv1d):
                nn.init.normal_(part.weight, std=0.02)
                if part.bias is not None:
                    nn.init.zeros_(part.bias)

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The convolution's initial state, and zeros [B, N, K, V]."""
        shape = (num_words, *self.key_shape, self.value_shape[-1])
        associations = zeros(self.output.weight, *shape)
        return self.convolution.initial_state(num_words), associations

    @abc.abstractmethod
    def add_gates(self, width: int) -> None:
        """Make the maps of the inputs that say how much is erased and written."""

    def rows(self, inputs: Tensor, window: Window) -> tuple[tuple[Tensor, Tensor, Tensor], Window]:
        """Queries, keys and values, by head."""
        projected, window = self.convolution.scan(self.project(inputs), window)
        rows = self.loaded(self.activation(widened(projected)))
        queries, keys, values = queries_keys_values(
            rows, self.sizes, self.key_shape[-1], kernel=self.kernel
        )
        by_head = (
            queries.unflatten(-1, self.key_shape),
            keys.unflatten(-1, self.key_shape),
            values.unflatten(-1, self.value_shape),
        )
        return by_head, window

    def log_gates(self, inputs: Tensor) -> Tensor:
        """The logarithms of the gates of rows [..., N, K]."""
        steps = functional.softplus(widened(self.steps(inputs)) + self.bias)
        return -self.log_rates.exp().unsqueeze(-1) * split_heads(steps, self.heads)

    def finish(self, read: Tensor, terms: TermsT, inputs: Tensor) -> Tensor:
        """Normalised by head, gated and mapped."""
        gate = torch.sigmoid(self.gate(inputs))
        return through(self.output, self.norm(read).flatten(-2) * gate)


class KDAMixer(KDALayer[KDAFactors]):
    """A delta rule in every head, before which each row of the state decays by its own gate."""

    def add_gates(self, width: int) -> None:
        """One beta for each head."""
        self.betas = Linear(width, self.heads, bias=False)

    def terms(self, inputs: Tensor, window: Window) -> tuple[KDAFactors, Window]:
        """Queries, keys, values, betas and gates, by head."""
        rows, window = self.rows(inputs, window)
        betas = self.beta_range * torch.sigmoid(widened(self.betas(inputs)))
        return KDAFactors(*rows, betas, self.log_gates(inputs)), window

    def advance(self, terms: KDAFactors, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, N, V] and the next state."""
        return kda_step(terms, memory)

    def recur(self, terms: KDAFactors, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, N, V] and the last state."""
        if kernel_for(self.kernel, memory.device, memory.dtype) != "native":
            return kda_scan(terms, memory)
        queries, keys, values, betas, log_gates = terms
        keys, values, betas = (part.unsqueeze(2) for part in (keys, values, betas))
        return native.delta_rule(queries, keys, values, betas, log_gates, memory)

    def operators(self, terms: KDAFactors) -> Operators:
        """Diag(alpha) - (beta k) (alpha k)^T by head, on each of the V columns."""
        gates = terms.log_gates.exp()
        operators = DiagonalMinusRankOneOperators(
            gates.flatten(0, 1),
            (terms.betas.unsqueeze(-1) * terms.keys).flatten(0, 1),
            (gates * terms.keys).flatten(0, 1),
        )
        return ColumnwiseOperators(operators, self.value_shape[-1])


@MODELS.register("kda")
class KDA(BlockModel[KDASettings]):
    """Kimi delta attention: a delta rule with a forget gate for each row of the state."""

    settings_class = KDASettings
    mixer_class = KDAMixer
    family = "delta rule"
    source = "Kimi Team 2025, arXiv:2510.26692"
    frame = "normal"


def kda_step(factors: KDAFactors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, N, V] and the next state [B, N, K, V], at one position."""
    return erasing_step(factors.erasing(), state)


def kda_scan(factors: KDAFactors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], chunk by chunk."""
    return erasing_scan(factors.erasing(), state)


@in_full_precision
def erasing_step(factors: ErasingFactors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, N, V] and the next state [B, N, K, V], at one position."""
    queries, keys, written, erased, log_gates = factors
    state = log_gates.exp().unsqueeze(-1) * state
    rows = written - torch.einsum("bnk,bnkv->bnv", erased, state)
    state = state + keys.unsqueeze(-1) * rows.unsqueeze(-2)
    return torch.einsum("bnk,bnkv->bnv", queries, state), state


@in_full_precision
def erasing_scan(factors: ErasingFactors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, V] and the last state [B, N, K, V], chunk by chunk.

    With w_t what is written and e_t what is erased, G_t the sum of a chunk's log gates up to t, S_0
    the state before the chunk and u_t the row that position t writes along k_t,

        S_t = exp(G_t) * S_0 + sum_{i <= t} (exp(G_t - G_i) * k_i) u_i^T
        u_t = w_t - (exp(G_t) * e_t)^T S_0 - sum_{i < t} (e_t . exp(G_t - G_i) * k_i) u_i

    so that the rows u_t of a chunk solve a triangular system. No exponent is positive, whatever
    the gates are.
    """
    outputs = []
    for parts in zip(*(part.transpose(1, 2).split(CHUNK, 2) for part in factors), strict=True):
        queries, keys, written, erased, log_gates = parts  # [B, N, c, K]
        sums = log_gates.cumsum(-2)
        apart = sums.unsqueeze(-2) - sums.unsqueeze(-3)
        fading = keys.unsqueeze(-3) * apart.clamp_max(0).exp()  # [B, N, c, c, K]
        decays = sums.exp()
        system = torch.einsum("bntk,bntik->bnti", erased, fading).tril(-1)
        known = written - (decays * erased) @ state
        rows = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)
        read_rows = torch.einsum("bntk,bntik->bnti", queries, fading).tril()
        outputs.append((decays * queries) @ state + read_rows @ rows)
        state = decays[..., -1, :].unsqueeze(-1) * state + fading[..., -1, :, :].mT @ rows
    return torch.cat(outputs, 2).transpose(1, 2), state
