"""RWKV-7 ("Goose").

    S_t = S_{t-1} (diag(w_t) - kappa_t (a_t * kappa_t)^T) + v_t k_t^T,    y_t = S_t r_t

in each of N heads of size K, every vector computed from its own mixture of x_t and x_{t-1}:
w_t = exp(-e^{-1/2} sigmoid(w_0 + tanh(x W_1) W_2)), the in-context learning rates
a_t = sigmoid(a_0 + x A_1 A_2), the removal key kappa_t = normalised (W_k x * xi), the
replacement key k_t = W_k x * (1 + (a_t - 1) * alpha), v_t = W_v x and r_t = W_r x. The output
is W_o (g_t * (GroupNorm(y_t) + (r_t . (rho * k_t)) v_t)) with g_t = sigmoid(x G_1) G_2.

The transition of a head is similar to the symmetric diag(w) - (sqrt(a) kappa)(sqrt(a) kappa)^T,
so its eigenvalues are real, and with w in (exp(-e^{-1/2}), 1) = (0.545, 1) and a in (0, 1)
they lie in (-0.455, 1): a negative eigenvalue always shrinks the state.

State: D K + D numbers per layer (D = N K). Parameters of a layer's mixer, with rank R of the
low-rank maps: 4 D^2 + 6 R D + 13 D.

Source: Peng et al. (2025), arXiv:2503.14456; initialisation, and the norm of the embeddings, as in
its released training code (BlinkDL/RWKV-LM, `RWKV-v7/train_temp/src/model.py`).

Checked: BlinkDL/RWKV-LM @ d4a6c3be (its CUDA kernel as a loop), to 1e-9 in
tests/references/test_rwkv.py. Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's
interpreter, to 2e-6 in tests/references/test_rwkv.py. Checked: against a loop over the equations,
with gradients, to 1e-9 in tests/references/test_delta_rules.py.

Departures: in a stack, values are not mixed with those of the first layer (v_t of the first
layer is the source's exactly); blocks have no MLP by default, and `--mlp` gives a plain one where
the source has its channel mixing (squared ReLU, of the inputs at two positions); one rank for all
low-rank maps (32, which the source's rule gives up to a width of about 100); 4 heads by default,
where the source has heads of size 64; the readout has a bias; the source trains w_0 at twice the
learning rate.

B batch, T time, N heads, K head size, D width, R rank, c positions of a chunk.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import DiagonalMinusRankOne, Size
from statetrack.models._base import require_divisor, through
from statetrack.models._linear import Linear, is_watched
from statetrack.models._registry import MODELS
from statetrack.models._rwkv import (
    GroupNorm,
    LowRank,
    RWKVMixer,
    RWKVModel,
    first_shifts,
    maps_of_shifted,
)
from statetrack.models._settings import ABOUT_NORM, BlockSettings, NormKind
from statetrack.ops import (
    ColumnwiseOperators,
    DiagonalMinusRankOneOperators,
    Operators,
    in_full_precision,
    kernel_for,
    native,
    natively,
    widened,
)
from statetrack.settings import option

CHUNK = 16
"""Positions of a chunk; the decay over a whole chunk is at least exp(-9.8): no underflow."""

FASTEST_DECAY = math.exp(-0.5)
"""The largest -log w."""


class RWKV7Settings(BlockSettings):
    """Settings of RWKV-7."""

    norm: NormKind = option("layer", ABOUT_NORM)

    heads: int = option(4, "Number N of heads; the width is a multiple of it.", min=1)
    rank: int = option(32, "Rank R of the low-rank maps of decays, rates and gates.", min=1)

    @property
    def recurrence(self) -> DiagonalMinusRankOne:
        """A diagonal matrix minus one of rank one."""
        return DiagonalMinusRankOne(layers=Size("layers", self.layers))


@MODELS.register("rwkv7")
class RWKV7(RWKVModel[RWKV7Settings]):
    """RWKV-7: decay by coordinate, and a removal along one key with vector-valued rates."""

    settings_class = RWKV7Settings
    same_since = "0.2.0"
    family = "delta rule"
    source = "Peng et al. 2025, arXiv:2503.14456"

    def make_mixer(self, layer: int) -> RWKV7Mixer:
        """The time mixing of a layer; its initial weights depend on the layer's depth."""
        return RWKV7Mixer(self.settings, layer)


class RWKV7Factors(NamedTuple):
    """The terms of the recurrence at some positions; each [..., N, K], log_decays at most 0."""

    queries: Tensor  # r
    log_decays: Tensor  # log w
    removals: Tensor  # kappa
    rates: Tensor  # a
    keys: Tensor  # k
    values: Tensor  # v


class FactorsByLoop(RWKV7Factors):
    """Terms with a product of two of them, which the loop that made them computed too."""

    replacements: Tensor  # a * kappa


class RWKV7Mixer(RWKVMixer[RWKV7Factors]):
    """The time mixing of RWKV-7."""

    def __init__(self, settings: RWKV7Settings, layer: int) -> None:
        super().__init__()
        width, rank = settings.width, settings.rank
        require_divisor(width, "heads", settings.heads)
        self.heads = (settings.heads, width // settings.heads)
        self.shifts = nn.Parameter(
            first_shifts(width, layer / settings.layers, (0.2, 0.9, 0.7, 0.7, 0.9, 0.2))
        )  # for r, w, k, v, a, g
        self.receptance = Linear(width, width, bias=False)
        self.key = Linear(width, width, bias=False)
        self.value = Linear(width, width, bias=False)
        self.output = Linear(width, width, bias=False)
        for linear, gain in ((self.receptance, 1.0), (self.key, 0.1), (self.value, 1.0)):
            nn.init.orthogonal_(linear.weight, gain)
        nn.init.zeros_(self.output.weight)

        depth = layer / (settings.layers - 1) if settings.layers > 1 else 0.0
        ramp = torch.linspace(0, 1, width)
        within = torch.linspace(-1, 1, self.heads[1]).repeat(settings.heads)
        within = within * within.abs()
        self.decay = LowRank(-5.5 + 6 * ramp ** (1 + depth**0.3) + 2.5 * within, rank, torch.tanh)
        self.rate = LowRank(-0.19 + 0.3 * within + 0.4 * (ramp - 0.5), rank, None)
        self.gate = LowRank(None, rank, torch.sigmoid, width=width)
        self.removal = nn.Parameter(0.71 - 0.1 * (ramp - 0.5))
        self.replacement = nn.Parameter(torch.full((width,), 1.02))
        self.bonus = nn.Parameter(torch.full(self.heads, -0.04))
        self.norm = GroupNorm(settings.heads, width, eps=64e-5)
        nn.init.constant_(self.norm.weight, ((layer + 1) / settings.layers) ** 0.7)

    def recur(self, terms: tuple[RWKV7Factors, Tensor], memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, N, K] and the last memory."""
        if kernel_for(self.kernel, memory.device, memory.dtype) != "native":
            return rwkv7_scan(terms[0], memory)
        factors = terms[0]
        queries, log_decays, removals, rates, keys, values = factors
        if isinstance(factors, FactorsByLoop):
            replacements = factors.replacements
        else:
            replacements = rates * removals
        return native.replacing_attention(
            queries, keys, values, log_decays, removals, replacements, memory
        )

    def advance(self, terms: tuple[RWKV7Factors, Tensor], memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, N, K] and the next memory."""
        return rwkv7_step(terms[0], memory)

    def operators(self, terms: tuple[RWKV7Factors, Tensor]) -> Operators:
        """Diag(w) - (a kappa) kappa^T by head, on each of the K columns of a memory."""
        factors, _ = terms
        by_head = DiagonalMinusRankOneOperators(
            factors.log_decays.exp().flatten(0, 1),
            (factors.rates * factors.removals).flatten(0, 1),
            factors.removals.flatten(0, 1),
        )
        return ColumnwiseOperators(by_head, self.heads[1])

    def factors(self, inputs: Tensor, last: Tensor) -> tuple[RWKV7Factors, Tensor]:
        """The terms of the recurrence, and the output gate [..., D]."""
        linear = (self.receptance, self.decay.inner, self.key, self.value)
        maps = (*linear, self.rate.inner, self.gate.inner)
        queries, decays, keys, values, rates, gate = maps_of_shifted(
            inputs, last, self.shifts, maps, kernel=self.kernel
        )
        queries, values = (widened(part).unflatten(-1, self.heads) for part in (queries, values))
        given = (
            widened(keys),
            widened(self.rate.outwards(rates)),
            widened(self.decay.outwards(decays)),
        )
        assert self.rate.bias is not None and self.decay.bias is not None
        weights = (self.removal, self.replacement, self.rate.bias, self.decay.bias)
        if natively(self.kernel, inputs):
            decays, removals, rates, keys, replacements = native.removing_terms(
                *given, *weights, heads=self.heads[0], fastest=FASTEST_DECAY
            )
            by_loop = FactorsByLoop(queries, decays, removals, rates, keys, values)
            by_loop.replacements = replacements
            return by_loop, self.gate.outwards(gate)
        decays, removals, rates, keys = terms_of(*given, *weights, heads=self.heads[0])
        factors = RWKV7Factors(queries, decays, removals, rates, keys, values)
        return factors, self.gate.outwards(gate)

    def finish(self, read: Tensor, terms: tuple[RWKV7Factors, Tensor], inputs: Tensor) -> Tensor:
        """Outputs [..., D], from the outputs [..., N, K] of the recurrence."""
        factors, gate = terms
        given = (factors.queries, factors.keys, factors.values, gate)
        if natively(self.kernel, gate) and not is_watched(self.norm):
            affine = (self.norm.weight, self.norm.bias)
            found = native.gated_heads(read, *given, self.bonus, *affine, epsilon=self.norm.eps)
            return through(self.output, found)
        normed = self.norm(read.reshape(-1, gate.shape[-1])).view(gate.shape)
        weights = (factors.queries * self.bonus * factors.keys).sum(-1, keepdim=True)
        own = (weights * factors.values).flatten(-2)
        return through(self.output, gate * (normed + own))


def terms_of(
    keys: Tensor,
    rates: Tensor,
    decays: Tensor,
    removal: Tensor,
    replacement: Tensor,
    rate_bias: Tensor,
    decay_bias: Tensor,
    heads: int,
) -> tuple[Tensor, ...]:
    """Log-decays, kappa, a and k, each [..., N, K], of maps of the inputs [..., D]."""
    rates = torch.sigmoid(rates + rate_bias)
    log_decays = -FASTEST_DECAY * torch.sigmoid(decays + decay_bias)
    parts = (log_decays, keys * removal, rates, keys * (1 + (rates - 1) * replacement))
    log_decays, removals, rates, keys = (part.unflatten(-1, (heads, -1)) for part in parts)
    return log_decays, functional.normalize(removals, dim=-1), rates, keys


@in_full_precision
def rwkv7_step(factors: RWKV7Factors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, N, K] and the next state [B, N, K, K], at one position."""
    removed = torch.einsum("bnk,bnkv->bnv", factors.removals, state)
    state = (
        factors.log_decays.exp().unsqueeze(-1) * state
        - torch.einsum("bnk,bnv->bnkv", factors.rates * factors.removals, removed)
        + torch.einsum("bnk,bnv->bnkv", factors.keys, factors.values)
    )
    return torch.einsum("bnk,bnkv->bnv", factors.queries, state), state


@in_full_precision
def rwkv7_scan(factors: RWKV7Factors, state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, N, K] and the last state [B, N, K, K], chunk by chunk.

    With E_t the product of a chunk's decays up to t, H_0 the state before the chunk and
    u_t = -kappa_t^T H_{t-1} the row that position t removes,

        H_t = E_t * (H_0 + sum_{i <= t} (a_i kappa_i / E_i) u_i^T + (k_i / E_i) v_i^T)

    so that the rows u_t solve a triangular system; the systems of all chunks are solved at once.
    """
    num_steps = factors.keys.shape[1]
    length = min(num_steps, CHUNK)
    padding = -num_steps % length
    queries, log_decays, removals, rates, keys, values = (
        functional.pad(part, (0, 0, 0, 0, 0, padding))
        .unflatten(1, (-1, length))
        .movedim(1, 0)
        .transpose(2, 3)
        for part in factors
    )  # [M, B, N, c, K]
    sums = log_decays.cumsum(-2)
    decays, growths = sums.exp(), (-sums).exp()
    reads = decays * queries
    removals_before = -(sums - log_decays).exp() * removals
    replacements = growths * rates * removals
    additions = growths * keys
    known = torch.cat([(removals_before @ additions.mT).tril(-1) @ values, removals_before], -1)
    system = -(removals_before @ replacements.mT).tril(-1)
    rows = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)
    from_values, from_state = rows.split([values.shape[-1], keys.shape[-1]], -1)
    read_rows = (reads @ replacements.mT).tril()
    read_values = (reads @ additions.mT).tril() @ values
    last = decays[..., -1, :].unsqueeze(-1)
    write_rows, write_values = last * replacements.mT, (last * additions.mT) @ values

    outputs = []
    for m in range(len(queries)):
        rows = from_values[m] + from_state[m] @ state
        outputs.append(reads[m] @ state + read_rows[m] @ rows + read_values[m])
        state = last[m] * state + write_rows[m] @ rows + write_values[m]
    joined = torch.stack(outputs, 2).flatten(2, 3)  # [B, N, M c, K]
    return joined[:, :, :num_steps].transpose(1, 2), state
