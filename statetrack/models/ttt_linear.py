"""Test-time training with a linear inner model.

    f(x; W, b) = x + norm(x W + b),    l_t(W, b) = |f(k_t; W, b) - v_t|^2 / 2
    W_t = W_{t-1} - eta_t dl_t/dW,    b_t = b_{t-1} - eta_t dl_t/db        at (W_{t-1}, b_{t-1})
    y_t = f(q_t; W_t, b_t),    eta_t = eta sigmoid(w . x_t + c) / K

for each of N heads: the state is the weights of a linear model, trained by gradient descent on
the word as it is read. norm is a LayerNorm over the head's K channels; its gain and bias, and W_0
and b_0, are parameters of the outer model; y is normalised over all heads and mapped by W_o. The
norm makes the step non-linear in W; apart from it, each token adds a rank-one term, as in the
delta rule.

Source: Sun, Li, Dalal, Xu, Vikram, Zhang, Dubois, Chen, Wang, Koyejo, Hashimoto & Guestrin
(2024), Learning to (Learn at Test Time): RNNs with Expressive Hidden States, arXiv:2407.04620.

State: D (K + 1) numbers per word in each layer. Parameters: 4 D^2 + D (K + N + 5) + N in each
mixer.

Checked: test-time-training/ttt-lm-pytorch @ 6990c68c (TTTLinear, mini-batches of one), to 1e-9 in
tests/references/test_attention_and_gates.py. Checked: fla-core's naive TTT-Linear with mini-batches
of one, with gradients, to 2e-4 in tests/references/test_attention_and_gates.py. Checked: against
the inner loss differentiated by torch, with gradients, to 1e-9 in
tests/references/test_attention_and_gates.py.

Departures: one token is one inner step (the source takes 16 against the same W, which is faster
and less exact; with one token its rotary positions drop out, and its one learned step weight is
fixed at 1); one block by default; the readout is a map of its own with a bias (the source's is the
embedding); `--conv` filters q, k and v after their maps, with SiLU, where the source filters the
block's input or shares q and k. Weights start from N(0, 0.02^2), as in the released code
(test-time-training/ttt-lm-pytorch).

B batch, T time, D width, N heads, K head size.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from statetrack.algebra import Undecided
from statetrack.errors import SettingsError, setting
from statetrack.models._base import require_divisor, through
from statetrack.models._blocks import BlockModel, StagedMixer
from statetrack.models._layers import LayerNorm, Projection, Window, split_heads
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_CONV, ABOUT_HEADS, ABOUT_MLP, BlockSettings
from statetrack.ops import in_full_precision, widened
from statetrack.settings import option

EPSILON = 1e-6
"""Added to the inner norm's variance."""


class TTTLinearSettings(BlockSettings):
    """Settings of test-time training with a linear inner model."""

    mlp: float = option(2.6875, ABOUT_MLP, min=0)
    mlp_kind: Literal["gelu", "swiglu", "geglu"] = option(
        "swiglu",
        "The MLP: gelu is W_2 gelu(W_1 x + b_1) + b_2; swiglu and geglu are "
        "W_2 (f(W_g x) * W_1 x), with f = silu or gelu.",
    )
    heads: int = option(4, ABOUT_HEADS, min=1)
    inner_rate: float = option(
        1.0, "Largest learning rate eta of the inner model, before the division by K.", above=0
    )
    conv: int = option(0, ABOUT_CONV, min=0)

    @property
    def recurrence(self) -> Undecided:
        """Gradient steps on a linear model: no rule is known."""
        return Undecided()


class Tokens(NamedTuple):
    """The inputs of the inner model: heads [..., N, K], and learning rates [..., N, 1]."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    rates: Tensor


TTTState: TypeAlias = tuple[Window, Tensor, Tensor]
"""The projection's state, W [B, N, K, K] and b [B, N, K]."""


class TTTLinearMixer(StagedMixer[TTTState, Tokens]):
    """A linear model per head that learns to map keys to values."""

    def __init__(self, settings: TTTLinearSettings) -> None:
        super().__init__()
        width, heads = settings.width, settings.heads
        require_divisor(width, "heads", heads)
        size = width // heads
        if size == 1:
            raise SettingsError(
                f"{setting('heads', heads)} leaves 1 channel to each head, which its norm makes "
                "constant: take fewer"
            )
        self.heads = heads
        self.inner_rate = settings.inner_rate / size
        self.projection = Projection(width, 3 * width, settings.conv)
        self.rate = Linear(width, heads)
        nn.init.zeros_(self.rate.bias)
        self.first_weight = nn.Parameter(0.02 * torch.randn(heads, size, size))
        self.first_bias = nn.Parameter(torch.zeros(heads, size))
        self.gain = nn.Parameter(torch.ones(heads, size))
        self.shift = nn.Parameter(torch.zeros(heads, size))
        self.norm = LayerNorm(width, eps=EPSILON)
        self.output = Linear(width, width, bias=False)
        for linear in (self.rate, self.projection.linear, self.output):
            nn.init.normal_(linear.weight, std=0.02)

    def initial_state(self, num_words: int) -> TTTState:
        """The projection's state, W_0 [B, N, K, K] and b_0 [B, N, K]."""
        return (
            self.projection.initial_state(num_words),
            self.first_weight.expand(num_words, -1, -1, -1),
            self.first_bias.expand(num_words, -1, -1),
        )

    def split(self, state: TTTState) -> tuple[Window, tuple[Tensor, Tensor]]:
        """The projection's state, and W and b."""
        window, weight, bias = state
        return window, (weight, bias)

    def join(self, window: Window, memory: tuple[Tensor, Tensor]) -> TTTState:
        """The inverse of `split`."""
        return window, *memory

    def terms(self, inputs: Tensor, window: Window) -> tuple[Tokens, Window]:
        """Queries, keys and values by head, and learning rates."""
        projected, window = self.projection.scan(inputs, window)
        queries, keys, values = split_heads(widened(projected), 3 * self.heads).chunk(3, -2)
        rates = self.inner_rate * torch.sigmoid(widened(self.rate(inputs)))
        return Tokens(queries, keys, values, rates.unsqueeze(-1)), window

    def advance(
        self, terms: Tokens, memory: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One inner step."""
        output, weight, bias = learn(terms, *memory, self.gain, self.shift)
        return output, (weight, bias)

    def finish(self, read: Tensor, terms: Tokens, inputs: Tensor) -> Tensor:
        """Normalised over all heads and mapped."""
        return through(self.output, self.norm(read.flatten(-2)))


@MODELS.register("ttt-linear")
class TTTLinear(BlockModel[TTTLinearSettings]):
    """Test-time training: a linear model per head, trained on the word as it is read."""

    settings_class = TTTLinearSettings
    mixer_class = TTTLinearMixer
    family = "non-linear"
    source = "Sun et al. 2024, arXiv:2407.04620"
    frame = "normal"


@in_full_precision
def learn(
    tokens: Tokens, weight: Tensor, bias: Tensor, gain: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One inner step on (key, value), then the output of the new inner model for the query.

    Heads are [B, N, K], weight [B, N, K, K]; gives y [B, N, K] and the new weight and bias.
    """
    query, key, value, rate = tokens
    normal, inverse_deviation = _normal(_linear(key, weight) + bias)
    error = gain * (normal * gain + shift - (value - key))
    through_mean = error.mean(-1, keepdim=True)
    through_deviation = normal * (error * normal).mean(-1, keepdim=True)
    change = rate * inverse_deviation * (error - through_mean - through_deviation)
    weight = weight - key.unsqueeze(-1) * change.unsqueeze(-2)
    bias = bias - change
    normal, _ = _normal(_linear(query, weight) + bias)
    return query + normal * gain + shift, weight, bias


def _linear(vector: Tensor, weight: Tensor) -> Tensor:
    return torch.einsum("bni,bnij->bnj", vector, weight)


def _normal(vector: Tensor) -> tuple[Tensor, Tensor]:
    """The vector normalised to mean 0 and variance 1, and one over its standard deviation."""
    centred = vector - vector.mean(-1, keepdim=True)
    inverse_deviation = torch.rsqrt(centred.square().mean(-1, keepdim=True) + EPSILON)
    return centred * inverse_deviation, inverse_deviation
