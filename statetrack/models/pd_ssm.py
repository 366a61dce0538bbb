"""PD-SSM: a column-one-hot matrix times a complex diagonal one, both functions of the input.

    h_t = P(x_t) D(x_t) h_{t-1} + B x_t,    y_t = norm(W [Re h_t; Im h_t] + w + s * x_t)

P(x) = hardmax over each column of M(x) = sum_k softmax(S x)_k M_k, a mixture of K trained matrices:
one 1 in each column, so that P maps every coordinate to one coordinate, as a symbol of an automaton
maps states. D(x) is diagonal with moduli in (0, 1) and phases in (0, 2 pi), each by a small network
(GELU, sigmoid). In the backward pass P is replaced by the softmax of M's columns (straight-through
estimator). The first state is one-hot. Such matrices are closed under multiplication, and with D
near 1 any automaton with N states fits in one layer; eigenvalues lie in the closed unit disc.

With `--one-hot rows`, as the released code of the state-tracking experiments has it, the hardmax
is over each row and D comes after it, h_t = D(x_t) P(x_t) h_{t-1} + B x_t: a coordinate then reads
one coordinate of the last state, and several may read the same. Where every symbol permutes the
states of an automaton, both forms can be its permutation matrices; of other automata the rows read
words backwards, and this project has no rule for them.

Source: Terzic, Menet, Hersche, Hofmann & Rahimi (2025), arXiv:2509.22284.

Checked: IBM/expressive-sparse-state-space-model @ cfa395e (two blocks, embedding and readout, with
gradients; `--one-hot rows`), to 1e-12 in tests/references/test_recorded_matrices.py. Checked: its
layer in JAX (the columns, with gradients), to 1e-12 in tests/references/test_recorded_matrices.py.
Checked: the columns against the equations above in complex numbers, to 1e-9 in
tests/references/test_state_space_models.py.

State: 2 N numbers per block. Parameters per block: K (N^2 + D), twice 2 N (D + 1) + N (2 N + 1) for
the networks of D(x), 2 N D for B, (2 N + 1) D for W and w, D for s and 2 D for the norm.

Departures: columns by default, as the paper has it; N = 32, K = 8, width 64 and one block, where
the source's experiments have up to 128, 32, 128 and two; N need not be the width; no dropout (0.01
in the source's runs). The released JAX layer starts from zeros rather than from a one-hot state,
and its networks of D(x) have one layer.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.algebra import OneHotTimesDiagonal, Size
from statetrack.models._blocks import PlainMixer, PostNormModel
from statetrack.models._linear import Linear, linear_map
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings, NormKind
from statetrack.ops import (
    OneHotColumnOperators,
    OneHotRowOperators,
    Operators,
    in_full_precision,
    widened,
)
from statetrack.settings import option


class PDSSMSettings(BlockSettings):
    """Settings of PD-SSM."""

    norm: NormKind = option("layer", "Normalisation after each block.")
    residual: bool = option(False, "Whether blocks are added to their input.")
    state: int = option(32, "Complex numbers N remembered.", min=1)
    dictionary: int = option(8, "Matrices K that the transitions are mixed from.", min=1)
    one_hot: Literal["columns", "rows"] = option(
        "columns",
        "Whether each column of P has a single 1 and D acts first, or each row and D acts last.",
    )

    @property
    def recurrence(self) -> OneHotTimesDiagonal:
        """One-hot columns times a complex diagonal, or the other way round."""
        rows = self.one_hot == "rows"
        return OneHotTimesDiagonal(
            state=Size("state", self.state),
            dictionary=Size("dictionary", self.dictionary),
            layers=Size("layers", self.layers),
            rows=rows,
            structure="diagonal x one-hot rows" if rows else "one-hot columns x diagonal",
        )


Terms = tuple[Tensor, Tensor, Tensor]
"""P [.., N, N], and D and B x [.., N, 2], real and imaginary parts apart."""


class PDSSMMixer(PlainMixer[Tensor, Terms]):
    """The recurrence and its readout. Its state is h [B, N, 2], real and imaginary parts."""

    def __init__(self, settings: PDSSMSettings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        self.rows = settings.one_hot == "rows"
        self.moduli = _gate_network(width, state)
        self.phases = _gate_network(width, state)
        self.selection = Linear(width, settings.dictionary, bias=False)
        self.dictionary = nn.Parameter(
            torch.randn(settings.dictionary, state, state) / state**0.5
        )  # [K, N to, N from]
        self.writings = nn.Parameter(torch.randn(2, state, width) / (2 * state) ** 0.5)
        self.skip = nn.Parameter(torch.randn(width) / width**0.5)
        self.outward = Linear(2 * state, width)

    def initial_state(self, num_words: int) -> Tensor:
        """The first coordinate is 1, all others 0: [B, N, 2]."""
        num_states = self.dictionary.shape[-1]
        first = torch.eye(2 * num_states, device=self.skip.device, dtype=self.skip.dtype)[0]
        return first.view(2, num_states).mT.expand(num_words, -1, -1)

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[Terms, tuple[()]]:
        """P, D and B x."""
        inputs = inputs.movedim(-2, 0)  # time first: the parts of a position are contiguous
        shares = widened(self.selection(inputs)).softmax(-1)
        scores = _mix(shares, self.dictionary)
        moves = hard_columns(scores.mT).mT if self.rows else hard_columns(scores)
        phases = 2 * math.pi * widened(self.phases(inputs))
        turns = torch.stack([phases.cos(), phases.sin()], -1)
        gains = widened(self.moduli(inputs)).unsqueeze(-1) * turns
        added = [
            widened(linear_map(inputs, part, None, self.kernel)) for part in self.writings.unbind(0)
        ]
        terms = (moves, gains, torch.stack(added, -1))
        if inputs.dim() == 2:
            return terms, window
        moves, gains, term = (part.transpose(0, 1) for part in terms)
        return (moves, gains, term), window

    @in_full_precision
    def advance(self, terms: Terms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """P (D * h) + B x, for rows D * (P h) + B x, twice."""
        move, gain, term = terms
        moved = _turned(gain, move @ memory) if self.rows else move @ _turned(gain, memory)
        memory = moved + term
        return memory, memory

    def recur_by_symbol(
        self, terms: Terms, symbols: Tensor, memory: Tensor
    ) -> tuple[Terms, Tensor, Tensor]:
        """All states [B, T, N, 2], and the last one, by a real matrix for each symbol."""
        moves, gains, added = terms
        turned = torch.stack([-gains[..., 1], gains[..., 0]], -1)
        turns = torch.stack([gains, turned], -1)  # [V, N, 2 to, 2 from]
        products = "vnm,vncd->vncmd" if self.rows else "vnm,vmcd->vncmd"
        matrices = torch.einsum(products, moves, turns).flatten(3).flatten(1, 2)
        term = ops.lookup(added.flatten(1), symbols)
        states = ops.dense_recurrence(matrices, symbols, memory.flatten(1), term)
        states = states.unflatten(-1, memory.shape[1:])
        return terms, states.transpose(0, 1), states[-1]

    def operators(self, terms: Terms) -> Operators:
        """P(x) D(x) of every position (D P for rows); no gradient reaches the dictionary."""
        moves, pairs, _ = terms
        gains = torch.view_as_complex(pairs).flatten(0, 1)
        if self.rows:
            return OneHotRowOperators(moves.argmax(-1).flatten(0, 1), gains)
        return OneHotColumnOperators(moves.argmax(-2).flatten(0, 1), gains)

    def finish(self, read: Tensor, terms: Terms, inputs: Tensor) -> Tensor:
        """W [Re h; Im h] + w + s * x."""
        outputs: Tensor = self.outward(read.mT.flatten(-2))
        return outputs + self.skip * inputs


@MODELS.register("pd-ssm")
class PDSSM(PostNormModel[PDSSMSettings]):
    """PD-SSM: transitions that map coordinates to coordinates, with a complex gain for each."""

    settings_class = PDSSMSettings
    same_since = "0.2.0"
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
    return nn.Sequential(Linear(width, inner), nn.GELU(), Linear(inner, state), nn.Sigmoid())


@in_full_precision
def _mix(shares: Tensor, dictionary: Tensor) -> Tensor:
    """The matrices [.., N, N] mixed by shares [.., K] of the dictionary's [K, N, N]."""
    mixed: Tensor = (shares @ dictionary.flatten(1)).unflatten(-1, dictionary.shape[1:])
    return mixed


def _turned(gain: Tensor, state: Tensor) -> Tensor:
    """Products of complex numbers [B, N, 2], real and imaginary parts apart."""
    real, imaginary = state.unbind(-1)
    gain_real, gain_imaginary = gain.unbind(-1)
    return torch.stack(
        [
            gain_real * real - gain_imaginary * imaginary,
            gain_real * imaginary + gain_imaginary * real,
        ],
        -1,
    )
