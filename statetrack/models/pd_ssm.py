"""PD-SSM: a column-one-hot matrix times a complex diagonal one, both functions of the input.

    h_t = P(x_t) D(x_t) h_{t-1} + B x_t,    y_t = W [Re h_t; Im h_t] + s * x_t

P(x) = hardmax over each column of M(x) = sum_k softmax(S x)_k M_k, a mixture of K trained matrices:
one 1 in each column, so that P maps every coordinate to one coordinate, as a symbol of an automaton
maps states. D(x) is diagonal with moduli in (0, 1) and phases in (0, 2 pi), each by a small network
(GELU, sigmoid). In the backward pass P is replaced by the softmax of M's columns (straight-through
estimator). The first state is one-hot. Such matrices are closed under multiplication, and with D
near 1 any automaton with N states fits in one layer; eigenvalues lie in the closed unit disc.

Source: Terzic, Menet, Hersche, Hofmann & Rahimi (2025), arXiv:2509.22284.

State: 2 N numbers per block. Parameters per block: K (N^2 + D), twice 2 N (D + 1) + N (2 N + 1) for
the networks of D(x), 2 N D for B, (2 N + 1) D for W and D for s.

Departures: hardmax over columns, as the paper has it (the public layer takes it over rows);
normalisation and residual are those of `--norm` and `--residual` (the public layer normalises its
output, without a residual); N = 32 and K = 8, where the paper has up to 128 and 32; no dropout.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra.recurrences import OneHotTimesDiagonal, Size
from statetrack.models import MODELS
from statetrack.models._blocks import BlockModel, PlainMixer
from statetrack.models._settings import BlockSettings
from statetrack.ops.layer_operators import OneHotColumnOperators
from statetrack.ops.operators import Operators
from statetrack.ops.precision import in_full_precision, widened
from statetrack.settings import option


class PDSSMSettings(BlockSettings):
    """Settings of PD-SSM."""

    state: int = option(32, "Complex numbers N remembered.", min=1)
    dictionary: int = option(8, "Matrices K that the transitions are mixed from.", min=1)

    @property
    def recurrence(self) -> OneHotTimesDiagonal:
        """One-hot columns times a complex diagonal."""
        return OneHotTimesDiagonal(state=Size("state", self.state))


class PDSSMMixer(PlainMixer):
    """The recurrence and its readout. Its state is h [B, N, 2], real and imaginary parts."""

    def __init__(self, settings: PDSSMSettings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        self.moduli = _gate_network(width, state)
        self.phases = _gate_network(width, state)
        self.selection = nn.Linear(width, settings.dictionary, bias=False)
        self.dictionary = nn.Parameter(
            torch.randn(settings.dictionary, state, state) / state**0.5
        )  # [K, N to, N from]
        self.writings = nn.Parameter(torch.randn(2, state, width) / (2 * state) ** 0.5)
        self.skip = nn.Parameter(torch.randn(width) / width**0.5)
        self.outward = nn.Linear(2 * state, width)

    def initial_state(self, num_words: int) -> Tensor:
        """The first coordinate is 1, all others 0: [B, N, 2]."""
        num_states = self.dictionary.shape[-1]
        first = torch.eye(2 * num_states, device=self.skip.device, dtype=self.skip.dtype)[0]
        return first.view(2, num_states).mT.expand(num_words, -1, -1)

    def scan(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        moves, gains, terms = self._select(inputs.transpose(0, 1))
        states = []
        for move, gain, term in zip(moves.unbind(0), gains.unbind(0), terms.unbind(0), strict=True):
            state = _advance(state, move, gain, term)
            states.append(state)
        return self._finish(torch.stack(states, 1), inputs), state

    def step(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, D] and the next state, of inputs [B, D]."""
        state = _advance(state, *self._select(inputs))
        return self._finish(state, inputs), state

    def transition(self, inputs: Tensor, state: Tensor | None = None) -> Operators:
        """P(x) D(x) of every position; no gradient reaches the dictionary."""
        moves, gains, _ = self._select(inputs)
        targets = moves.argmax(-2).flatten(0, 1)
        return OneHotColumnOperators(targets, torch.view_as_complex(gains).flatten(0, 1))

    def _select(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """P [.., N, N], and D and B x [.., N, 2], real and imaginary parts apart."""
        shares = widened(self.selection(inputs)).softmax(-1)
        moves = hard_columns(_mix(shares, self.dictionary))
        phases = 2 * math.pi * widened(self.phases(inputs))
        turns = torch.stack([phases.cos(), phases.sin()], -1)
        gains = widened(self.moduli(inputs)).unsqueeze(-1) * turns
        terms = [widened(functional.linear(inputs, part)) for part in self.writings.unbind(0)]
        return moves, gains, torch.stack(terms, -1)

    def _finish(self, states: Tensor, inputs: Tensor) -> Tensor:
        read: Tensor = self.outward(states.mT.flatten(-2))
        return read + self.skip * inputs


@MODELS.register("pd-ssm")
class PDSSM(BlockModel[PDSSMSettings]):
    """PD-SSM: transitions that map coordinates to coordinates, with a complex gain for each."""

    settings_class = PDSSMSettings
    mixer_class = PDSSMMixer
    family = "permutation-diagonal"
    source = "Terzic et al. 2025, arXiv:2509.22284"


def hard_columns(scores: Tensor) -> Tensor:
    """A 1 at the largest score of each column [.., N, N]; its gradient is the softmax's."""
    soft = scores.softmax(-2)
    hard = functional.one_hot(scores.argmax(-2), scores.shape[-2]).mT.to(soft.dtype)
    return hard + (soft - soft.detach())


def _gate_network(width: int, state: int) -> nn.Sequential:
    """Numbers [.., N] in (0, 1) of inputs [.., D]."""
    inner = 2 * state
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, state), nn.Sigmoid())


@in_full_precision
def _mix(shares: Tensor, dictionary: Tensor) -> Tensor:
    """The matrices [.., N, N] mixed by shares [.., K] of the dictionary's [K, N, N]."""
    mixed: Tensor = (shares @ dictionary.flatten(1)).unflatten(-1, dictionary.shape[1:])
    return mixed


@in_full_precision
def _advance(state: Tensor, move: Tensor, gain: Tensor, term: Tensor) -> Tensor:
    """P (D * h) + term, of states, gains and terms [B, N, 2] and moves [B, N, N]."""
    real, imaginary = state.unbind(-1)
    gain_real, gain_imaginary = gain.unbind(-1)
    turned = torch.stack(
        [
            gain_real * real - gain_imaginary * imaginary,
            gain_real * imaginary + gain_imaginary * real,
        ],
        -1,
    )
    return move @ turned + term
