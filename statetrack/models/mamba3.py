"""Mamba-3: a decaying, rotating state, discretised by the trapezoidal rule.

    S_t = a_t R_t (S_{t-1} + (1 - l_t) dt_t B_{t-1} x_{t-1}^T) + l_t dt_t B_t x_t^T
    y_t = S_t^T C_t + D x_t

with a matrix state S [N, P] in each head. The decay a_t = exp(-dt_t f(.)) depends on the input
through both factors: f is softplus, or the heavy-tailed 1 + u for u >= 0 and 1 / (1 - u) below, and
at least `slowest`, so that gains stay below 1 unless that is 0. R_t rotates pairs of the state's
rows by the angles pi tanh(.) dt_t, one per pair and head: real arithmetic for complex eigenvalues
a_t exp(+-i angle), which come near to -1 and the roots of unity, as parity and modular counters
need. l_t = sigmoid(.) weighs the two ends of the step: 1 is Mamba-2's rule. B_t and C_t are
normalised (RMS), then get a bias for every head. There is no short convolution: the rule uses the
previous position. The output is gated by SiLU.

Over a chunk, B and C are rotated by the cumulative angles instead of the state (the rotary
embedding of the paper), the state is rotated back at the chunk's end, and both ends of the rule
are combined in one weight for each position; `step` computes the equation above directly. A loop
takes all positions that are read at once as one chunk.

Source: Lahoti, Li, Chen, Wang, Bick, Kolter, Dao & Gu (2026), arXiv:2603.15569, with the
details (angles, least decay rate, biases) of the authors' public layer: `rates` softplus is that of
the paper and of the released versions (2.3.2), heavy-tail that of the repository since June 2026
(state-spaces/mamba, pull request 962), made for stability at high learning rates.

State: E N + heads N + E numbers (the state, the last B and x), per block, E = expand x width.
Parameters per block: D (2 E + 2 N + 3 heads + J) + E D for the projections (J = rotated pairs),
2 N + 2 heads N and 2 heads.

Checked: state-spaces/mamba @ 2.3.2.post1 (Mamba3.step, softplus and heavy-tail), to 1e-12
in tests/references/test_recorded_state_space.py; outputs and first weights. Checked: against the
paper's form with B and C turned by all angles since the start, to 1e-9 in
tests/references/test_state_space_models.py; outputs and gradients.

Departures: one input and one output per head (no MIMO), no norm before `outward` (an option of the
authors' code, off by default), one group of B and C. N = 64 and heads of P = 32 channels, where the
authors' defaults are 128 and 64. Angles are accumulated over the positions that are read at
once only, not over the whole word. Embeddings start as N(0, 1), the authors' language models from
N(0, 0.02^2), and those divide `outward` by the root of the number of layers. The readout has a
bias. Norms of the blocks add 1e-6 to the mean square, the source 1e-5. Weight decay, where it is
asked for, leaves the time steps' bias, those of B and C, and `skip` alone, as in the authors' code.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import ComplexLayers, LinearRecurrence, PositiveLayers, Size
from statetrack.errors import setting
from statetrack.models._base import require_divisor, through, zeros
from statetrack.models._blocks import BlockModel, PlainMixer
from statetrack.models._layers import RMSNorm, draw_time_steps, gated, inverse_softplus
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings
from statetrack.ops import (
    CHUNK,
    ColumnwiseOperators,
    DirectSumOperators,
    Operators,
    decayed_chunk,
    diagonal_operators,
    in_full_precision,
    kernel_for,
    native,
    widened,
)
from statetrack.settings import option

Rates = Literal["softplus", "heavy-tail"]


class Mamba3Settings(BlockSettings):
    """Settings of Mamba-3."""

    state: int = option(64, "Numbers N remembered for each channel.", min=1)
    expand: int = option(2, "Channels of the recurrence, as a multiple of the width.", min=1)
    heads: int = option(4, "Heads, each with its own decay, angles and rule.", min=1)
    turned: float = option(
        0.5,
        "Share of the state's rows that are turned in pairs; 0 leaves a real decay.",
        min=0,
        max=1,
    )
    rates: Rates = option(
        "softplus",
        "How decay rates depend on the input: softplus as in the paper, or heavy-tail "
        "(1 + u, or 1 / (1 - u) for u < 0) as in the authors' code since June 2026.",
    )
    slowest: float = option(
        1e-4,
        "Least decay rate: with more than 0, half of a state is left after log 2 over it half "
        "turns; with 0 a turn can keep all of it.",
        min=0,
    )

    @property
    def recurrence(self) -> LinearRecurrence:
        """Complex gains, or real ones where no rows are turned."""
        layers = Size("layers", self.layers)
        if self.turned == 0:
            return PositiveLayers(layers=layers, structure="one scalar per head")
        return ComplexLayers(
            layers=layers, slowest=self.slowest, structure="rotations of planes, one decay per head"
        )


class SelectedTerms(NamedTuple):
    """The terms of the recurrence, at every position (or at one)."""

    x: Tensor  # [.., heads, P]
    writings: Tensor  # B, [.., heads, N]
    readings: Tensor  # C, [.., heads, N]
    steps: Tensor  # dt, [.., heads]
    log_decays: Tensor  # log a, [.., heads]
    rules: Tensor  # l, [.., heads]
    angles: Tensor  # [.., heads, J]


Memory: TypeAlias = tuple[Tensor, tuple[Tensor, Tensor]]
"""S [B, heads, N, P], and the last B [B, heads, N] and x [B, heads, P]."""


Terms = tuple[SelectedTerms, Tensor]
"""The terms of the recurrence, and the output's gate [.., E]."""


class Mamba3Mixer(PlainMixer[Memory, Terms]):
    """Projection, rotating and decaying matrix states, gate, projection.

    Its state is S with the last B and x.
    """

    without_decay = ("time_step_bias", "writing_bias", "reading_bias", "skip")

    def __init__(self, settings: Mamba3Settings) -> None:
        super().__init__()
        width, inner = settings.width, settings.expand * settings.width
        heads, state = settings.heads, settings.state
        require_divisor(
            inner, "heads", heads, f"the channels ({setting('expand')} x {setting('width')})"
        )
        self.head_shape = (heads, inner // heads)
        self.rates, self.slowest = settings.rates, settings.slowest
        pairs = int(settings.turned * state) // 2
        self.sizes = (inner, inner, state, state, heads, heads, heads, pairs)
        self.inward = Linear(width, sum(self.sizes), bias=False)
        self.time_step_bias = nn.Parameter(inverse_softplus(draw_time_steps(heads)))
        self.writing_norm, self.reading_norm = RMSNorm(state, 1e-5), RMSNorm(state, 1e-5)
        self.writing_bias = nn.Parameter(torch.ones(heads, state))
        self.reading_bias = nn.Parameter(torch.ones(heads, state))
        self.skip = nn.Parameter(torch.ones(heads))
        self.outward = Linear(inner, width, bias=False)

    def initial_state(self, num_words: int) -> Memory:
        """Zeros."""
        heads, state = self.writing_bias.shape
        like = self.skip
        width = self.head_shape[1]
        last = zeros(like, num_words, heads, state), zeros(like, num_words, heads, width)
        return zeros(like, num_words, heads, state, width), last

    def recurrent_part(self, state: Memory) -> Tensor:
        """S, [B, heads, N, P]."""
        return state[0]

    def with_recurrent_part(self, state: Memory, part: Tensor) -> Memory:
        """Another S after the same last B and x."""
        return part, state[1]

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[Terms, tuple[()]]:
        """The terms of the recurrence, and the gate."""
        parts = self.inward(inputs).split(self.sizes, -1)
        gate, x, writings, readings, steps, rates, rule, angles = parts
        steps = functional.softplus(widened(steps) + self.time_step_bias)
        positive = functional.softplus if self.rates == "softplus" else heavy_tail
        rates = positive(widened(rates)).clamp(min=self.slowest)
        angles = math.pi * torch.tanh(widened(angles)).unsqueeze(-2) * steps.unsqueeze(-1)
        selected = SelectedTerms(
            widened(x).unflatten(-1, self.head_shape),
            self.writing_norm(widened(writings)).unsqueeze(-2) + self.writing_bias,
            self.reading_norm(widened(readings)).unsqueeze(-2) + self.reading_bias,
            steps,
            -rates * steps,
            torch.sigmoid(widened(rule)),
            angles,
        )
        return (selected, gate), window

    def advance(self, terms: Terms, memory: Memory) -> tuple[Tensor, Memory]:
        """What is read [B, heads, P], and the next S, B and x."""
        selected, _ = terms
        output, after = _step(*memory, selected)
        return output, (after, (selected.writings, selected.x))

    def recur(self, terms: Terms, memory: Memory) -> tuple[Tensor, Memory]:
        """What is read [B, T, heads, P], and the last S, B and x, chunk by chunk."""
        if kernel_for(self.kernel, memory[0].device, memory[0].dtype) == "native":
            return _scan_by_loop(*memory, terms[0])
        outputs = []
        for chunk in zip(*(part.split(CHUNK, 1) for part in terms[0]), strict=True):
            output, state, last = _scan_chunk(*memory, SelectedTerms(*chunk))
            memory = state, last
            outputs.append(output)
        return torch.cat(outputs, 1), memory

    def operators(self, terms: Terms) -> Operators:
        """In every head a_t, and rotations of the first J pairs of rows, for each of P columns."""
        selected, _ = terms
        num_rows = self.writing_bias.shape[-1]
        angles = selected.angles.flatten(0, 1)  # [B T, heads, J]
        decays = selected.log_decays.exp().flatten(0, 1).unsqueeze(-1)  # [B T, heads, 1]
        turned = torch.polar(decays.expand_as(angles), -angles)
        still = decays.expand(-1, -1, num_rows - 2 * angles.shape[-1])
        parts = [
            gains
            for head in zip(turned.unbind(1), still.unbind(1), strict=True)
            for gains in head
            if gains.shape[1]
        ]
        rows = DirectSumOperators(
            tuple(diagonal_operators(gains) for gains in parts),
            tuple(gains.shape[1] * (1 + gains.is_complex()) for gains in parts),
        )
        return ColumnwiseOperators(rows, self.head_shape[1])

    def finish(self, read: Tensor, terms: Terms, inputs: Tensor) -> Tensor:
        """With D x, gated and mapped."""
        selected, gate = terms
        outputs = (read + self.skip.unsqueeze(-1) * selected.x).flatten(-2)
        return through(self.outward, gated(outputs, gate, kernel=self.kernel))


@MODELS.register("mamba3")
class Mamba3(BlockModel[Mamba3Settings]):
    """Mamba-3: matrix states with complex input-dependent eigenvalues for each head."""

    settings_class = Mamba3Settings
    mixer_class = Mamba3Mixer
    family = "diagonal"
    source = "Lahoti et al. 2026, arXiv:2603.15569"
    training_defaults = {**BlockModel.training_defaults, "lrs": (1e-2,)}


def heavy_tail(x: Tensor) -> Tensor:
    """1 + x for x >= 0 and 1 / (1 - x) below: positive, with a continuous derivative."""
    return x.clamp_min(0) + (1 - x.clamp_max(0)).reciprocal()


@in_full_precision
def _step(
    memory: Tensor, last: tuple[Tensor, Tensor], selected: SelectedTerms
) -> tuple[Tensor, Tensor]:
    """Output [B, heads, P] and the next state, by the equation."""
    x, writing, reading, step, log_decay, rule, angle = selected
    memory = memory + _written(*last, (1 - rule) * step)
    memory = log_decay.exp()[..., None, None] * turn(memory.mT, -angle.unsqueeze(-2)).mT
    memory = memory + _written(writing, x, rule * step)
    return torch.einsum("bhnp,bhn->bhp", memory, reading), memory


@in_full_precision
def _scan_chunk(
    memory: Tensor, last: tuple[Tensor, Tensor], selected: SelectedTerms
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Outputs [B, T, heads, P], state, and last B and x, in the frame of the chunk's start."""
    x, writings, readings, steps, log_decays, rules, angles = selected
    early, late, weights = _weights(rules, steps)
    memory = memory + _written(*last, early[:, 0])
    turned = angles.cumsum(1)
    keys = turn(writings, turned).transpose(1, 2)
    values = (weights.unsqueeze(-1) * x).transpose(1, 2)
    queries = turn(readings, turned).transpose(1, 2)
    outputs, memory = decayed_chunk(queries, keys, values, log_decays.mT, memory)
    own = (late - weights) * (writings * readings).sum(-1)  # [B, T, heads]
    outputs = outputs.transpose(1, 2) + own.unsqueeze(-1) * x
    memory = turn(memory.mT, -turned[:, -1].unsqueeze(-2)).mT
    return outputs, memory, (writings[:, -1], x[:, -1])


@in_full_precision
def _scan_by_loop(
    memory: Tensor, last: tuple[Tensor, Tensor], selected: SelectedTerms
) -> tuple[Tensor, Memory]:
    """The same at all positions, as decayed attention, in the frame of their start."""
    x, writings, readings, steps, log_decays, rules, angles = selected
    early, late, weights = _weights(rules, steps)
    whole = native.reads_whole_words()
    if not whole:
        memory = memory + _written(*last, early[:, 0])
    turned = angles.double().cumsum(1).remainder(2 * math.pi).to(angles.dtype)
    cosines, sines = turned.cos(), turned.sin()
    keys = native.rotated(writings, cosines, sines)
    queries = native.rotated(readings, cosines, sines)
    outputs, memory = native.decayed_attention(
        queries, keys, x, log_decays, memory, weights=weights
    )
    own = (late - weights) * (keys * queries).sum(-1)  # [B, T, heads]
    if not whole:
        memory = turn(memory.mT, -turned[:, -1].unsqueeze(-2)).mT
    return outputs + own.unsqueeze(-1) * x, (memory, (writings[:, -1], x[:, -1]))


def _weights(rules: Tensor, steps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What an input weighs at the next position, at its own, and from the next one on.

    After the last position there is no next one, and its weight is that at its own.
    """
    early, late = (1 - rules) * steps, rules * steps  # [B, T, heads]
    return early, late, late + torch.cat([early[:, 1:], torch.zeros_like(early[:, :1])], 1)


def turn(vectors: Tensor, angles: Tensor) -> Tensor:
    """Vectors [.., N], whose first J pairs of neighbours are turned by the angles [.., J]."""
    num_turned = 2 * angles.shape[-1]
    even, odd = vectors[..., :num_turned].unflatten(-1, (angles.shape[-1], 2)).unbind(-1)
    cos, sin = angles.cos(), angles.sin()
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
    return torch.cat([turned, vectors[..., num_turned:]], -1)


def _written(writing: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Weight B x^T, [B, heads, N, P]."""
    return torch.einsum("bhn,bhp->bhnp", writing, weight.unsqueeze(-1) * x)
