"""M2RNN: a matrix state behind tanh, with a forget gate that the input gives.

    H_t = f_t H_{t-1} + (1 - f_t) tanh(H_{t-1} W + k_t v_t^T)
    y_t = H_t^T q_t + d * v_t,    output = W_o norm(y_t * silu(W_g x_t))
    f_t = exp(-a softplus(W_f x_t + c)),    a > 0

for each of N heads, with states H of K x P numbers; W [P, P], d, a and c belong to the head, and q,
k, v are short convolutions (SiLU) of linear maps of x. Every row of H is a tanh network of P units
with the same weights W, and the rows differ in what is written into them. The map from H_{t-1} to
H_t is not linear, so it can keep bits apart over any number of symbols that act as the identity.

Where f_t = 0 (its closed end), a row of one head with k_t > 0 is an Elman network of P units whose
input term is any vector: of a symbol that is mapped to a large k and v with entries above -1/4 (the
least value of SiLU is below that), k v has any signs and sizes. So what Elman networks of P units
track, a head with P columns does.

On group tasks it is hard to train, as one of its authors says of S3 (open-lm-engine/lm-engine,
issue 411), and here the short convolution is why: with it, after 12,000 steps of words of 2-16
symbols 0.42 of them are right at best; without it (`--heads 1 --key-size 1 --value-size 64 --conv
0`, 5,000 steps) four of four replicas are right on all of 200 words of 512 symbols (suite
`m2rnn-s3`).

Source: Mishra, Tan, Stoica, Gonzalez & Dao (2026), M2RNN, arXiv:2603.14360, as in its authors'
code: the layer of open-lm-engine/lm-engine @ 165efbe and the recurrence named below.

Checked: open-lm-engine/flash-model-architectures @ 3c5d7a4 (the recurrence, its form in torch), to
1e-12 in tests/references/test_recorded_matrices.py. Checked: against the equations above, head by
head and row by row, to 1e-9 in tests/references/test_recorded_matrices.py.

State: N K P numbers per word in each layer, and the last kernel - 1 positions of the N (2 K + P)
convolved channels. Parameters: (D + kernel) N (2 K + P) for q, k, v (without a convolution
D N (2 K + P)), N (D + 2) for f, N P (P + 1) for W and d, 2 D N P for W_g and W_o and N P for the
norm, in each mixer.

Departures: every head has its own q, k, v, f and W, where the source can share them between heads;
gradients are not clipped inside the recurrence; W starts as the identity, d at 1, a uniform in (0,
16) and softplus(c) log-uniform between 0.001 and 0.1, as in the source, linear maps and
convolutions as torch has it (in the source normal, with a spread that its configurations give);
sizes are ours, because the source's configurations of small models were not found. Convolutions
have no bias, as in its configurations, and weight decay leaves a, c and d alone, as in its code.

B batch, T time, D width, N heads, K key size, P value size.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Recurrence, Saturating, Size
from statetrack.models._base import through
from statetrack.models._blocks import BlockModel, Mixer
from statetrack.models._layers import (
    Projection,
    RMSNorm,
    Window,
    draw_time_steps,
    gated,
    inverse_softplus,
    split_heads,
)
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings
from statetrack.ops import in_full_precision, native, natively, widened
from statetrack.settings import option

State = tuple[Window, Tensor]
"""The convolution's last inputs, and H [B, N, K, P]."""


class M2RNNSettings(BlockSettings):
    """Settings of M2RNN."""

    heads: int = option(4, "Number of heads N.", min=1)
    key_size: int = option(16, "Rows K of each head's state.", min=1)
    value_size: int = option(16, "Columns P of each head's state, units of its network.", min=1)
    conv: int = option(
        4, "Positions that the short convolution of q, k and v spans; 0 leaves it out.", min=0
    )

    @property
    def recurrence(self) -> Recurrence:
        """Saturating units, the columns of a head."""
        return Saturating(units=Size("value_size", self.value_size))


class M2RNNMixer(Mixer[State]):
    """H_t = f_t H_{t-1} + (1 - f_t) tanh(H_{t-1} W + k_t v_t^T), from zeros."""

    without_decay = ("forget_bias", "log_rates", "skip")

    def __init__(self, settings: M2RNNSettings) -> None:
        super().__init__()
        width, heads = settings.width, settings.heads
        keys, values = settings.key_size, settings.value_size
        self.heads = heads
        self.sizes = (heads * keys, heads * keys, heads * values)
        self.written = Projection(width, sum(self.sizes), settings.conv, bias=False)
        self.forget = Linear(width, heads, bias=False)
        self.forget_bias = nn.Parameter(inverse_softplus(draw_time_steps(heads)))
        self.log_rates = nn.Parameter(torch.empty(heads).uniform_(0, 16).log())  # log a
        self.weight = nn.Parameter(torch.eye(values).repeat(heads, 1, 1))
        self.skip = nn.Parameter(torch.ones(heads, values))
        self.gate = Linear(width, heads * values, bias=False)
        self.norm = RMSNorm(heads * values)
        self.output = Linear(heads * values, width, bias=False)

    def initial_state(self, num_words: int) -> State:
        """The convolution's state, and zeros [B, N, K, P]."""
        keys, values = (size // self.heads for size in self.sizes[1:])
        zeros = self.weight.new_zeros(num_words, self.heads, keys, values)
        return self.written.initial_state(num_words), zeros

    def scan(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        window, matrices = state
        written, window = self.written.scan(inputs, window)
        parts = widened(written).split(self.sizes, -1)
        queries, keys, values = (split_heads(part, self.heads) for part in parts)
        network = native.matrix_network if natively(self.kernel, inputs) else run
        read, matrices = network(queries, keys, values, self._forget(inputs), self.weight, matrices)
        read = (read + self.skip * values).flatten(-2)
        read = gated(read, self.gate(inputs), kernel=self.kernel)
        return through(self.output, self.norm(read)), (window, matrices)

    def _forget(self, inputs: Tensor) -> Tensor:
        """The forget gates f [B, T, N]."""
        rates = self.log_rates.exp()
        return torch.exp(
            -rates * functional.softplus(widened(self.forget(inputs)) + self.forget_bias)
        )


@MODELS.register("m2rnn")
class M2RNN(BlockModel[M2RNNSettings]):
    """M2RNN: a matrix state behind tanh, with outer products written into it."""

    settings_class = M2RNNSettings
    mixer_class = M2RNNMixer
    family = "non-linear"
    source = "Mishra et al. 2026, arXiv:2603.14360"
    same_since = "0.3.0"
    training_defaults = {"lrs": (3e-3,), "steps": 1000, "warmup": 0.1, "clip": 1.0}


@in_full_precision
def run(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    forget: Tensor,
    weight: Tensor,
    matrices: Tensor,
) -> tuple[Tensor, Tensor]:
    """What is read [B, T, N, P], and the last H [B, N, K, P].

    Queries and keys are [B, T, N, K], values [B, T, N, P], forget gates [B, T, N], W [N, P, P].
    """
    read = []
    products = keys.unsqueeze(-1) * values.unsqueeze(-2)
    gates = forget[..., None, None]
    for query, product, keep in zip(
        queries.unbind(1), products.unbind(1), gates.unbind(1), strict=True
    ):
        matrices = keep * matrices + (1 - keep) * torch.tanh(matrices @ weight + product)
        read.append((query.unsqueeze(-2) @ matrices).squeeze(-2))
    return torch.stack(read, 1), matrices
