"""The gated recurrent unit.

    r_t = sigmoid(W_r x_t + U_r h_{t-1}),    z_t = sigmoid(W_z x_t + U_z h_{t-1})
    n_t = tanh(W_n x_t + r_t * (U_n h_{t-1})),    h_t = (1 - z_t) * n_t + z_t * h_{t-1}

with biases in every map; logits = C h_t + c.

Source: Cho et al. (2014), arXiv:1406.1078.

Checked: torch.nn.GRU, whose class the layers are, against the equations above, to 1e-12 in
tests/references/test_torch_networks.py.

Departures: the reset gate acts after the product with U_n, not before it as in the source; every
map has the two biases of `torch.nn` (the source leaves biases out of its equations), and all
weights start uniform in (-1/sqrt(H), 1/sqrt(H)), as torch has it; symbols have learned embeddings.
"""

from __future__ import annotations

from torch import nn

from statetrack.models._registry import MODELS
from statetrack.models._torch_rnn import HIDDEN, TorchRNN
from statetrack.ops import Box, boxes


@MODELS.register("gru")
class GRU(TorchRNN):
    """Gated recurrent unit."""

    source = "Cho et al. 2014, arXiv:1406.1078"
    network_class = nn.GRU
    keeping_gate = 1

    def box_layer(self, read: Box, remembered: Box, state: Box, unit: float) -> Box:
        """The gates r, z and the candidate n are the thirds of the maps."""
        reads, remembereds = read.chunks(3), remembered.chunks(3)
        reset, update = (
            boxes.sigmoid(boxes.plus(reads[gate], remembereds[gate], unit), unit) for gate in (0, 1)
        )
        kept = boxes.gated(reset, remembereds[2], unit)
        new = boxes.tanh(boxes.plus(reads[2], kept, unit), unit)
        after = boxes.between(update, new, state.part(HIDDEN), unit)
        return after.mapped(lambda bound: bound.unsqueeze(-2))
