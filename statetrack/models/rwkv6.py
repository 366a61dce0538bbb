"""RWKV-6 ("Finch").

    S_t = diag(w_t) S_{t-1} + k_t v_t^T,    y_t = (S_{t-1} + diag(u) k_t v_t^T)^T r_t
    w_t = exp(-exp(lambda + tanh(z_w W_1) W_2))
    o_t = W_o (GroupNorm(y_t) * silu(W_g z_g)),    r_t = W_r z_r,  k_t = W_k z_k,  v_t = W_v z_v

for each of N heads of size K. Each of the five z is a mixture of x_t and x_{t-1} whose shares
depend on both: with c = x_t + (x_{t-1} - x_t) * mu,

    z = x_t + (x_{t-1} - x_t) * (nu + tanh(c A) B)

with its own nu, A and B. A position's own key and value enter its output only through u. The
transition is diagonal, with a decay for each row of the state that depends on the input: its
eigenvalues w_t lie in (0, 1).

Source: Peng et al. (2024), Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
Recurrence, arXiv:2404.05892; initialisation, and the norm of the embeddings, as in its released
training code (BlinkDL/RWKV-LM, `RWKV-v5/src/model.py`, x060).

State: D K + D numbers per layer (D = N K). Parameters of a layer's mixer, with ranks R of the
shares and P of the decay: 5 D^2 + 10 R D + 2 P D + 10 D.

Checked: BlinkDL/RWKV-LM @ 033ce840 (its CUDA kernel as a loop), to 1e-9 in
tests/references/test_rwkv.py. Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's
interpreter, to 2e-6 in tests/references/test_rwkv.py. Checked: against its equations as attention
over earlier positions, with gradients, to 1e-9 in tests/references/test_rwkv.py.

Departures: blocks have no MLP by default, and `--mlp` gives a plain one where the source has its
channel mixing (squared ReLU and a gate, of the inputs at two positions); 4 heads by default, where
the source has heads of size 64; the readout has a bias.

Reading the state before position t is reading the state after position t - 1, so the recurrence
is that of gated linear attention with every query moved one position back.

B batch, T time, N heads, K head size, D width, R and P ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra import PositiveLayers, Size
from statetrack.models._base import require_divisor, through
from statetrack.models._layers import split_heads
from statetrack.models._linear import Linear, is_watched
from statetrack.models._registry import MODELS
from statetrack.models._rwkv import (
    LARGEST_LOG_RATE,
    GroupNorm,
    LowRank,
    RWKVMixer,
    RWKVModel,
    first_shifts,
    log_decays_of,
    maps_of_shifted,
    shifted,
)
from statetrack.models._settings import ABOUT_NORM, KernelSettings, NormKind
from statetrack.ops import (
    ColumnwiseOperators,
    DiagonalOperators,
    KernelChoice,
    Operators,
    in_full_precision,
    kernel_for,
    native,
    natively,
    widened,
)
from statetrack.settings import option


class RWKV6Settings(KernelSettings):
    """Settings of RWKV-6."""

    norm: NormKind = option("layer", ABOUT_NORM)

    heads: int = option(4, "Number N of heads; must divide the width.", min=1)
    shift_rank: int = option(
        32, "Rank R of the maps from the input to the shares of the previous position.", min=1
    )
    decay_rank: int = option(64, "Rank P of the map from the input to the decays.", min=1)

    @property
    def recurrence(self) -> PositiveLayers:
        """Gains in (0, 1) for each row of a head's state."""
        return PositiveLayers(layers=Size("layers", self.layers))


class RWKV6Factors(NamedTuple):
    """The terms of the recurrence at some positions; each [..., N, K], log_decays at most 0."""

    log_decays: Tensor  # log w
    queries: Tensor  # r
    keys: Tensor  # k
    values: Tensor  # v


class RWKV6Mixer(RWKVMixer[RWKV6Factors]):
    """The time mixing of RWKV-6."""

    def __init__(self, settings: RWKV6Settings, layer: int) -> None:
        super().__init__()
        width, heads = settings.width, settings.heads
        require_divisor(width, "heads", heads)
        self.heads = (heads, width // heads)
        depth = layer / (settings.layers - 1) if settings.layers > 1 else 0.0
        shifts = first_shifts(width, layer / settings.layers, (1, 1, 1, 1, 0.5, 0.5))
        shifts[3] -= 0.3 * depth
        self.shift = nn.Parameter(shifts[0])  # mu
        self.shifts = nn.Parameter(shifts[1:])  # nu, for w, k, v, r, g
        self.shift_inner = Linear(width, 5 * settings.shift_rank, bias=False)  # A
        self.shift_outer = nn.Parameter(
            torch.empty(5, settings.shift_rank, width).uniform_(-0.01, 0.01)
        )  # B
        nn.init.zeros_(self.shift_inner.weight)

        self.receptance = Linear(width, width, bias=False)
        self.key = Linear(width, width, bias=False)
        self.value = Linear(width, width, bias=False)
        self.gate = Linear(width, width, bias=False)
        self.output = Linear(width, width, bias=False)
        for linear, gain in (
            (self.receptance, 1.0),
            (self.key, 0.1),
            (self.value, 1.0),
            (self.gate, 0.1),
        ):
            nn.init.orthogonal_(linear.weight, gain)
        nn.init.zeros_(self.output.weight)

        ramp = torch.linspace(0, 1, width)
        self.decay = LowRank(-6 + 5 * ramp ** (0.7 + 1.3 * depth), settings.decay_rank, torch.tanh)
        nn.init.uniform_(self.decay.outer.weight, -0.01, 0.01)
        zigzag = 0.1 * ((torch.arange(width) + 1) % 3 - 1)
        self.bonus = nn.Parameter(split_heads(depth * (1 - ramp) + zigzag, heads))  # u
        self.norm = GroupNorm(heads, width, eps=64e-5)
        nn.init.constant_(self.norm.weight, ((layer + 1) / settings.layers) ** 0.7)

    def recur(self, terms: tuple[RWKV6Factors, Tensor], memory: Tensor) -> tuple[Tensor, Tensor]:
        """The reads of the memories before T positions, [B, T, N, K], and the last memory."""
        return rwkv6_scan(terms[0], memory, kernel=self.kernel)

    def advance(self, terms: tuple[RWKV6Factors, Tensor], memory: Tensor) -> tuple[Tensor, Tensor]:
        """The read of the memory before one position, [B, N, K], and the next memory."""
        return rwkv6_step(terms[0], memory)

    def operators(self, terms: tuple[RWKV6Factors, Tensor]) -> Operators:
        """The decays w of every row, on each of the K columns of a memory."""
        decays = terms[0].log_decays.exp().flatten(0, 1).flatten(1)
        return ColumnwiseOperators(DiagonalOperators(decays), self.heads[1])

    def factors(self, inputs: Tensor, last: Tensor) -> tuple[RWKV6Factors, Tensor]:
        """The terms of the recurrence, and the output gate [..., D]."""
        (inner,) = maps_of_shifted(
            inputs, last, self.shift.unsqueeze(0), [self.shift_inner], kernel=self.kernel
        )
        by_loop = natively(self.kernel, inner)
        if by_loop:
            more = native.block_diagonal(native.hyperbolic_tangent(inner), self.shift_outer)
        else:
            parts = split_heads(torch.tanh(inner), 5)
            more = torch.einsum("...mr,mrd->...md", parts, self.shift_outer)
        mixtures = shifted(inputs, last, self.shifts, more, kernel=self.kernel)
        for_w, for_k, for_v, for_r, for_g = mixtures
        log_rates = widened(self.decay.outwards(through(self.decay.inner, for_w)))
        assert self.decay.bias is not None
        if by_loop:
            decays = native.log_decays(log_rates, self.decay.bias, most=LARGEST_LOG_RATE)
        else:
            decays = log_decays_of(log_rates + self.decay.bias)
        factors = (
            decays,
            widened(self.receptance(for_r)),
            widened(self.key(for_k)),
            widened(self.value(for_v)),
        )
        by_head = RWKV6Factors(*(factor.unflatten(-1, self.heads) for factor in factors))
        return by_head, self.gate(for_g)

    def finish(self, read: Tensor, terms: tuple[RWKV6Factors, Tensor], inputs: Tensor) -> Tensor:
        """Outputs [..., D], from the reads [..., N, K] of the previous states."""
        factors, gate = terms
        if natively(self.kernel, gate) and not is_watched(self.norm):
            given = (factors.queries, factors.keys, factors.values, gate, self.bonus)
            found = native.gated_heads(
                read, *given, self.norm.weight, self.norm.bias, epsilon=self.norm.eps, within=True
            )
            return through(self.output, found)
        weights = (factors.queries * self.bonus * factors.keys).sum(-1, keepdim=True)
        outputs = read + weights * factors.values
        normed = self.norm(outputs.reshape(-1, gate.shape[-1])).view(gate.shape)
        return through(self.output, normed * functional.silu(gate))


@MODELS.register("rwkv6")
class RWKV6(RWKVModel[RWKV6Settings]):
    """RWKV-6: a matrix state whose rows decay by input-dependent gates, after a token shift."""

    settings_class = RWKV6Settings
    source = "Peng et al. 2024, arXiv:2404.05892"

    def make_mixer(self, layer: int) -> RWKV6Mixer:
        """The time mixing of a layer; its initial weights depend on the layer's depth."""
        return RWKV6Mixer(self.settings, layer)


def rwkv6_step(factors: RWKV6Factors, memory: Tensor) -> tuple[Tensor, Tensor]:
    """The read of the memory [B, N, K, K] before one position, and the next memory."""
    log_decays, queries, keys, values = factors
    written = keys.unsqueeze(-1) * values.unsqueeze(-2)
    return _read(memory, queries), log_decays.exp().unsqueeze(-1) * memory + written


def rwkv6_scan(
    factors: RWKV6Factors, memory: Tensor, *, kernel: KernelChoice = "torch"
) -> tuple[Tensor, Tensor]:
    """The reads of the memories before T positions, [B, T, N, K], and the last memory."""
    log_decays, queries, keys, values = factors
    if kernel_for(kernel, memory.device, memory.dtype) == "native":
        return native.attention_before(queries, keys, values, log_decays, memory)
    first = _read(memory, queries[:, 0])
    following = functional.pad(queries[:, 1:], (0, 0, 0, 0, 0, 1))
    read, memory = ops.gated_attention(following, keys, values, log_decays, memory, kernel=kernel)
    return torch.cat([first.unsqueeze(1), read[:, :-1]], 1), memory


@in_full_precision
def _read(memory: Tensor, queries: Tensor) -> Tensor:
    """S^T r [B, N, K] of memories S [B, N, K, K]."""
    return torch.einsum("bnk,bnkv->bnv", queries, memory)
