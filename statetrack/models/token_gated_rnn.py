"""The token-gated RNN.

    h_t = g(x_t) * (A(x_t) h_{t-1}) + b(x_t),    y_t = C h_t

with g(x) = sigmoid(W_g x + c_g) in (0, 1) for every coordinate, A(x) a full matrix and b(x) a
vector, both linear in (1, x). The map from h_{t-1} to h_t is affine for every input, its Jacobian
diag(g(x_t)) A(x_t): where it separates two states that a word maps to themselves, it cannot correct
errors along their difference (Theorem 1 of the source), unlike the state-gated RNN. The eigenvalues
of the Jacobian are not bounded. State: H numbers per layer. Parameters of a layer's mixer: (D + 1)
(H^2 + 2 H) + H D.

Source: Chung, Choi & Kim (2026), arXiv:2605.07755. Its family of recurrences is public, the
parametrisation is not: that A, b and the gate's logits are linear in the input is ours.

Checked: against the equations above, word by word, to 1e-9 in
tests/references/test_full_matrices.py; no code was released.

Departures: the residual block of this project around it, without normalisation by default: with
one the loss does not depend on the state's norm, training then finds states that grow (on parity
by a factor of about 2 per symbol), and they leave the range of float32 within 60 symbols. Gates
are initially open (c_g = 2).

B batch, T time, D width, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.algebra import Affine, Size
from statetrack.models._base import through
from statetrack.models._blocks import BlockModel, DenseMixer
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_NORM, BlockSettings, NormKind
from statetrack.ops import widened
from statetrack.settings import option

OPEN_GATE = 2.0
"""Initial bias of the gates' logits: a gate is then about sigmoid(2) = 0.88."""


class GatedRNNSettings(BlockSettings):
    """Settings of both gated RNNs."""

    hidden: int = option(32, "Width H of the hidden state.", min=1, max=10**6)
    gain: float = option(
        1.0, "Spectral radius, about, of the matrices at the start (before the gate).", above=0
    )


class TokenGatedRNNSettings(GatedRNNSettings):
    """Settings of the token-gated RNN."""

    norm: NormKind = option("none", ABOUT_NORM)

    @property
    def recurrence(self) -> Affine:
        """A matrix that depends on the input, and an added term."""
        return Affine(hidden=Size("hidden", self.hidden), width=Size("width", self.width))


class InputMatrices(nn.Module):
    """A matrix for every input, linear in it; initially A(x) h has about the norm of h."""

    def __init__(self, width: int, hidden: int, gain: float) -> None:
        super().__init__()
        self.hidden = hidden
        self.map = Linear(width, hidden * hidden)
        deviation = gain / (hidden * (width + 1)) ** 0.5
        nn.init.normal_(self.map.weight, std=deviation)
        nn.init.normal_(self.map.bias, std=deviation)

    def forward(self, inputs: Tensor) -> Tensor:
        """Matrices [..., H, H] of inputs [..., D]."""
        matrices: Tensor = self.map(inputs).unflatten(-1, (self.hidden, self.hidden))
        return widened(matrices)


class TokenGatedMixer(DenseMixer):
    """h_t = g(x_t) * (A(x_t) h_{t-1}) + b(x_t), from zeros."""

    def __init__(self, settings: TokenGatedRNNSettings) -> None:
        super().__init__()
        width, hidden = settings.width, settings.hidden
        self.matrices = InputMatrices(width, hidden, settings.gain)
        self.gate = Linear(width, hidden)
        nn.init.constant_(self.gate.bias, OPEN_GATE)
        self.bias = Linear(width, hidden)
        self.output = Linear(hidden, width, bias=False)

    def initial_state(self, num_words: int) -> Tensor:
        """Zeros [B, H]."""
        weight = self.output.weight
        return weight.new_zeros(num_words, weight.shape[1])

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[tuple[Tensor, Tensor], tuple[()]]:
        """Diag(g(x)) A(x) [..., H, H], and b(x) [..., H]."""
        gates = torch.sigmoid(widened(self.gate(inputs)))
        matrices = gates.unsqueeze(-1) * self.matrices(inputs)
        return (matrices, widened(self.bias(inputs))), window

    def finish(self, read: Tensor, terms: tuple[Tensor, Tensor], inputs: Tensor) -> Tensor:
        """The states, mapped."""
        return through(self.output, read)


@MODELS.register("token-gated-rnn")
class TokenGatedRNN(BlockModel[TokenGatedRNNSettings]):
    """Token-gated RNN: an affine map of the state for every input."""

    settings_class = TokenGatedRNNSettings
    mixer_class = TokenGatedMixer
    family = "affine"
    source = "Chung, Choi & Kim 2026, arXiv:2605.07755"
    training_defaults = {"lrs": (1e-3,), "steps": 1000, "warmup": 0.1, "clip": 1.0}
