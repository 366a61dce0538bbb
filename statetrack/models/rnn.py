"""The Elman RNN with tanh.

    h_t = tanh(W x_t + U h_{t-1} + b),    logits = C h_t + c

Source: Elman (1990), Finding Structure in Time, doi:10.1207/s15516709cog1402_1. The layers
are `torch.nn.RNN` (which adds two biases, b_ih + b_hh); symbols have learned embeddings.
"""

from __future__ import annotations

from torch import nn

from statetrack.models import MODELS
from statetrack.models._torch_rnn import TorchRNN


@MODELS.register("rnn")
class RNN(TorchRNN):
    """Elman RNN with tanh."""

    source = "Elman 1990, doi:10.1207/s15516709cog1402_1"
    training_defaults = {"lrs": (1e-2,), "steps": 1000}
    network_class = nn.RNN
