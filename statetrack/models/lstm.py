"""The long short-term memory.

    i, f, o = sigmoid(W_{i,f,o} x_t + U_{i,f,o} h_{t-1}),    g = tanh(W_g x_t + U_g h_{t-1})
    c_t = f * c_{t-1} + i * g,    h_t = o * tanh(c_t)

with biases in every map; logits = C h_t + c.

Source: Hochreiter & Schmidhuber (1997), doi:10.1162/neco.1997.9.8.1735, with the forget gate
of Gers, Schmidhuber & Cummins (2000), doi:10.1162/089976600300015015.

Checked: torch.nn.LSTM, whose class the layers are, against the equations above, to 1e-12 in
tests/references/test_torch_networks.py.

Departures: the cell has neither the peephole connections nor the memory blocks of later variants;
every map has the two biases of `torch.nn` (their sum counts), and all weights start uniform in
(-1/sqrt(H), 1/sqrt(H)), as torch has it; gradients go through all steps, where the first source
cuts them at the gates; symbols have learned embeddings.
"""

from __future__ import annotations

import torch
from torch import nn

from statetrack.models._registry import MODELS
from statetrack.models._torch_rnn import TorchRNN
from statetrack.ops import Box, boxes


@MODELS.register("lstm")
class LSTM(TorchRNN):
    """Long short-term memory."""

    source = "Hochreiter & Schmidhuber 1997, doi:10.1162/neco.1997.9.8.1735"
    network_class = nn.LSTM
    keeping_gate = 1
    state_parts = 2

    def box_layer(self, read: Box, remembered: Box, state: Box, unit: float) -> Box:
        """The gates i, f, g and o are the quarters of the maps; the state is h and c."""
        enter, forget, new, out = boxes.plus(read, remembered, unit).chunks(4)
        old = state.part((..., 1, slice(None)))
        kept = boxes.gated(boxes.sigmoid(forget, unit), old, unit)
        entered = boxes.gated(boxes.sigmoid(enter, unit), boxes.tanh(new, unit), unit)
        cell = boxes.plus(kept, entered, unit)
        hidden = boxes.gated(boxes.sigmoid(out, unit), boxes.tanh(cell, unit), unit)
        return Box(*(torch.stack(bounds, -2) for bounds in zip(hidden, cell, strict=True)))
