"""The scalar LSTM with exponential gates.

    c_t = f_t c_{t-1} + i_t tanh(z_t),    n_t = f_t n_{t-1} + i_t,    h_t = sigmoid(o_t) c_t / n_t
    log i_t = W_i u_t + R_i h_{t-1},    f_t = sigmoid(W_f u_t + R_f h_{t-1} + b_f)
    z_t = W_z x_t + R_z h_{t-1} + b_z,    o_t = W_o x_t + R_o h_{t-1} + b_o

with all maps block-diagonal over N heads, and u_t the silu of a short convolution of x. The
mixer outputs h, normalised by head. The gates depend on the last h: the recurrence is non-linear,
and it can keep a bit over any number of symbols that act as the identity.

Source: Beck, Pöppel, Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter
(2024), xLSTM: Extended Long Short-Term Memory, arXiv:2405.04517.

State: 4 D numbers per word in each layer (c, n, h, and a running maximum m of the gates'
logarithms, which does not change h), and the convolution's (kernel - 1) D. Parameters:
8 D^2 / N + (5 + kernel) D in each mixer.

Checked: NX-AI/xlstm @ 8901ba0 (package xlstm 2.0.6, the layer with its vanilla backend), to 1e-12
in tests/references/test_recorded_matrices.py. Checked: against the equations above without the
maximum m, to 1e-9 in tests/references/test_attention_and_gates.py.

Departures: the input gate has no bias, because from n_0 = 0 on it would cancel in c / n; the width
of the MLP is not rounded up to a multiple of 64; norms and the readout have biases, which start at
0; width 64 and one block; no dropout (0 in the source, too). Weight decay is applied to the weights
of maps and convolutions alone, as in the authors' code, and so not to R.

B batch, T time, D width, N heads.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from statetrack.algebra import Recurrence, Saturating, Size
from statetrack.models._base import require_divisor
from statetrack.models._blocks import Mixer
from statetrack.models._layers import (
    BlockDiagonal,
    HeadNorm,
    ShortConvolution,
    Window,
    small_deviation,
)
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_MLP
from statetrack.models.mlstm import (
    ExponentialGateModel,
    ExponentialGateSettings,
    ForgetKind,
    log_forget,
)
from statetrack.ops import in_full_precision, kernel_for, native, widened
from statetrack.settings import option


class SLSTMSettings(ExponentialGateSettings):
    """Settings of the scalar LSTM."""

    mlp: float = option(1.3, ABOUT_MLP, min=0)

    @property
    def recurrence(self) -> Recurrence:
        """Saturating units, among others.

        Heads do not read each other, and each reads channels of its own: two of these hold a point
        on a circle for every symbol, one a constant.
        """
        return Saturating(units=Size("width", self.width), groups=self.heads, beside=3)


class Cell(NamedTuple):
    """c, n, h and m of every coordinate, each [B, N, D / N]."""

    update: Tensor
    normaliser: Tensor
    hidden: Tensor
    maximum: Tensor


SLSTMState: TypeAlias = tuple[Window, Cell]


class SLSTMMixer(Mixer[SLSTMState]):
    """A recurrence with memory mixing (R_i, R_f, R_z and R_o above) within each head."""

    def __init__(self, settings: SLSTMSettings, layer: int) -> None:
        super().__init__()
        width, heads = settings.width, settings.heads
        require_divisor(width, "heads", heads)
        self.width = width
        self.heads = heads
        self.forget_kind = settings.forget
        self.convolution = ShortConvolution(width, settings.conv, nn.SiLU())
        size, deviation = width // heads, small_deviation(width)
        self.input_and_forget = BlockDiagonal(width, heads, 2 * size, deviation)
        self.update_and_output = BlockDiagonal(width, heads, 2 * size, deviation)
        self.recurrent = nn.Parameter(torch.zeros(heads, size, 4 * size))
        depth = layer / max(settings.layers - 1, 1)
        spread = torch.linspace(0, 1, size) ** (0.3 + 1.3 * depth)
        self.forget_bias = nn.Parameter((5 - 12 * spread).repeat(heads, 1))
        self.update_bias = nn.Parameter(torch.zeros(heads, size))
        self.output_bias = nn.Parameter(torch.zeros(heads, size))
        self.norm = HeadNorm("layer", heads, size)

    def initial_state(self, num_words: int) -> SLSTMState:
        """The convolution's state; c, n and h are zeros, and m is minus infinity."""
        zeros = self.recurrent.new_zeros(num_words, self.heads, self.width // self.heads)
        cell = Cell(zeros, zeros, zeros, torch.full_like(zeros, -torch.inf))
        return self.convolution.initial_state(num_words), cell

    def scan(self, inputs: Tensor, state: SLSTMState) -> tuple[Tensor, SLSTMState]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        window, cell = state
        mixed, window = self.convolution.scan(inputs, window)
        entering = widened(self.input_and_forget(mixed))
        leaving = widened(self.update_and_output(inputs))
        nothing = torch.zeros_like(self.forget_bias)
        biases = torch.cat((nothing, self.forget_bias, self.update_bias, self.output_bias), -1)
        if kernel_for(self.kernel, cell.hidden.device, cell.hidden.dtype) == "native":
            sigmoidal, before = self.forget_kind == "sigmoid", torch.stack(cell, -2)
            read, last = native.scalar_lstm(
                entering, leaving, biases, self.recurrent, before, sigmoidal=sigmoidal
            )
            return self.norm(read), (window, Cell(*last.unbind(-2)))
        gates = torch.cat((entering, leaving), -1) + biases  # of i, f, z, o: [B, T, N, 4 D / N]
        hidden = []
        for now in gates.unbind(1):
            cell = advance(now, self.recurrent, cell, self.forget_kind)
            hidden.append(cell.hidden)
        return self.norm(torch.stack(hidden, 1)), (window, cell)


@MODELS.register("slstm")
class SLSTM(ExponentialGateModel[SLSTMSettings]):
    """Scalar LSTM with exponential gates, a normaliser, and memory mixing within heads."""

    settings_class = SLSTMSettings
    same_since = "0.2.0"
    source = "Beck et al. 2024, arXiv:2405.04517"
    training_defaults = {"lrs": (1e-2,), "steps": 1000, "warmup": 0.1, "clip": 1.0}

    def make_mixer(self, layer: int) -> SLSTMMixer:
        """A recurrence whose initial forget gates range from short to long memory."""
        return SLSTMMixer(self.settings, layer)


@in_full_precision
def advance(gates: Tensor, recurrent: Tensor, cell: Cell, forget_kind: ForgetKind) -> Cell:
    """The cell after one position, whose inputs add `gates` [B, N, 4 D / N].

    No gradient flows through m, because it would be zero: c and n both scale with exp(-m).
    """
    mixed = gates + torch.einsum("bni,nij->bnj", cell.hidden, recurrent)
    log_input, forget, candidate, output = mixed.chunk(4, -1)
    before = log_forget(forget_kind, forget) + cell.maximum
    maximum = torch.maximum(before, log_input).detach()
    keep, write = torch.exp(before - maximum), torch.exp(log_input - maximum)
    update = keep * cell.update + write * torch.tanh(candidate)
    normaliser = keep * cell.normaliser + write
    return Cell(update, normaliser, torch.sigmoid(output) * update / normaliser, maximum)
