"""The layer around a delta rule, shared by DeltaNet, DeltaProduct and their gated forms.

    q, k, v = silu(conv(W x)),    q and k divided by their length,    beta = c sigmoid(W_beta x)
    y = W_o [ RMSNorm(o) (* silu(W_g x)) ]

for each head separately, with o from `ops.delta_rule` on q / sqrt(K), and c = 1 or 2. Lengths are
sqrt(|x|^2 + 10^-6), so a short key or query stays shorter than 1. The factor 1 / sqrt(K) and the
norm's epsilon of 10^-6 count where outputs are small, as they are at a word's first positions.

The maps start Xavier-uniform with a gain of 2^(-5/2), and the convolution as torch's do: so does
the layer of flash-linear-attention (`fla/layers/delta_net.py`) in the state in which Grazzi,
Siems et al. (2024, arXiv:2411.12537) trained it on state tracking.

B batch, T time, N heads, n keys per position, K key size, V value size, D width.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra import Heads, Size
from statetrack.errors import SettingsError, setting
from statetrack.models._base import through, zeros
from statetrack.models._blocks import AffineMixer, BlockModel
from statetrack.models._layers import (
    RMSNorm,
    ShortConvolution,
    Window,
    draw_small,
    draw_time_steps,
    gated,
    queries_keys_values,
)
from statetrack.models._linear import Linear
from statetrack.models._settings import BlockSettings, KernelSettings
from statetrack.ops import (
    LARGEST_GATED_KEY,
    ColumnwiseOperators,
    HouseholderOperators,
    Kernel,
    Operators,
    widened,
)
from statetrack.settings import option

BETA_RANGE = {"unit": 1.0, "double": 2.0}


class DeltaOptions(BlockSettings):
    """The options that every delta rule has, whatever else it has."""

    heads: int = option(4, "Number N of heads, each with a state of its own.", min=1)
    key_dim: int = option(16, "Size K of a head's keys and queries.", min=1)
    value_dim: int = option(16, "Size V of a head's values.", min=1)
    beta: Literal["unit", "double"] = option(
        "unit",
        "Range of beta: unit is [0, 1], with eigenvalues 1 - beta in [0, 1]; double is [0, 2], "
        "with eigenvalues in [-1, 1].",
    )
    conv: int = option(
        4, "Kernel of the short convolution of queries, keys and values; 0 leaves it out.", min=0
    )

    @property
    def sizes(self) -> Heads:
        """The settings that say how much the layers hold."""
        return Heads(
            layers=Size("layers", self.layers),
            heads=Size("heads", self.heads),
            key_dim=Size("key_dim", self.key_dim),
            value_dim=Size("value_dim", self.value_dim),
            mlp=Size("mlp", math.ceil(self.mlp)),
        )


class DeltaSettings(KernelSettings, DeltaOptions):
    """Settings of a delta rule that another library has a kernel for."""

    output_gate: bool = option(False, "Whether outputs are multiplied by silu of a linear map.")


DeltaSettingsT = TypeVar("DeltaSettingsT", bound=DeltaSettings)


class ForgetGate(nn.Module):
    """log alpha = -a softplus(W x + b) for each head: alpha is in (0, 1).

    As in Mamba-2 (Dao & Gu 2024, arXiv:2405.21060): at the start a is uniform in (0, 16), and
    softplus(b) log-uniform in [0.001, 0.1].
    """

    without_decay = ("log_rates", "bias")

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.steps = Linear(width, heads, bias=False)
        self.log_rates = nn.Parameter(torch.empty(heads).uniform_(1e-3, 16).log())
        self.bias = nn.Parameter(draw_time_steps(heads).expm1().log())

    def forward(self, inputs: Tensor) -> Tensor:
        """The logarithms of the gates [..., N] of inputs [..., D]."""
        steps = functional.softplus(widened(self.steps(inputs)) + self.bias)
        return -self.log_rates.exp() * steps


class DeltaFactors(NamedTuple):
    """The inputs of a delta rule; the leading axes are [B, T], or [B] for one position."""

    queries: Tensor  # [..., N, K]
    keys: Tensor  # [..., n, N, K]
    values: Tensor  # [..., n, N, V]
    betas: Tensor  # [..., n, N]
    log_gates: Tensor | None  # [..., N]


class DeltaMixer(AffineMixer[tuple[Window, Tensor], DeltaFactors]):
    """A delta rule in every head, with n keys per position and, where given, a forget gate."""

    normalises_keys = True

    def __init__(
        self, settings: DeltaSettings, *, num_keys: int = 1, forget_gate: ForgetGate | None = None
    ) -> None:
        super().__init__()
        heads, key_dim, value_dim = settings.heads, settings.key_dim, settings.value_dim
        too_large = forget_gate is not None and key_dim > LARGEST_GATED_KEY
        if too_large and settings.kernel == "fla":
            raise SettingsError(
                f"{setting('kernel', 'fla')}: the gated delta rule's kernel takes "
                f"{setting('key_dim')} up to {LARGEST_GATED_KEY}, not {key_dim}: take less, or "
                f"{setting('kernel', 'torch')}"
            )
        self.query_shape = (heads, key_dim)
        self.key_shape = (num_keys, heads, key_dim)
        self.value_shape = (num_keys, heads, value_dim)
        self.sizes = [math.prod(s) for s in (self.query_shape, self.key_shape, self.value_shape)]
        self.beta_range = BETA_RANGE[settings.beta]
        self.project = Linear(settings.width, sum(self.sizes), bias=False)
        silu = nn.SiLU()
        self.convolution = ShortConvolution(sum(self.sizes), settings.conv, silu, bias=False)
        self.activation = nn.Identity() if settings.conv else silu
        self.betas = Linear(settings.width, num_keys * heads, bias=False)
        self.forget_gate = forget_gate
        self.norm = RMSNorm(value_dim)
        self.gate: nn.Linear | None = None
        if settings.output_gate:
            self.gate = Linear(settings.width, heads * value_dim, bias=False)
        self.output = Linear(heads * value_dim, settings.width, bias=False)
        draw_small(self.project, self.sizes)
        for linear in (self.betas, self.gate, self.output):
            if linear is not None:
                draw_small(linear)
        if forget_gate is not None:
            draw_small(forget_gate.steps)

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The convolution's initial state, and zeros [B, N, K, V]."""
        shape = (num_words, *self.query_shape, self.value_shape[-1])
        associations = zeros(self.output.weight, *shape)
        return self.convolution.initial_state(num_words), associations

    def terms(self, inputs: Tensor, window: Window) -> tuple[DeltaFactors, Window]:
        """Queries, keys, values, betas and gates."""
        projected, window = self.convolution.scan(self.project(inputs), window)
        rows = self.loaded(self.activation(widened(projected)))
        queries, keys, values = queries_keys_values(
            rows, self.sizes, self.query_shape[-1], kernel=self.kernel
        )
        betas = self.beta_range * torch.sigmoid(widened(self.betas(inputs)))
        factors = DeltaFactors(
            queries.unflatten(-1, self.query_shape),
            keys.unflatten(-1, self.key_shape),
            values.unflatten(-1, self.value_shape),
            betas.unflatten(-1, self.key_shape[:2]),
            None if self.forget_gate is None else self.forget_gate(inputs),
        )
        return factors, window

    def advance(self, terms: DeltaFactors, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, N, V] and the next associations."""
        return ops.delta_rule_step(*terms, memory)

    def recur(self, terms: DeltaFactors, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, N, V] and the last associations."""
        return ops.delta_rule(*terms, memory, kernel=self.kernel)

    def operators(self, terms: DeltaFactors) -> Operators:
        """Products of Householder matrices, by head, on each of the V columns."""
        gates = None if terms.log_gates is None else terms.log_gates.exp().flatten(0, 1)
        products = HouseholderOperators(terms.keys.flatten(0, 1), terms.betas.flatten(0, 1), gates)
        return ColumnwiseOperators(products, self.value_shape[-1])

    def finish(self, read: Tensor, terms: DeltaFactors, inputs: Tensor) -> Tensor:
        """Normalised by head, gated and mapped."""
        outputs = self.norm(read).flatten(-2)
        if self.gate is not None:
            outputs = gated(outputs, self.gate(inputs), kernel=self.kernel)
        return through(self.output, outputs)


class DeltaModel(BlockModel[DeltaSettingsT]):
    """A model whose mixers are delta rules, with a frame that starts as that of its sources."""

    family = "delta rule"
    frame = "normal, by depth"

    def kernel_on(self, device: torch.device) -> Kernel:
        """What computes recurrences, linear maps, convolutions and norms on a device."""
        kernel, mixer = super().kernel_on(device), self.mixers[0]
        gated = isinstance(mixer, DeltaMixer) and mixer.forget_gate is not None
        too_large = gated and self.settings.key_dim > LARGEST_GATED_KEY
        return "torch" if kernel == "fla" and too_large else kernel
