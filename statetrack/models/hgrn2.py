"""The second hierarchically gated recurrent network.

    S_t = diag(f_t) S_{t-1} + (1 - f_t) v_t^T,    y_t = W_o RMSNorm(S_t^T q_t / sqrt(K))
    f_t = gamma + (1 - gamma) sigmoid(W_f x_t),    q_t = silu(W_q x_t),    v_t = W_v x_t

in each of N heads of size K = D / N: HGRN's forget gates, and an input gate of 1 - f_t, as the
decays and keys of gated linear attention, so that the state is a matrix at no cost in parameters.
The norm is over all heads together. The lower bounds gamma rise with the layer as in HGRN: that
of layer k is the sum of the first k - 1 of L softmax weights over layers, by coordinate. The
transition is diagonal: its eigenvalues f_t lie between gamma and 1.

Source: Qin, Yang, Sun, Shen, Li, Sun & Zhong (2024), HGRN2: Gated Linear RNNs with State Expansion,
arXiv:2404.07904; activations, norm and scale as in the layer of flash-linear-attention, by one of
its authors.

State: D K numbers per word in each layer. Parameters: 4 D^2 + D in each mixer, and L D bounds in
all where L > 1.

Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's interpreter, to 2e-6 in
tests/references/test_attention_and_gates.py. Checked: against its equations as attention, with
gradients, to 1e-9 in tests/references/test_attention_and_gates.py.

Departures: two blocks without an MLP by default (the library's stack has a SwiGLU in each:
`--mlp-kind swiglu`), of 4 heads (heads of size 128 in the library); the readout has a bias; no
short convolution. The authors' first package (hgru-pytorch) has silu on values, a sigmoid on
queries, a layer norm, no scale, and biases. Maps and frame start from N(0, 0.02^2), as in version
0.6.0.

B batch, T time, D width, N heads, K head size, L layers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import PositiveLayers, Size
from statetrack.models._base import require_divisor, through, zeros
from statetrack.models._blocks import MatrixMixer, MatrixTerms, PlainMixer
from statetrack.models._layers import RMSNorm, split_heads
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_HEADS, MOST_LAYERS, KernelSettings
from statetrack.models.hgrn import BoundedModel
from statetrack.ops import widened
from statetrack.settings import option

EPSILON = 1e-5
"""Added to the mean square of the outputs; the library's layer has it whatever its settings say."""


class HGRN2Settings(KernelSettings):
    """Settings of the second hierarchically gated recurrent network."""

    layers: int = option(
        2, "Number of blocks; the first may forget everything.", min=1, max=MOST_LAYERS
    )
    heads: int = option(4, ABOUT_HEADS, min=1)

    @property
    def recurrence(self) -> PositiveLayers:
        """Gains in (0, 1) for each row of a head's state."""
        return PositiveLayers(layers=Size("layers", self.layers))


class HGRN2Mixer(PlainMixer[Tensor, MatrixTerms], MatrixMixer[Tensor]):
    """A matrix state per head, whose rows are kept by f and written by 1 - f."""

    def __init__(self, settings: HGRN2Settings, lower_bound: Callable[[], Tensor]) -> None:
        super().__init__()
        width = settings.width
        require_divisor(width, "heads", settings.heads)
        self.heads = settings.heads
        self.size = width // settings.heads
        self.lower_bound = lower_bound
        self.query = Linear(width, width, bias=False)
        self.forget = Linear(width, width, bias=False)
        self.value = Linear(width, width, bias=False)
        self.norm = RMSNorm(width, epsilon=EPSILON)
        self.output = Linear(width, width, bias=False)
        for linear in (self.query, self.forget, self.value, self.output):
            nn.init.normal_(linear.weight, std=0.02)

    def initial_state(self, num_words: int) -> Tensor:
        """Matrices [B, N, K, K] of zeros."""
        return zeros(self.output.weight, num_words, self.heads, self.size, self.size)

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[MatrixTerms, tuple[()]]:
        """Queries, 1 - f, v and log f: log(gamma + (1 - gamma) sigmoid(W_f x)), by head."""
        bound, logits = widened(self.lower_bound()), widened(self.forget(inputs))
        above = torch.log1p(-bound) + functional.logsigmoid(logits)
        log_forget = torch.logaddexp(bound.log(), above)
        queries = functional.silu(widened(self.query(inputs))) / self.size**0.5
        parts = (queries, -torch.expm1(log_forget), widened(self.value(inputs)), log_forget)
        return MatrixTerms(*(split_heads(part, self.heads) for part in parts)), window

    def finish(self, read: Tensor, terms: MatrixTerms, inputs: Tensor) -> Tensor:
        """Normalised over all heads and mapped."""
        return through(self.output, self.norm(read.flatten(-2)))


@MODELS.register("hgrn2")
class HGRN2(BoundedModel[HGRN2Settings]):
    """HGRN2: matrix states whose forget gates are bounded from below, layer by layer."""

    settings_class = HGRN2Settings
    source = "Qin et al. 2024, arXiv:2404.07904"
    frame = "normal"

    def make_mixer(self, layer: int) -> HGRN2Mixer:
        """A mixer that gets its layer's lower bound from the model, which holds those of all."""
        return HGRN2Mixer(self.settings, partial(self.lower_bound, layer))
