"""Mamba, with eigenvalues in (0, 1) or in (-1, 1).

    h_t = Abar_t * h_{t-1} + (dt_t x_t) B_t,    y_t = h_t C_t + D * x_t

with a state of N numbers for each of the E = expand x width channels of x, each with its own
gain: Abar_t = exp(dt_t A) for A < 0 ("positive"), or Abar_t = 2 exp(dt_t A) - 1 ("signed"),
which extends the range of eigenvalues to (-1, 1) and does not change the input term. dt_t =
softplus(W x_t + b), B_t and C_t are linear in x_t, and x_t is a short causal convolution (SiLU) of
the projected input; y_t is gated by SiLU of a second projection.

A positive recurrence cannot compute parity on long words; a signed one can.

Source: Gu & Dao (2023), arXiv:2312.00752; the signed eigenvalues are those of Grazzi, Siems et al.
(2024), arXiv:2411.12537.

State: E N numbers and the last `conv - 1` positions of x, per block. Parameters per block:
3 D E for the projections, E (conv + 1), E (rank + 2 N), E (rank + 1), E N and E.

Checked: state-spaces/mamba @ 2.3.2.post1 (Mamba), to 1e-12 in
tests/references/test_recorded_state_space.py; outputs, gradients and first weights. Checked:
automl/unlocking_state_tracking @ b8b290d (eigenvalues in (-1, 1), `conv` 1), to 1e-12 in
tests/references/test_recorded_state_space.py; outputs, gradients and first weights. Checked:
transformers (MambaMixer), to 2e-4 in tests/references/test_state_space_models.py; outputs and
gradients.

Departures: of the layer, none from either code, whose input term is Euler's (dt B) where the first
paper's text has a zero-order hold. By default `conv` is 4, as in both papers' texts; the code of
arXiv:2411.12537 runs with 1. Width 64, where the papers have 128 and more. Embeddings start as
N(0, 1) and no layer is scaled down by depth, as in that code; the language models of the first
paper start from N(0, 0.02^2) and divide `outward` by the root of the number of layers. The readout
is normalised and has a bias (that code: neither; the first paper: the norm). Norms add 1e-6 to the
mean square, the sources 1e-5. Weight decay, where it is asked for, leaves `log_rates` and `skip`
alone, as in the authors' code.
"""

from __future__ import annotations

import abc
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra import LinearRecurrence, PositiveLayers, SignedLayers, Size
from statetrack.models._base import through
from statetrack.models._blocks import AffineMixer, BlockModel
from statetrack.models._layers import (
    ShortConvolution,
    Window,
    draw_time_steps,
    gated,
    inverse_softplus,
)
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_OWN_CONV, BlockSettings
from statetrack.ops import (
    Operators,
    diagonal_operators,
    in_full_precision,
    kernel_for,
    native,
    widened,
)
from statetrack.settings import option

Eigenvalues = Literal["positive", "signed"]


class MambaSettings(BlockSettings):
    """Settings of Mamba."""

    eigenvalues: Eigenvalues = option(
        "positive", "Range of the transition's eigenvalues: positive in (0, 1), signed in (-1, 1)."
    )
    state: int = option(16, "Numbers N remembered for each channel.", min=1)
    expand: int = option(2, "Channels of the recurrence, as a multiple of the width.", min=1)
    conv: int = option(4, ABOUT_OWN_CONV, min=1)
    rank: int = option(
        0, "Rank of the map to the time steps; 0 means a sixteenth of the width.", min=0
    )

    @property
    def recurrence(self) -> LinearRecurrence:
        """Gains in (0, 1), or in (-1, 1)."""
        layers = Size("layers", self.layers)
        if self.eigenvalues == "signed":
            return SignedLayers(layers=layers)
        return PositiveLayers(layers=layers)


PIECE = 16
"""Positions whose states are held at once: E N numbers each, which should fit in the caches."""


class Selected(NamedTuple):
    """The terms of the recurrence at some positions."""

    gains: Tensor  # [.., E, N]
    terms: Tensor  # [.., E, N]
    readings: Tensor  # what states are read with: [.., N], or [N] for all positions


Terms = tuple[Tensor, Tensor, Tensor]
"""c, u and z [.., E]."""


class SelectiveMixer(AffineMixer[tuple[Window, Tensor], Terms]):
    """Projection, short convolution, diagonal recurrence, gate, projection: of Mamba and AUSSM.

        v, z = W x,    c = conv(v),    u = silu(c),    h_t = a_t * h_{t-1} + b_t
        y = W_o ((read(h) + D * u) * silu(z))

    where a subclass gives the gains a_t and the terms b_t, of c and u, and the function `read`. Its
    state is that of the convolution and h [B, E, N]: N numbers for each of the E channels, too many
    to hold for a whole word, so states are computed and read piece by piece.
    """

    late_terms = Selected._fields

    def __init__(self, width: int, channels: int, conv: int) -> None:
        super().__init__()
        self.inward = Linear(width, 2 * channels, bias=False)
        self.convolution = ShortConvolution(channels, conv)
        self.skip: nn.Parameter
        self.outward: nn.Linear

    @abc.abstractmethod
    def select(self, convolved: Tensor, x: Tensor) -> Selected:
        """The recurrence at positions with the convolution's outputs c and x = silu(c), [.., E]."""

    @abc.abstractmethod
    def read(self, states: Tensor, readings: Tensor) -> Tensor:
        """Outputs [.., E] of states [.., E, N]."""

    def terms(self, inputs: Tensor, window: Window) -> tuple[Terms, Window]:
        """C, u and z."""
        x, gate = self.inward(inputs).chunk(2, -1)
        convolved, window = self.convolution.scan(x, window)
        return (convolved, functional.silu(convolved), gate), window

    def advance(self, terms: Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What is read [B, E], and the next states."""
        gains, added, readings = self.cast(self.select(*terms[:2]))
        memory = gains * memory + added
        return self.read(memory, readings), memory

    def recur(self, terms: Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What is read [B, T, E], and the last states."""
        outputs = []
        pieces = (part.transpose(0, 1).split(PIECE) for part in terms[:2])
        for piece in zip(*pieces, strict=True):
            gains, added, readings = self.cast(self.select(*piece))  # [T, B, ..]
            states = ops.diagonal_recurrence(gains.flatten(2), memory.flatten(1), added.flatten(2))
            states = states.unflatten(2, memory.shape[1:])  # [T, B, E, N]
            outputs.append(self.read(states, readings))
            memory = states[-1]
        return torch.cat(outputs).transpose(0, 1), memory

    def operators(self, terms: Terms) -> Operators:
        """The gains of every position, on E N coordinates."""
        return diagonal_operators(self.select(*terms[:2]).gains.flatten(0, 1).flatten(1))

    def finish(self, read: Tensor, terms: Terms, inputs: Tensor) -> Tensor:
        """W_o ((read + D * u) * silu(z))."""
        _, x, gate = terms
        return through(self.outward, gated(read, gate, x, self.skip, kernel=self.kernel))


class MambaMixer(SelectiveMixer):
    """The selective recurrence. Its state is the convolution's and h [B, E, N]."""

    without_decay = ("log_rates", "skip")

    def __init__(self, settings: MambaSettings) -> None:
        width, inner = settings.width, settings.expand * settings.width
        super().__init__(width, inner, settings.conv)
        rank = settings.rank or -(-width // 16)
        self.eigenvalues = settings.eigenvalues
        self.sizes = (rank, settings.state, settings.state)
        self.selection = Linear(inner, sum(self.sizes), bias=False)
        self.time_steps = Linear(rank, inner)
        self.log_rates = nn.Parameter(
            torch.arange(1.0, settings.state + 1).log().repeat(inner, 1)
        )  # log(-A) [E, N]
        self.skip = nn.Parameter(torch.ones(inner))
        self.outward = Linear(inner, width, bias=False)
        with torch.no_grad():
            self.time_steps.weight.uniform_(-(rank**-0.5), rank**-0.5)
            self.time_steps.bias.copy_(inverse_softplus(draw_time_steps(inner)))

    def initial_state(self, num_words: int) -> tuple[Window, Tensor]:
        """The convolution's state, and zeros [B, E, N]."""
        zeros = self.log_rates.new_zeros(num_words, *self.log_rates.shape)
        return self.convolution.initial_state(num_words), zeros

    def recur(self, terms: Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What is read [B, T, E], and the last states; by a loop where nothing else is to run."""
        if kernel_for(self.kernel, memory.device, memory.dtype) != "native":
            return super().recur(terms, memory)
        x = terms[1]
        return native.selective_diagonal(
            *self.selected(x), -self.log_rates.exp(), memory, signed=self.eigenvalues == "signed"
        )

    def selected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Dt and x [.., E], B and C [.., N], of x."""
        steps, writings, readings = self.selection(x).split(self.sizes, -1)
        steps = functional.softplus(widened(self.time_steps(steps)))
        return steps, x, widened(writings), widened(readings)

    def select(self, convolved: Tensor, x: Tensor) -> Selected:
        """Abar [.., E, N], (dt x) B [.., E, N] and C [.., N] of x [.., E]."""
        steps, x, writings, readings = self.selected(x)
        gains = torch.exp(steps.unsqueeze(-1) * -self.log_rates.exp())
        if self.eigenvalues == "signed":
            gains = 2 * gains - 1
        terms = (steps * x).unsqueeze(-1) * writings.unsqueeze(-2)
        return Selected(gains, terms, readings)

    @in_full_precision
    def read(self, states: Tensor, readings: Tensor) -> Tensor:
        """States [.., E, N] times what they are read with [.., N]."""
        return torch.einsum("...en,...n->...e", states, readings)


@MODELS.register("mamba")
class Mamba(BlockModel[MambaSettings]):
    """Mamba: an input-dependent diagonal recurrence behind a short convolution and a gate."""

    settings_class = MambaSettings
    mixer_class = MambaMixer
    family = "diagonal"
    source = "Gu & Dao 2023, arXiv:2312.00752"
