"""The recurrent networks of torch.nn against their equations, written out for one position.

B batch, T time, V symbols, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from statetrack.models import MODELS
from statetrack.models._torch_rnn import TorchRNN
from statetrack.settings import build
from tests.references.recorded import stated_difference

B, T, V, H = 3, 40, 5, 7


def elman(x: Tensor, h: Tensor, c: Tensor, net: nn.RNNBase) -> tuple[Tensor, Tensor]:
    total = x @ net.weight_ih_l0.mT + net.bias_ih_l0 + h @ net.weight_hh_l0.mT + net.bias_hh_l0
    return total.tanh(), c


def gru(x: Tensor, h: Tensor, c: Tensor, net: nn.RNNBase) -> tuple[Tensor, Tensor]:
    w_r, w_z, w_n = net.weight_ih_l0.chunk(3)
    u_r, u_z, u_n = net.weight_hh_l0.chunk(3)
    b_r, b_z, b_n = net.bias_ih_l0.chunk(3)
    d_r, d_z, d_n = net.bias_hh_l0.chunk(3)
    r = torch.sigmoid(x @ w_r.mT + b_r + h @ u_r.mT + d_r)
    z = torch.sigmoid(x @ w_z.mT + b_z + h @ u_z.mT + d_z)
    n = torch.tanh(x @ w_n.mT + b_n + r * (h @ u_n.mT + d_n))
    return (1 - z) * n + z * h, c


def lstm(x: Tensor, h: Tensor, c: Tensor, net: nn.RNNBase) -> tuple[Tensor, Tensor]:
    w_i, w_f, w_g, w_o = net.weight_ih_l0.chunk(4)
    u_i, u_f, u_g, u_o = net.weight_hh_l0.chunk(4)
    b_i, b_f, b_g, b_o = (net.bias_ih_l0 + net.bias_hh_l0).chunk(4)
    i = torch.sigmoid(x @ w_i.mT + h @ u_i.mT + b_i)
    f = torch.sigmoid(x @ w_f.mT + h @ u_f.mT + b_f)
    o = torch.sigmoid(x @ w_o.mT + h @ u_o.mT + b_o)
    c = f * c + i * torch.tanh(x @ w_g.mT + h @ u_g.mT + b_g)
    return o * c.tanh(), c


Step = Callable[[Tensor, Tensor, Tensor, nn.RNNBase], tuple[Tensor, Tensor]]


@pytest.mark.parametrize(
    ("name", "layer", "step"),
    [("rnn", nn.RNN, elman), ("gru", nn.GRU, gru), ("lstm", nn.LSTM, lstm)],
)
def test_logits_are_those_of_the_equations(name: str, layer: type[nn.RNNBase], step: Step):
    torch.manual_seed(0)
    kind = MODELS[name]
    settings = build(kind.settings_class, {"hidden": H, "embed_dim": 4}, name)
    model = kind(settings, num_symbols=V, num_labels=3).double()
    assert isinstance(model, TorchRNN) and type(model.network) is layer
    symbols = torch.randint(V, (B, T))
    h = c = torch.zeros(B, H, dtype=torch.float64)
    expected = []
    for x in model.embedding(symbols).unbind(1):
        h, c = step(x, h, c, model.network)
        expected.append(h @ model.readout.weight.mT + model.readout.bias)
    torch.testing.assert_close(
        model(symbols), torch.stack(expected, 1), rtol=0, atol=stated_difference(name)
    )


def test_a_second_order_network_is_tanh_of_the_matrix_of_each_symbol():
    torch.manual_seed(0)
    kind = MODELS["second-order-rnn"]
    settings = build(kind.settings_class, {"hidden": H}, "second-order-rnn")
    model = kind(settings, num_symbols=V, num_labels=3).double()
    symbols = torch.randint(V, (B, T))
    expected = torch.empty(B, T, 3, dtype=torch.float64)
    for b, word in enumerate(symbols.tolist()):
        h = torch.tanh(model.first)
        for t, x in enumerate(word):
            h = torch.tanh(model.matrices[x] @ h + model.biases[x])
            expected[b, t] = model.readout.weight @ h + model.readout.bias
    torch.testing.assert_close(
        model(symbols), expected, rtol=0, atol=stated_difference("second-order-rnn")
    )
