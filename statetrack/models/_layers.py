"""Layers that several models are made of, and how their first weights are drawn.

Convolutions over the last positions, heads, normalisation without overflow, MLPs. What reads
positions in order takes inputs [B, T, D], or [B, D] of one position of each word.

B batch, T time, D width, N heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.models._base import through
from statetrack.models._linear import Linear, WithKernel, is_watched, maps_by_loop
from statetrack.models._settings import BlockSettings, NormKind
from statetrack.ops import KernelChoice, native, natively, widened

Window: TypeAlias = "Tensor | tuple[()]"
"""The state of a short convolution: its last inputs, or an empty tuple where it is left out."""


class ShortConvolution(WithKernel):
    """A causal convolution over the last `kernel` positions, one filter per channel.

    An activation may follow. With a `kernel` of 0 both are left out. Its state is the last
    `kernel - 1` inputs, [B, kernel - 1, D], zeros before the first.
    """

    def __init__(
        self, width: int, kernel: int, activation: nn.Module | None = None, *, bias: bool = True
    ) -> None:
        super().__init__()
        self.activation = activation or nn.Identity()
        self.filters: nn.Conv1d | None = None
        if kernel:
            self.filters = nn.Conv1d(width, width, kernel, groups=width, bias=bias)

    def initial_state(self, num_words: int) -> Window:
        """Zeros [B, kernel - 1, D], or an empty tuple."""
        if self.filters is None:
            return ()
        width, kernel = self.filters.in_channels, self.filters.kernel_size[0]
        return self.filters.weight.new_zeros(num_words, kernel - 1, width)

    def scan(self, inputs: Tensor, state: Window) -> tuple[Tensor, Window]:
        """Outputs and the last state, of inputs [B, T, D], or [B, D] at one position."""
        filters = self.filters
        if filters is None or isinstance(state, tuple):
            return inputs, state
        weights, before = filters.weight.squeeze(1), filters.kernel_size[0] - 1
        called = is_watched(filters)
        if inputs.dim() == 3 and not called and natively(self.kernel, inputs):
            activated = isinstance(self.activation, nn.SiLU) and not is_watched(self.activation)
            outputs = native.convolution(inputs, state, weights, filters.bias, activated=activated)
            late = inputs[:, max(0, inputs.shape[1] - before) :]
            if late.shape[1] < before:
                late = torch.cat([state, late], 1)[:, late.shape[1] :]
            return outputs if activated else self.activation(outputs), late
        seen = torch.cat([state, inputs if inputs.dim() == 3 else inputs.unsqueeze(1)], 1)
        if inputs.dim() == 2 and not called:
            outputs = torch.einsum("bkd,dk->bd", seen, weights)
            outputs = outputs if filters.bias is None else outputs + filters.bias
        else:
            outputs = through(filters, seen.mT).mT.reshape(*inputs.shape)
        window = seen[:, seen.shape[1] - before :]
        return self.activation(widened(outputs)), window


class Projection(nn.Module):
    """A linear map without bias; unless `kernel` is 0, then a short convolution and SiLU.

    `bias` is whether the convolution has one. The state is that of the convolution.
    """

    def __init__(self, width: int, outputs: int, kernel: int, *, bias: bool = True) -> None:
        super().__init__()
        self.linear = Linear(width, outputs, bias=False)
        self.convolution = ShortConvolution(outputs, kernel, nn.SiLU(), bias=bias)

    def initial_state(self, num_words: int) -> Window:
        """The state before the first position."""
        return self.convolution.initial_state(num_words)

    def scan(self, inputs: Tensor, state: Window) -> tuple[Tensor, Window]:
        """Outputs and the last state, of inputs [B, T, D], or [B, D] at one position."""
        return self.convolution.scan(self.linear(inputs), state)


def split_heads(inputs: Tensor, heads: int) -> Tensor:
    """[..., D] as [..., N, D / N]."""
    split: Tensor = inputs.unflatten(-1, (heads, -1))
    return split


def block_diagonal(inputs: Tensor, blocks: Tensor, *, kernel: KernelChoice = "torch") -> Tensor:
    """Inputs [..., n K] times blocks [n, K, J], each its own part: [..., n, J]."""
    if natively(kernel, inputs):
        return native.block_diagonal(inputs, blocks)
    return torch.einsum("...ni,nij->...nj", split_heads(inputs, len(blocks)), blocks)


class BlockDiagonal(WithKernel):
    """A linear map without bias that mixes only channels of the same block."""

    def __init__(self, width: int, blocks: int, outputs_per_block: int, deviation: float) -> None:
        super().__init__()
        weight = torch.randn(blocks, width // blocks, outputs_per_block)
        self.weight = nn.Parameter(weight * deviation)

    def forward(self, inputs: Tensor) -> Tensor:
        """Blocks [..., blocks, outputs per block] of inputs [..., D]."""
        return block_diagonal(inputs, self.weight, kernel=self.kernel)


def of_unit_length(vectors: Tensor, scale: float = 1.0) -> Tensor:
    """Vectors [..., K] times scale / sqrt(|x|^2 + 10^-6): a short one stays shorter than that."""
    if scale != 1:
        return of_unit_length(vectors) * scale
    return vectors * torch.rsqrt(vectors.square().sum(-1, keepdim=True) + 1e-6)


def queries_keys_values(
    rows: Tensor, sizes: Sequence[int], width: int, *, kernel: KernelChoice = "torch"
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of rows [..., D], of three sizes, for a delta rule.

    Heads of `width` numbers of queries get the length 1 / sqrt(width), and those of keys 1.
    """
    if natively(kernel, rows):
        queries, keys, values = native.unit_parts(rows, sizes, (width**-0.5, 1.0, None), width)
        return queries, keys, values
    queries, keys, values = rows.split(list(sizes), -1)
    by_head = (part.unflatten(-1, (-1, width)) for part in (queries, keys))
    queries, keys = (
        of_unit_length(part, scale).flatten(-2)
        for part, scale in zip(by_head, (width**-0.5, 1.0), strict=True)
    )
    return queries, keys, values


def gated(
    inputs: Tensor,
    gates: Tensor,
    others: Tensor | None = None,
    scales: Tensor | None = None,
    *,
    kernel: KernelChoice = "torch",
) -> Tensor:
    """Inputs [..., D], plus others times scales [D] if there are any, times silu of gates."""
    same = gates.dtype == inputs.dtype and (others is None or others.dtype == inputs.dtype)
    if same and natively(kernel, inputs):
        return native.gated(inputs, gates, others, scales)
    if others is not None and scales is not None:
        inputs = inputs + scales * others
    return inputs * functional.silu(gates)


# --- normalisation ---

LARGEST_SQUARED = 2.0**30
"""Magnitude up to which numbers are squared without scaling."""


def scaled_down(inputs: Tensor) -> Tensor:
    """Vectors [..., D], those with numbers above `LARGEST_SQUARED` scaled to that magnitude.

    In float32 the square of a number above about 10^19 overflows, which growing states reach, and
    the gradient of a norm contains third powers, which overflow earlier. All others are multiplied
    by 1.
    """
    largest = inputs.detach().abs().amax(-1, keepdim=True)
    return inputs * (largest / LARGEST_SQUARED).clamp_min(1.0).reciprocal()


def rms_norm(inputs: Tensor, gain: Tensor | None = None, epsilon: float = 1e-6) -> Tensor:
    """Vectors [..., D] divided by their root mean square, without overflow at any magnitude."""
    if gain is not None:
        gain = gain.to(inputs.dtype)
    return functional.rms_norm(scaled_down(inputs), inputs.shape[-1:], gain, epsilon)


class RMSNorm(WithKernel):
    """x / sqrt(mean(x^2) + epsilon) * g (Zhang & Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise over the last axis."""
        if natively(self.kernel, inputs):
            return self.by_loop(inputs)[0]
        return rms_norm(inputs, self.weight, self.epsilon)

    def by_loop(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The same by a loop, and the inputs for other uses."""
        return native.normalised_beside(
            inputs, self.weight, epsilon=self.epsilon, largest=LARGEST_SQUARED
        )


class LayerNorm(WithKernel, nn.LayerNorm):
    """(x - mean(x)) / sqrt(var(x) + epsilon) * g + b."""

    largest = math.inf
    """Magnitude of a number down to which its vector is scaled before."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise over the last axis."""
        if natively(self.kernel, inputs):
            return self.by_loop(inputs)[0]
        return super().forward(inputs if self.largest == math.inf else scaled_down(inputs))

    def by_loop(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The same by a loop, and the inputs for other uses."""
        return native.normalised_beside(
            inputs, self.weight, self.bias, epsilon=self.eps, centred=True, largest=self.largest
        )


class WideLayerNorm(LayerNorm):
    """Layer normalisation without overflow at any magnitude."""

    largest = LARGEST_SQUARED


class HeadNorm(WithKernel):
    """Each head normalised over its own coordinates, with a gain per coordinate."""

    def __init__(self, kind: Literal["rms", "layer"], heads: int, size: int) -> None:
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.ones(heads, size))

    def forward(self, inputs: Tensor) -> Tensor:
        """Heads [..., N, size], normalised and joined to [..., N size]."""
        if natively(self.kernel, inputs):
            centred = self.kind == "layer"
            epsilon, largest = (1e-5, math.inf) if centred else (1e-6, LARGEST_SQUARED)
            normed = native.normalised(
                inputs, self.weight, epsilon=epsilon, centred=centred, largest=largest
            )
            return normed.flatten(-2)
        if self.kind == "rms":
            normal = rms_norm(inputs)
        else:
            normal = functional.layer_norm(inputs, inputs.shape[-1:], eps=1e-5)
        return (normal * self.weight).flatten(-2)


def beside(norm: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """What a norm makes of inputs, and the inputs for other uses.

    By loops the gradients of both are added in one pass, in place of one more.
    """
    if isinstance(norm, RMSNorm | LayerNorm) and not is_watched(norm):
        if natively(norm.kernel, inputs):
            return norm.by_loop(inputs)
    return through(norm, inputs), inputs


def make_norm(name: NormKind, width: int) -> nn.Module:
    """The normalisation layer that a setting names."""
    if name == "rms":
        return RMSNorm(width)
    return LayerNorm(width) if name == "layer" else nn.Identity()


# --- MLPs ---

GATED = {"swiglu": nn.SiLU, "geglu": nn.GELU, "reglu": nn.ReLU}
"""The activation f of each kind of gated MLP."""

UNITS: dict[type[nn.Module], native.Unit] = {nn.SiLU: "silu", nn.GELU: "gelu", nn.ReLU: "relu"}
"""What loops call activations."""


class GatedMLP(WithKernel):
    """W_2 (f(W_g x) * W_1 x), by default without biases (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(
        self, width: int, inner: int, activation: nn.Module, *, bias: bool = False
    ) -> None:
        super().__init__()
        self.gate = Linear(width, inner, bias=bias)
        self.up = Linear(width, inner, bias=bias)
        self.activation = activation
        self.down = Linear(inner, width, bias=bias)

    def forward(self, inputs: Tensor, others: Tensor | None = None) -> Tensor:
        """[..., D] of inputs [..., D], plus others."""
        layers = self.up, self.gate, self.activation, self.down
        if maps_by_loop(inputs, self.kernel) and not is_watched(*layers):
            up, down, gate = ((map.weight, map.bias) for map in (self.up, self.down, self.gate))
            return native.mlp(inputs, UNITS[type(self.activation)], up, down, gate, others)
        gates, upper = self.gate(inputs), self.up(inputs)
        return through(self.down, self.activation(gates) * upper, others)


class MLP(WithKernel, nn.Sequential):
    """A norm, and a gated MLP or W_2 gelu(W_1 x + b_1) + b_2."""

    def forward(self, stream: Tensor) -> Tensor:
        """[..., D] of the stream [..., D]."""
        return self._of_rows(through(self[0], stream), None)

    def added_to(self, stream: Tensor) -> Tensor:
        """The stream [..., D] plus what is made of it."""
        if is_watched(self):
            return stream + through(self, stream)
        rows, stream = beside(self[0], stream)
        return self._of_rows(rows, stream)

    def _of_rows(self, rows: Tensor, others: Tensor | None) -> Tensor:
        if len(self) == 2:
            return through(self[1], rows, others)
        _, up, activation, down = self
        if maps_by_loop(rows, self.kernel) and not is_watched(*self):
            assert isinstance(up, Linear) and isinstance(down, Linear)
            maps, last = (up.weight, up.bias), (down.weight, down.bias)
            return native.mlp(rows, "gelu", maps, last, others=others)
        return through(down, activation(up(rows)), others)


def make_mlp(settings: BlockSettings, *, bias: bool = False) -> MLP | None:
    """A norm and an MLP of the width and kind of the settings; None where that width is 0.

    `bias` is whether a gated MLP has biases.
    """
    width, inner = settings.width, round(settings.mlp * settings.width)
    if not inner:
        return None
    norm = make_norm(settings.norm, width)
    if settings.mlp_kind != "gelu":
        activation = GATED[settings.mlp_kind]()
        return MLP(norm, GatedMLP(width, inner, activation, bias=bias))
    return MLP(norm, Linear(width, inner), nn.GELU(), Linear(inner, width))


def after_mlp(mlp: MLP | None, stream: Tensor, residual: bool) -> Tensor:
    """The stream [..., D] after an MLP, if there is one: with a residual its output is added."""
    if mlp is None:
        return stream
    return mlp.added_to(stream) if residual else through(mlp, stream)


# --- first weights ---


def linear_maps(module: nn.Module | None) -> list[nn.Linear]:
    """The linear maps of a module, in order."""
    parts = () if module is None else module.modules()
    return [part for part in parts if isinstance(part, nn.Linear)]


def draw_small(linear: nn.Linear, sizes: Sequence[int] = ()) -> None:
    """Draw weights anew, Xavier-uniform with a gain of 2^(-5/2), and biases as zeros.

    Outputs of the given `sizes` are drawn as those of separate maps. This is how layers of
    flash-linear-attention started up to 2024.
    """
    with torch.no_grad():
        for part in linear.weight.split(list(sizes) or len(linear.weight)):
            nn.init.xavier_uniform_(part, 2**-2.5)
        if linear.bias is not None:
            linear.bias.zero_()


def small_deviation(width: int) -> float:
    """The standard deviation of the first weights of a map from `width` numbers.

    (Nguyen & Salazar 2019, arXiv:1910.05895.)
    """
    return float((2 / (5 * width)) ** 0.5)


def residual_deviation(width: int, layers: int) -> float:
    """The standard deviation of the first weights of a map that ends in the residual stream.

    (Radford et al. 2019, GPT-2; Beck et al. 2024, arXiv:2405.04517.)
    """
    return float(2 / layers / width**0.5)


def initialise_mlp(mlp: nn.Module | None, width: int, layers: int) -> None:
    """Small weights in an MLP, the last map's as `residual_deviation(width, layers)`; no biases."""
    maps = linear_maps(mlp)
    for number, linear in enumerate(maps, 1):
        small = small_deviation(linear.in_features)
        last = number == len(maps)
        nn.init.normal_(linear.weight, std=residual_deviation(width, layers) if last else small)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)


def draw_time_steps(size: int) -> Tensor:
    """Initial time steps [size] of state space models, log-uniform between 0.001 and 0.1.

    So time scales of all lengths occur (Gu & Dao 2023, arXiv:2312.00752, section 3.6). A layer that
    computes its time steps by a softplus starts its bias with the inverse softplus of such a draw.
    """
    low, high = math.log(1e-3), math.log(1e-1)
    return torch.exp(low + (high - low) * torch.rand(size))


def inverse_softplus(positive: Tensor) -> Tensor:
    """The x with log(1 + exp(x)) = positive."""
    return positive + torch.log(-torch.expm1(-positive))
