"""The hierarchically gated recurrent network.

    h_t = lambda_t e^{i theta} h_{t-1} + (1 - lambda_t) c_t
    lambda_t = gamma + (1 - gamma) sigmoid(W_l x_t + b_l)
    o_t = W_o (norm([Re h_t, Im h_t]) * silu(W_g x_t + b_g)) + b_o

coordinate by coordinate, with c_t complex, silu of a linear map of x_t, and learned phases
theta. The lower bounds gamma rise with the layer: that of layer k is the sum of the first k - 1
of L softmax weights over layers, by coordinate, so that lower layers may forget and upper ones
remember. The transition is diagonal: its eigenvalues lambda_t e^{i theta} have moduli between
gamma and 1 that depend on the input, and phases that do not.

Source: Qin, Yang & Zhong (2023), Hierarchically Gated Recurrent Neural Network for Sequence
Modeling, arXiv:2311.04823; order of norm and output gate as in the authors' published layer.

State: 2 D numbers per word in each layer (D without phases). Parameters: 7 D^2 + 11 D in each
mixer (4 D^2 + 6 D without phases), and L D bounds in all where L > 1.

Checked: Doraemonzzz/hgru-pytorch @ 0d556629 (Hgru1d's loop in torch), to 1e-9 in
tests/references/test_attention_and_gates.py. Checked: fla-core's naive real recurrence, with
gradients, to 2e-4 in tests/references/test_attention_and_gates.py. Checked: against its equations
in real numbers, with gradients, to 1e-9 in tests/references/test_attention_and_gates.py.

Departures: blocks have no MLP by default (the source's have a gated linear unit); norms around the
mixer are RMS by default; real and imaginary parts follow each other in the maps where the source's
alternate, and the softmax weights of layers are summed from the first, where those of
flash-linear-attention are summed from the second. Maps start as torch.nn.Linear
does, as in the source's layer; embeddings and the readout, too, start as `torch.nn` draws them.
`--phase none` is the real network, which other libraries call HGRN, there without biases and with
an RMS norm.

B batch, T time, D width, L layers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra import FixedPhaseLayers, LinearRecurrence, PositiveLayers, Size
from statetrack.models._base import through
from statetrack.models._blocks import BlockModel, DiagonalMixer, DiagonalTerms, PlainMixer
from statetrack.models._layers import LayerNorm, gated
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import MOST_LAYERS, BlockSettings, KernelSettings
from statetrack.ops import Operators, turned, widened
from statetrack.settings import option

SettingsT = TypeVar("SettingsT", bound=BlockSettings)


class HGRNSettings(KernelSettings):
    """Settings of the hierarchically gated recurrent network."""

    layers: int = option(
        2, "Number of blocks; the first may forget everything.", min=1, max=MOST_LAYERS
    )
    phase: Literal["learned", "none"] = option(
        "learned", "Whether states are complex and rotate by learned phases, or are real."
    )

    @property
    def recurrence(self) -> LinearRecurrence:
        """Gains whose modulus depends on the input, and whose phase does not."""
        layers = Size("layers", self.layers)
        return (
            PositiveLayers(layers=layers)
            if self.phase == "none"
            else FixedPhaseLayers(layers=layers)
        )


class HGRNMixer(PlainMixer[Tensor, DiagonalTerms], DiagonalMixer[Tensor]):
    """A diagonal recurrence whose input gate is one minus its forget gate."""

    def __init__(self, settings: HGRNSettings, lower_bound: Callable[[], Tensor]) -> None:
        super().__init__()
        width = settings.width
        self.lower_bound = lower_bound
        self.phases: nn.Parameter | None = None
        parts = 1
        if settings.phase == "learned":
            parts = 2
            self.phases = nn.Parameter(10000 ** (-2 / width * torch.arange(width)))
        self.inputs = Linear(width, parts * width)
        self.forget = Linear(width, width)
        self.output_gate = Linear(width, parts * width)
        self.norm = LayerNorm(parts * width)
        self.output = Linear(parts * width, width)

    def initial_state(self, num_words: int) -> Tensor:
        """Zeros [B, D], complex where there are phases."""
        weight = self.output.weight
        dtype = weight.dtype if self.phases is None else weight.dtype.to_complex()
        return weight.new_zeros(num_words, weight.shape[0], dtype=dtype)

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[DiagonalTerms, tuple[()]]:
        """The moduli lambda, and (1 - lambda) c."""
        bound = self.lower_bound()
        forget = bound + (1 - bound) * torch.sigmoid(widened(self.forget(inputs)))
        values = functional.silu(widened(self.inputs(inputs)))
        if self.phases is None:
            return DiagonalTerms(forget, (1 - forget) * values), window
        parts = ((1 - forget) * part for part in values.chunk(2, -1))
        return DiagonalTerms(forget, torch.complex(*parts)), window

    def advance(self, terms: DiagonalTerms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The next state, twice."""
        return super().advance(self._turned(terms), memory)

    def recur(self, terms: DiagonalTerms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """All states [B, T, D], and the last one."""
        if self.phases is None:
            return super().recur(terms, memory)
        moduli, added = terms
        return ops.turning_diagonal(moduli, self.phases, added, memory, kernel=self.kernel)

    def operators(self, terms: DiagonalTerms) -> Operators:
        """The gains lambda e^{i theta} of every position."""
        return super().operators(self._turned(terms))

    def _turned(self, terms: DiagonalTerms) -> DiagonalTerms:
        """The same terms with the gains lambda e^{i theta}."""
        if self.phases is None:
            return terms
        return terms._replace(gains=turned(terms.gains, self.phases))

    def finish(self, read: Tensor, terms: DiagonalTerms, inputs: Tensor) -> Tensor:
        """Real and imaginary parts, normalised, gated and mapped."""
        if self.phases is not None:
            read = torch.cat([read.real, read.imag], -1)
        return through(
            self.output, gated(self.norm(read), self.output_gate(inputs), kernel=self.kernel)
        )


class BoundedModel(BlockModel[SettingsT]):
    """A model that holds the lower bounds gamma of the forget gates of all its layers."""

    def __init__(self, settings: SettingsT, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.bounds: nn.Parameter | None = None
        if settings.layers > 1:
            self.bounds = nn.Parameter(torch.zeros(settings.layers, settings.width))

    def lower_bound(self, layer: int) -> Tensor:
        """The least forget gate of a layer, [D]: 0 in the first, rising from layer to layer."""
        if self.bounds is None:
            return self.readout.weight.new_zeros(())
        return self.bounds.softmax(0)[:layer].sum(0)


@MODELS.register("hgrn")
class HGRN(BoundedModel[HGRNSettings]):
    """Hierarchically gated recurrent network: forget gates bounded from below, layer by layer."""

    settings_class = HGRNSettings
    source = "Qin et al. 2023, arXiv:2311.04823"

    def make_mixer(self, layer: int) -> HGRNMixer:
        """A mixer that gets its layer's lower bound from the model, which holds those of all."""
        return HGRNMixer(self.settings, partial(self.lower_bound, layer))
