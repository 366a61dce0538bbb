"""The state-gated RNN.

    h_t = phi(g(h_{t-1}, x_t) * (A(x_t) h_{t-1}) + b(x_t)),    y_t = C h_t

with g(h, x) = sigmoid(U_g h + W_g x + c_g) in (0, 1) for every coordinate, A(x) a full matrix
and b(x) a vector, both linear in (1, x), and phi = tanh or the identity. As the gate reads the
state, the Jacobian depends on it, so the map can be contracting around each of several fixed
points, and so correct small errors, which no affine recurrence can (Theorem 1 of the
source). State: H numbers per layer, in (-1, 1) for tanh. Parameters of a layer's mixer:
(D + 1) (H^2 + 2 H) + H^2 + H D.

Source: Chung, Choi & Kim (2026), arXiv:2605.07755. Its family of recurrences is public, the
parametrisation is not: that A, b and the gate's logits are linear is ours, and so is tanh as
the default.

Checked: against the equations above, word by word, to 1e-9 in
tests/references/test_full_matrices.py; no code was released.

Departures: the residual block of this project around it; gates are initially open (c_g = 2).

B batch, T time, D width, H hidden.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from statetrack.algebra import Affine, Recurrence, Saturating, Size
from statetrack.models._blocks import BlockModel, Mixer
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models.token_gated_rnn import (
    OPEN_GATE,
    GatedRNNSettings,
    InputMatrices,
)
from statetrack.ops import in_full_precision, widened
from statetrack.settings import option


class StateGatedRNNSettings(GatedRNNSettings):
    """Settings of the state-gated RNN."""

    activation: Literal["tanh", "identity"] = option(
        "tanh", "phi, applied to every new state; with identity only the gate reads the state."
    )

    @property
    def recurrence(self) -> Recurrence:
        """Saturating units with a gate; without tanh, affine maps with a gate that may be open."""
        hidden = Size("hidden", self.hidden)
        if self.activation == "identity":
            return Affine(hidden=hidden, width=Size("width", self.width), gate_reads_state=True)
        return Saturating(units=hidden, multiplied=True, beside=1)  # the first state is 0


class StateGatedMixer(Mixer[Tensor]):
    """h_t = phi(g(h_{t-1}, x_t) * (A(x_t) h_{t-1}) + b(x_t)), from zeros."""

    def __init__(self, settings: StateGatedRNNSettings) -> None:
        super().__init__()
        width, hidden = settings.width, settings.hidden
        self.matrices = InputMatrices(width, hidden, settings.gain)
        self.gate = Linear(width, hidden)
        nn.init.constant_(self.gate.bias, OPEN_GATE)
        self.gate_of_state = Linear(hidden, hidden, bias=False)
        self.bias = Linear(width, hidden)
        self.activation = nn.Tanh() if settings.activation == "tanh" else nn.Identity()
        self.output = Linear(hidden, width, bias=False)

    def initial_state(self, num_words: int) -> Tensor:
        """Zeros [B, H]."""
        weight = self.output.weight
        return weight.new_zeros(num_words, weight.shape[1])

    def scan(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, D] and the last state [B, H], of inputs [B, T, D]."""
        parts = (
            self.matrices(inputs),
            widened(self.gate(inputs)),
            widened(self.bias(inputs)),
        )
        states = []
        for matrix, gate, bias in zip(*(part.unbind(1) for part in parts), strict=True):
            state = self._next(matrix, gate, bias, state)
            states.append(state)
        return self.output(torch.stack(states, 1)), state

    @in_full_precision
    def _next(self, matrix: Tensor, gate: Tensor, bias: Tensor, state: Tensor) -> Tensor:
        """The next state [B, H] of an input's matrix [B, H, H], gate logits and bias [B, H]."""
        gate = torch.sigmoid(gate + self.gate_of_state(state))
        state = self.activation(gate * multiply(matrix, state) + bias)
        return state


@MODELS.register("state-gated-rnn")
class StateGatedRNN(BlockModel[StateGatedRNNSettings]):
    """State-gated RNN: a gate that reads the state, which can correct errors."""

    settings_class = StateGatedRNNSettings
    mixer_class = StateGatedMixer
    family = "non-linear"
    source = "Chung, Choi & Kim 2026, arXiv:2605.07755"
    training_defaults = {"lrs": (3e-3,), "steps": 1000, "warmup": 0.1, "clip": 1.0}


def multiply(matrices: Tensor, state: Tensor) -> Tensor:
    """A(x_t) h_{t-1} [B, H] for every word: matrices [B, H, H], states [B, H]."""
    return (matrices @ state.unsqueeze(-1)).squeeze(-1)
