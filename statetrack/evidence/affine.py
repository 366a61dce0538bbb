"""The affine maps by which a linear model's recurrent part moves, one for each symbol.

    p_t = A(x_t) p_{t-1} + u(x_t)

They are asked of the model (`WithTransition`), in float64, and then compared with what the model
does after random words: a recurrence whose maps also depend on the symbols before has none.

V symbols, H numbers of the recurrent part, C labels, B words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.errors import SettingsError
from statetrack.evidence.subject import Subject
from statetrack.models import Block, BlockModel, LinearModel, WithTransition
from statetrack.sources import Floats

MOST_ENTRIES = 2**23
"""The largest V H^2: seconds for the means of hidden states, and 64 megabytes."""

WORDS, LENGTH = 16, 12
"""The random words after which the maps are compared with what the model does."""

AGREES = 1e-6
"""How far they may be from it, as a part of the numbers compared."""


@dataclass(frozen=True, eq=False)
class AffineMaps:
    """One affine map of R^H for every symbol, the first point, and the readout if it is linear."""

    matrices: Floats  # [V, H, H]
    terms: Floats  # [V, H]
    first: Floats  # [H]
    readout: Floats | None  # [C, H]
    bias: Floats | None  # [C]
    scale_invariant: bool
    """Whether no answer changes when the point is multiplied by a positive number."""

    @property
    def is_linear(self) -> bool:
        """Whether nothing is added."""
        return not self.terms.any()

    @property
    def in_planes(self) -> bool:
        """Whether every operator keeps each plane of two neighbouring coordinates."""
        width = self.matrices.shape[1]
        if width % 2:
            return False
        outside = np.kron(np.eye(width // 2), np.ones((2, 2))) == 0
        return not self.matrices[:, outside].any()

    @cached_property
    def homogeneous(self) -> tuple[Floats, Floats, Floats | None]:
        """Linear maps `[V, K, K]`, the first point `[K]`, and the readout `[C, K]`.

        Where something is added, or the readout has a bias, points have a further coordinate that
        is always 1, and K = H + 1; else K = H.
        """
        if self.is_linear and self.bias is None:
            return self.matrices, self.first, self.readout
        num_symbols, width = self.terms.shape
        matrices = np.zeros((num_symbols, width + 1, width + 1))
        matrices[:, :width, :width] = self.matrices
        matrices[:, :width, width] = self.terms
        matrices[:, width, width] = 1.0
        readout = self.readout
        if readout is not None:
            bias = np.zeros(len(readout)) if self.bias is None else self.bias
            readout = np.column_stack([readout, bias])
        return matrices, np.append(self.first, 1.0), readout


def affine_maps(subject: Subject, *, seed: int = 0) -> AffineMaps:
    """The maps of a model whose recurrence is linear in its state, with maps of the symbols alone.

    That is every linear model, every other module with `WithTransition`, and every model of one
    block with such a mixer. Raises `SettingsError` for any other, and where they are too large.
    """
    model = subject.in_precision(torch.float64).model
    carrier = _carrier(model)
    if carrier is None:
        raise SettingsError(
            "the model is no linear recurrence of one layer: nothing says by which matrices its "
            "state moves"
        )
    reader, inputs = carrier
    num_symbols = subject.automaton.num_symbols
    symbols = inputs(torch.arange(num_symbols, device=subject.device).unsqueeze(1))
    with torch.no_grad():
        state = reader.initial_state(num_symbols)
        part = reader.recurrent_part(state)
        width = part[0].numel()
        if num_symbols * width**2 > MOST_ENTRIES:
            raise SettingsError(
                f"{num_symbols} matrices of {width} x {width} are too large: "
                f"{MOST_ENTRIES:,} entries are the most"
            )
        matrices = reader.transition(symbols).dense()
        zero = reader.with_recurrent_part(state, torch.zeros_like(part))
        _, moved = reader.step(symbols.squeeze(1), zero)
        terms = reader.recurrent_part(moved).flatten(1)
        _require_same(reader, inputs, matrices, terms, num_symbols, seed)
    readout, bias = _linear_readout(model)
    return AffineMaps(
        matrices=_numbers(matrices),
        terms=_numbers(terms),
        first=_numbers(part[0].flatten()),
        readout=readout,
        bias=bias,
        scale_invariant=isinstance(model, LinearModel) and model.scale_invariant,
    )


def _carrier(model: nn.Module) -> tuple[Any, Any] | None:
    """What has the state, and the function from symbols [B, T] to its inputs."""
    if isinstance(model, WithTransition):
        return model, lambda symbols: symbols
    if isinstance(model, BlockModel) and len(model.mixers) == 1:
        mixer = model.mixers[0]
        if isinstance(mixer, WithTransition):
            (block,) = model.blocks
            assert isinstance(block, Block)
            norm = block.mixer_norm
            return mixer, lambda symbols: norm(model.embedding(symbols))
    return None


def _require_same(
    reader: Any, inputs: Any, matrices: Tensor, terms: Tensor, num_symbols: int, seed: int
) -> None:
    """Raise `SettingsError` unless the maps do what the model does after some other symbols."""
    draw = torch.Generator().manual_seed(seed)
    words = torch.randint(num_symbols, (WORDS, LENGTH), generator=draw).to(matrices.device)
    last = torch.randint(num_symbols, (WORDS,), generator=draw).to(matrices.device)
    _, state = reader.scan(inputs(words), reader.initial_state(WORDS))
    part = reader.recurrent_part(state)
    shift = torch.randn(part.shape, generator=draw, dtype=torch.float64).to(part)
    before = part + shift * part.abs().amax().clamp_min(1.0)
    moved = reader.with_recurrent_part(state, before)
    _, after = reader.step(inputs(last.unsqueeze(1)).squeeze(1), moved)
    found = reader.recurrent_part(after).flatten(1)
    expected = torch.einsum("bij,bj->bi", matrices[last], before.flatten(1)) + terms[last]
    scale = float(expected.abs().amax().clamp_min(1.0))
    if not float((found - expected).abs().amax()) <= AGREES * scale:
        raise SettingsError(
            "the matrices by which the state moves depend on the symbols before (a convolution, "
            "a token shift) or on the state: there is not one for each symbol"
        )


def _linear_readout(model: nn.Module) -> tuple[Floats | None, Floats | None]:
    if not isinstance(model, LinearModel):
        return None, None
    bias = model.readout.bias
    return _numbers(model.readout.weight), None if bias is None else _numbers(bias)


def _numbers(tensor: Tensor) -> Floats:
    found: Floats = tensor.detach().cpu().double().numpy()
    return found
