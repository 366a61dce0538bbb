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

from typing import Literal

import torch
from torch import Tensor, nn

from statetrack.algebra import Affine, Size
from statetrack.models._base import through
from statetrack.models._blocks import BlockModel, PlainMixer
from statetrack.models._gated_rnn import OPEN_GATE, GatedRNNSettings, InputMatrices, multiply
from statetrack.models._registry import MODELS
from statetrack.ops import DenseOperators, Operators, in_full_precision, widened
from statetrack.settings import option


class TokenGatedRNNSettings(GatedRNNSettings):
    """Settings of the token-gated RNN."""

    norm: Literal["rms", "layer", "none"] = option(
        "none", "Normalisation before each mixer, each MLP and the readout."
    )

    @property
    def recurrence(self) -> Affine:
        """A matrix that depends on the input, and an added term."""
        return Affine(hidden=Size("hidden", self.hidden), width=Size("width", self.width))


class TokenGatedMixer(PlainMixer):
    """h_t = g(x_t) * (A(x_t) h_{t-1}) + b(x_t), from zeros."""

    def __init__(self, settings: TokenGatedRNNSettings) -> None:
        super().__init__()
        width, hidden = settings.width, settings.hidden
        self.matrices = InputMatrices(width, hidden, settings.gain)
        self.gate = nn.Linear(width, hidden)
        nn.init.constant_(self.gate.bias, OPEN_GATE)
        self.bias = nn.Linear(width, hidden)
        self.output = nn.Linear(hidden, width, bias=False)

    def initial_state(self, num_words: int) -> Tensor:
        """Zeros [B, H]."""
        weight = self.output.weight
        return weight.new_zeros(num_words, weight.shape[1])

    def scan(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, D] and the last state [B, H], of inputs [B, T, D]."""
        matrices, biases = self._matrices(inputs), widened(self.bias(inputs))
        states = _run(matrices.transpose(0, 1), biases.transpose(0, 1), state)
        return self.output(states.transpose(0, 1)), states[-1]

    def transition(self, inputs: Tensor, state: Tensor | None = None) -> Operators:
        """The matrices diag(g(x)) A(x) of every position."""
        return DenseOperators(self._matrices(inputs).flatten(0, 1))

    def _matrices(self, inputs: Tensor) -> Tensor:
        """Diag(g(x)) A(x) [..., H, H], for inputs [..., D]."""
        gates = torch.sigmoid(widened(self.gate(inputs)))
        return gates.unsqueeze(-1) * through(self.matrices, inputs)


@MODELS.register("token-gated-rnn")
class TokenGatedRNN(BlockModel[TokenGatedRNNSettings]):
    """Token-gated RNN: an affine map of the state for every input."""

    settings_class = TokenGatedRNNSettings
    mixer_class = TokenGatedMixer
    family = "affine"
    source = "Chung, Choi & Kim 2026, arXiv:2605.07755"
    training_defaults = {"lrs": (1e-3,), "steps": 1000, "warmup": 0.1, "clip": 1.0}


@in_full_precision
def _run(matrices: Tensor, biases: Tensor, state: Tensor) -> Tensor:
    """States [T, B, H] of matrices [T, B, H, H] and biases [T, B, H]."""
    states = []
    for matrix, bias in zip(matrices.unbind(0), biases.unbind(0), strict=True):
        state = multiply(matrix, state) + bias
        states.append(state)
    return torch.stack(states)
