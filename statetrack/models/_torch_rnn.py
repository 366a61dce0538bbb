"""The frame of the three recurrent networks of `torch.nn`: embedding, layers, linear readout.

B batch, T time, L layers, H hidden.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from statetrack.algebra.recurrences import Saturating, Size
from statetrack.models._base import RecurrentModel, State
from statetrack.models._settings import MOST_LAYERS, ModelSettings
from statetrack.ops.precision import in_full_precision
from statetrack.settings import option


class TorchRNNSettings(ModelSettings):
    """Settings of the recurrent networks of torch.nn."""

    hidden: int = option(64, "Width H of the hidden state.", min=1)
    layers: int = option(1, "Number of stacked recurrent layers.", min=1, max=MOST_LAYERS)
    embed_dim: int = option(0, "Width of the learned symbol embeddings; 0 means H.", min=0)

    @property
    def recurrence(self) -> Saturating:
        """Saturating units."""
        return Saturating(units=Size("hidden", self.hidden))


class TorchRNN(RecurrentModel):
    """Embedding, a recurrent network of torch.nn, linear readout; the first state is zero."""

    settings_class = TorchRNNSettings
    family = "non-linear"
    vectorises = False
    training_defaults = {"lrs": (1e-2,), "steps": 500}

    network_class: ClassVar[type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]]
    state_parts: ClassVar[int] = 1

    def __init__(self, settings: TorchRNNSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        embed_dim = settings.embed_dim or settings.hidden
        self.embedding = nn.Embedding(num_symbols, embed_dim)
        self.network = self.network_class(
            embed_dim, settings.hidden, num_layers=settings.layers, batch_first=True
        )
        self.readout = nn.Linear(settings.hidden, num_labels)

    def initial_state(self, num_words: int) -> State:
        """Zeros [L, B, H] (an LSTM has two: the hidden and the cell state)."""
        network = self.network
        zeros = self.readout.weight.new_zeros(network.num_layers, num_words, network.hidden_size)
        return zeros if self.state_parts == 1 else (zeros, zeros)

    def scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""
        # in bfloat16 torch has no LSTM on CPUs without AVX-512
        outputs, state = in_full_precision(self.network.__call__)(self.embedding(symbols), state)
        return self.readout(outputs), state

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
        logits, state = self.scan(symbols.unsqueeze(1), state)
        return logits.squeeze(1), state
