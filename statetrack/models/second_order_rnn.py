"""The second-order RNN: a full matrix for every symbol, behind tanh.

    h_t = tanh(A(x_t) h_{t-1} + b(x_t)),    logits = C h_t + c

Every pair of a unit and a symbol has its own weight to every unit, so one step can permute or merge
units by the symbol alone: a unit for each state of an automaton, in which a symbol's matrix is the
table of its moves, does any task. The Elman network (`rnn`) has one matrix for all symbols, and
needs a unit for each pair of a state and a symbol; without tanh it is an affine recurrence.

Source: Giles, Miller, Chen, Chen, Sun & Lee (1992), Learning and Extracting Finite State Automata
with Second-Order Recurrent Neural Networks, doi:10.1162/neco.1992.4.3.393.

Checked: against the equation above, word by word, to 1e-12 in
tests/references/test_torch_networks.py; no code was released.

Departures: units are tanh, where the source has logistic units without a bias; labels are read by
a linear map from all units, where the source reads acceptance off one unit of the state; the first
state is learned, where the source starts from one unit on and the others off; gradients go through
all steps. A starts normal with a spread of 1 / sqrt(H), b and the first state with 0.5 and 1.

B batch, V symbols, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.algebra import Saturating, Size
from statetrack.models._base import RecurrentModel, State, WithBoxes
from statetrack.models._linear import Linear, compute_by
from statetrack.models._registry import MODELS
from statetrack.models._settings import NetworkSettings
from statetrack.ops import Box, TanhStep, boxes, in_full_precision, kernel_for, native
from statetrack.settings import option


class SecondOrderRNNSettings(NetworkSettings):
    """Settings of the second-order RNN."""

    hidden: int = option(16, "Width H of the hidden state.", min=1, max=10**6)

    @property
    def recurrence(self) -> Saturating:
        """Saturating units."""
        return Saturating(units=Size("hidden", self.hidden), multiplied=True)


@MODELS.register("second-order-rnn")
class SecondOrderRNN(RecurrentModel, WithBoxes):
    """Second-order RNN: tanh units, with a matrix for every symbol."""

    settings_class = SecondOrderRNNSettings
    settings: SecondOrderRNNSettings
    family = "non-linear"
    source = "Giles et al. 1992, doi:10.1162/neco.1992.4.3.393"
    training_defaults = {"lrs": (1e-2,), "steps": 1000, "loss": "cross-entropy", "clip": 1.0}

    def __init__(
        self, settings: SecondOrderRNNSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        hidden = settings.hidden
        self.matrices = nn.Parameter(torch.randn(num_symbols, hidden, hidden) / hidden**0.5)
        self.biases = nn.Parameter(torch.randn(num_symbols, hidden) / 2)
        self.first = nn.Parameter(torch.randn(hidden))
        self.readout = Linear(hidden, num_labels)
        compute_by(settings.kernel, self)

    def initial_state(self, num_words: int) -> Tensor:
        """The learned first state, tanh of a vector, for every word: [B, H]."""
        return self.first.tanh().expand(num_words, -1)

    def scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, T, C] and the last state [B, H], after symbols [B, T]."""
        assert isinstance(state, Tensor)
        if kernel_for(self.settings.kernel, state.device, state.dtype) == "native":
            found, state = native.second_order_network(self.matrices, self.biases, symbols, state)
            return self.readout(found), state
        states = []
        for symbol in symbols.unbind(1):
            state = _next(self.matrices[symbol], self.biases[symbol], state)
            states.append(state)
        return self.readout(torch.stack(states, 1)), state

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state [B, H], after one symbol per word, [B]."""
        assert isinstance(state, Tensor)
        state = _next(self.matrices[symbols], self.biases[symbols], state)
        return self.readout(state), state

    def flat(self, state: State) -> Tensor:
        """The state itself."""
        assert isinstance(state, Tensor)
        return state

    def box_step(self, symbols: Tensor, box: Box, unit: float = 0.0) -> Box:
        """A box through the symbol's affine map, and tanh of its bounds."""
        mapped = boxes.affine(box, self.matrices[symbols], self.biases[symbols], unit)
        return boxes.tanh(mapped, unit)

    def box_leads(self, box: Box, labels: Tensor, unit: float = 0.0) -> Tensor:
        """From the state."""
        return boxes.leads(box, self.readout.weight, self.readout.bias, labels, unit)

    def tanh_step(self, unit: float) -> TanhStep:
        """The step itself; the box of all states has the rounding of its arguments."""
        every = torch.ones_like(self.biases)
        exact, rounded = (
            boxes.affine(Box(-every, every), self.matrices, self.biases, each)
            for each in (0.0, unit)
        )
        return TanhStep(
            self.matrices,
            self.biases,
            rounded.radius - exact.radius,
            self.readout.weight,
            self.readout.bias,
        )


@in_full_precision
def _next(matrices: Tensor, biases: Tensor, state: Tensor) -> Tensor:
    """Tanh(A h + b) [B, H] of matrices [B, H, H], biases and states [B, H]."""
    return torch.tanh((matrices @ state.unsqueeze(-1)).squeeze(-1) + biases)
