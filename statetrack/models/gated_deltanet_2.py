"""Gated DeltaNet-2: erasing and writing have gates of their own, one for each coordinate.

    S_t = (I - k_t (b_t * k_t)^T) diag(alpha_t) S_{t-1} + k_t (w_t * v_t)^T,    o_t = S_t^T q_t
    b_t = c sigmoid(W_b x_t),    w_t = sigmoid(W_w x_t)
    alpha_t = exp(-a softplus(W_2 W_1 x_t + d))
    y_t = W_o (RMSNorm(o_t) * sigmoid(G_2 G_1 x_t + e))

in each of N heads, with c = 1, or 2 for `--beta double`: Kimi delta attention with an erase gate
b for each coordinate of the keys and a write gate w for each coordinate of the values, where that
has one beta for both. With D = diag(b * alpha) and |k| = 1 the transition diag(alpha) - k (D k)^T
is similar to the symmetric diag(alpha) - (D^(1/2) k)(D^(1/2) k)^T, so that its eigenvalues are
real, in [0, 1] for `unit` and in [-1, 1] for `double`. It is not symmetric itself, and positions
with other gates b are symmetric in other bases: of products over several positions this says
nothing.

State of a layer: N K V numbers and, with a convolution, conv - 1 positions of N (2 K + V).
Parameters of a layer's mixer: D N (3 K + 3 V) + conv N (2 K + V) + 2 D V + N V (K + V + 1) + N K
+ N + V.

Source: Hatamizadeh, Choi & Kautz (2026), Gated DeltaNet-2: Decoupling Erase and Write in Linear
Attention, arXiv:2605.22791; the layer as in flash-linear-attention (`fla/layers/gdn2.py`); the
range [0, 2] of b is Grazzi, Siems et al.'s (2024), arXiv:2411.12537.

Checked: fla-core's naive recurrence, with gradients, to 2e-4 in
tests/references/test_delta_rules.py. Checked: against a loop over the equations, with gradients,
to 1e-9 in tests/references/test_delta_rules.py. Checked: against Kimi delta attention where both
gates are one number, with gradients, to 1e-9 in tests/references/test_delta_rules.py.

Departures: one block without an MLP by default; 4 heads of size 16 (128 in the library); the
norm's epsilon is 10^-6 (10^-5 in the library); as many heads of values as of keys, and no lower
bound of the gates, which the library offers; the readout has a bias. Maps, convolutions and the
frame start from N(0, 0.02^2), as those of Kimi delta attention here. Weight decay leaves
`log_rates` and `bias` alone, as in the library.

B batch, T time, N heads, K key size, V value size, D width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from statetrack.algebra import DiagonalMinusRankOne, Householder, LinearRecurrence, Size
from statetrack.models._blocks import BlockModel
from statetrack.models._delta import DeltaOptions
from statetrack.models._layers import Window
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models.kda import ErasingFactors, KDALayer, erasing_scan, erasing_step
from statetrack.ops import (
    ColumnwiseOperators,
    DiagonalMinusRankOneOperators,
    Operators,
    kernel_for,
    native,
    widened,
)
from statetrack.settings import option

STRUCTURE = "(I - k (b * k)^T) diag(alpha)"


class GatedDeltaNet2Settings(DeltaOptions):
    """Settings of Gated DeltaNet-2."""

    value_dim: int = option(16, "Size V of a head's values, and rank of the gates.", min=1)

    @property
    def recurrence(self) -> LinearRecurrence:
        """A diagonal matrix minus one of rank one; with erase gates up to 2, reflections too."""
        if self.beta == "double":
            return Householder(beta="double", sizes=self.sizes, structure=STRUCTURE)
        return DiagonalMinusRankOne(
            layers=Size("layers", self.layers), structure=STRUCTURE, eigenvalues="[0, 1]"
        )


class GatedDeltaNet2Mixer(KDALayer[ErasingFactors]):
    """A delta rule in every head that erases along one vector and writes along another."""

    def add_gates(self, width: int) -> None:
        """A gate for each coordinate of keys and of values."""
        self.erase = Linear(width, math.prod(self.key_shape), bias=False)
        self.write = Linear(width, math.prod(self.value_shape), bias=False)

    def terms(self, inputs: Tensor, window: Window) -> tuple[ErasingFactors, Window]:
        """Queries, keys, what is written and erased, and gates, by head."""
        (queries, keys, values), window = self.rows(inputs, window)
        erase = self.beta_range * torch.sigmoid(widened(self.erase(inputs)))
        write = torch.sigmoid(widened(self.write(inputs)))
        factors = ErasingFactors(
            queries,
            keys,
            write.unflatten(-1, self.value_shape) * values,
            erase.unflatten(-1, self.key_shape) * keys,
            self.log_gates(inputs),
        )
        return factors, window

    def advance(self, terms: ErasingFactors, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, N, V] and the next state."""
        return erasing_step(terms, memory)

    def recur(self, terms: ErasingFactors, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, N, V] and the last state."""
        if kernel_for(self.kernel, memory.device, memory.dtype) != "native":
            return erasing_scan(terms, memory)
        queries, keys, written, erased, log_gates = terms
        return native.replacing_attention(
            queries, keys, written, log_gates, log_gates.exp() * erased, keys, memory
        )

    def operators(self, terms: ErasingFactors) -> Operators:
        """Diag(alpha) - k (alpha * b * k)^T by head, on each of the V columns."""
        gates = terms.log_gates.exp()
        operators = DiagonalMinusRankOneOperators(
            gates.flatten(0, 1), terms.keys.flatten(0, 1), (gates * terms.erased).flatten(0, 1)
        )
        return ColumnwiseOperators(operators, self.value_shape[-1])


@MODELS.register("gated-deltanet-2")
class GatedDeltaNet2(BlockModel[GatedDeltaNet2Settings]):
    """Gated DeltaNet-2: a delta rule with gates of its own for what is erased and written."""

    settings_class = GatedDeltaNet2Settings
    mixer_class = GatedDeltaNet2Mixer
    family = "delta rule"
    source = "Hatamizadeh, Choi & Kautz 2026, arXiv:2605.22791"
    frame = "normal"
