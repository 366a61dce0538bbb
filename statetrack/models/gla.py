"""Gated linear attention.

    S_t = diag(a_t) S_{t-1} + k_t v_t^T,    a_t = sigmoid(W_2 W_1 x_t + b)^(1/16)
    o_t = W_o (norm(S_t^T q_t / sqrt(K)) * silu(W_r x_t))

for each of N heads, with q, k in R^K and v in R^(D/N) linear in x, and the norm by head. The
transition is diagonal, with a gain for each row of the state that depends on the input: its
eigenvalues a_t lie in (0, 1).

Source: Yang, Wang, Shen, Panda & Kim (2024), Gated Linear Attention Transformers with
Hardware-Efficient Training, arXiv:2312.06635.

State: e D^2 / N numbers per word in each layer, e the key expansion (`--expand-keys`, 1/2).
Parameters: (3 + 2 e) D^2 + (1 + e) D r + e D + D in each mixer, r the rank of the gate.

Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's interpreter, to 2e-6 in
tests/references/test_attention_and_gates.py. Checked: against its equations as attention, with
gradients, to 1e-9 in tests/references/test_attention_and_gates.py.

Departures: heads are normalised by their root mean square (in the source by a layer norm), and
queries scaled by 1 / sqrt(K), as in the authors' later library; W_r has no bias; one block
without an MLP by default (the source stacks several, each with a SwiGLU: `--mlp-kind swiglu`);
the readout has a bias. Maps start Xavier-uniform with a gain of 2^(-5/2), and the frame from
N(0, 0.02^2), as in the library's releases of 2024; version 0.6.0 draws maps from N(0, 0.02^2).

B batch, T time, D width, N heads, K key size.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import PositiveLayers, Size
from statetrack.errors import SettingsError, setting
from statetrack.models._base import require_divisor, through, zeros
from statetrack.models._blocks import BlockModel, MatrixMixer, MatrixTerms
from statetrack.models._layers import HeadNorm, Projection, Window, draw_small, gated, split_heads
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_CONV, ABOUT_HEADS, KernelSettings
from statetrack.ops import widened
from statetrack.settings import option


class GLASettings(KernelSettings):
    """Settings of gated linear attention."""

    heads: int = option(4, ABOUT_HEADS, min=1)
    expand_keys: float = option(
        0.5, "Width of all heads' keys together, as a multiple of D.", above=0
    )
    gate_rank: int = option(16, "Rank of the map from the input to the gates.", min=1)
    gate_slowness: float = option(
        16.0, "The gates are sigmoids to the power of one over this: more is slower.", above=0
    )
    conv: int = option(0, ABOUT_CONV, min=0)

    @property
    def recurrence(self) -> PositiveLayers:
        """Gains in (0, 1) for each row of a head's state."""
        return PositiveLayers(layers=Size("layers", self.layers))


class GLAMixer(MatrixMixer[tuple[Window, Tensor]]):
    """A matrix state per head, each row of which decays by its own gate."""

    def __init__(self, settings: GLASettings) -> None:
        super().__init__()
        width, heads = settings.width, settings.heads
        require_divisor(width, "heads", heads)
        self.heads = heads
        self.key_size = round(settings.expand_keys * width / heads)
        if self.key_size == 0:
            raise SettingsError(
                f"{setting('expand_keys', settings.expand_keys)} leaves the {heads} heads no keys: "
                f"take {heads / width:g} or more"
            )
        self.value_size = width // heads
        self.slowness = settings.gate_slowness
        keys = heads * self.key_size
        self.sizes = (keys, keys, width)
        self.projection = Projection(width, sum(self.sizes), settings.conv, bias=False)
        self.gate = nn.Sequential(
            Linear(width, settings.gate_rank, bias=False), Linear(settings.gate_rank, keys)
        )
        self.norm = HeadNorm("rms", heads, self.value_size)
        self.output_gate = Linear(width, width, bias=False)
        self.output = Linear(width, width, bias=False)
        draw_small(self.projection.linear, self.sizes)
        for part in (*self.gate, self.output_gate, self.output):
            assert isinstance(part, nn.Linear)
            draw_small(part)

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The projection's state, and matrices [B, N, K, D / N] of zeros."""
        weight = self.output.weight
        matrices = zeros(weight, num_words, self.heads, self.key_size, self.value_size)
        return self.projection.initial_state(num_words), matrices

    def terms(self, inputs: Tensor, window: Window) -> tuple[MatrixTerms, Window]:
        """Q / sqrt(K), k, v and the logarithms of a, by head."""
        projected, window = self.projection.scan(inputs, window)
        queries, keys, values = widened(projected).split(self.sizes, -1)
        logits = widened(self.gate(inputs))
        parts = (queries / self.key_size**0.5, keys, values, functional.logsigmoid(logits))
        queries, keys, values, log_gates = (split_heads(part, self.heads) for part in parts)
        return MatrixTerms(queries, keys, values, log_gates / self.slowness), window

    def finish(self, read: Tensor, terms: MatrixTerms, inputs: Tensor) -> Tensor:
        """Normalised by head, gated and mapped."""
        return through(
            self.output, gated(self.norm(read), self.output_gate(inputs), kernel=self.kernel)
        )


@MODELS.register("gla")
class GLA(BlockModel[GLASettings]):
    """Gated linear attention: each row of the state decays by an input-dependent gate."""

    settings_class = GLASettings
    mixer_class = GLAMixer
    source = "Yang et al. 2024, arXiv:2312.06635"
    frame = "normal, by depth"
