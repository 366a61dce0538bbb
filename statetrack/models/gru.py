"""The gated recurrent unit.

    r_t = sigmoid(W_r x_t + U_r h_{t-1}),    z_t = sigmoid(W_z x_t + U_z h_{t-1})
    n_t = tanh(W_n x_t + r_t * (U_n h_{t-1})),    h_t = (1 - z_t) * n_t + z_t * h_{t-1}

with biases in every map; logits = C h_t + c.

Source: Cho et al. (2014), arXiv:1406.1078. The layers are `torch.nn.GRU`, which applies the
reset gate after the product with U_n, not before it as the source does.
"""

from __future__ import annotations

from torch import nn

from statetrack.models import MODELS
from statetrack.models._torch_rnn import TorchRNN


@MODELS.register("gru")
class GRU(TorchRNN):
    """Gated recurrent unit."""

    source = "Cho et al. 2014, arXiv:1406.1078"
    network_class = nn.GRU
