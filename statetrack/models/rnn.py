"""The Elman RNN with tanh.

    h_t = tanh(W x_t + U h_{t-1} + b),    logits = C h_t + c

Source: Elman (1990), Finding Structure in Time, doi:10.1207/s15516709cog1402_1.

Checked: torch.nn.RNN, whose class the layers are, against the equation above, to 1e-12 in
tests/references/test_torch_networks.py.

Departures: units are tanh, and the first state is zero, where the source has logistic units;
gradients go through all steps, where the source copies the previous state as one more input and
stops there; b is the sum of the two biases of `torch.nn`, and all weights start uniform in
(-1/sqrt(H), 1/sqrt(H)), as torch has it; symbols have learned embeddings.
"""

from __future__ import annotations

from torch import nn

from statetrack.models._registry import MODELS
from statetrack.models._torch_rnn import TorchRNN
from statetrack.ops import Box, TanhStep, boxes


@MODELS.register("rnn")
class RNN(TorchRNN):
    """Elman RNN with tanh."""

    source = "Elman 1990, doi:10.1207/s15516709cog1402_1"
    network_class = nn.RNN

    def box_layer(self, read: Box, remembered: Box, state: Box, unit: float) -> Box:
        """The sum, behind tanh."""
        after = boxes.tanh(boxes.plus(read, remembered, unit), unit)
        return after.mapped(lambda bound: bound.unsqueeze(-2))

    def tanh_step(self, unit: float) -> TanhStep | None:
        """The step of one layer; the box of all states has the rounding of its arguments."""
        if self.network.num_layers > 1:
            return None
        weight, recurrent, bias, more = self._maps(0)
        vectors = self.embedding.weight
        every = vectors.new_ones(self.num_symbols, self.network.hidden_size)

        def argument(each: float) -> Box:
            read = boxes.affine(Box(vectors, vectors), weight, bias, each)
            remembered = boxes.affine(Box(-every, every), recurrent, more, each)
            return boxes.plus(read, remembered, each)

        exact = argument(0.0)
        return TanhStep(
            recurrent.expand(self.num_symbols, -1, -1),
            exact.centre,
            argument(unit).radius - exact.radius,
            self.readout.weight,
            self.readout.bias,
        )
