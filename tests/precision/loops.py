"""`Rounded` by compiled loops: the same numbers to the bit, for words of a million symbols.

The loops are written from the definition of a rounding model and not from its implementation: a
number is cast by its bits, a sum is taken in the order of its index. Block-diagonal and dense
linear models and layers with a delta rule have loops; other models are stepped by torch.

B words, T time, V symbols, S states, C labels, H hidden, N blocks or heads, b block size,
n keys per position, K key size, U value size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from statetrack.models import BlockModel, LinearModel, Rounded
from statetrack.models._delta import DeltaMixer
from statetrack.models._rounded import RoundedMixer
from statetrack.ops import BlockOperators, DenseOperators
from statetrack.rounding import FORMATS, FloatFormat, Rounding

numba = pytest.importorskip("numba")

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """A function of arrays and numbers as machine code, kept on disk."""
    made: Any = numba.njit(error_model="numpy", cache=True)(function)
    return made  # type: ignore[no-any-return]


class Cast(NamedTuple):
    """A type as the loops take it: dropped bits, smallest normal number, shift, largest number.

    Adding and subtracting the shift rounds a number below the normal ones. Without dropped bits
    nothing is cast.
    """

    dropped: int
    normal: float
    shift: float
    largest: float


def cast_to(to: FloatFormat | None) -> Cast:
    """The cast to a type; None is none."""
    to = to or FORMATS["float64"]
    assert not to.no_infinity
    return Cast(52 - to.mantissa, 2.0**to.lowest, 1.5 * to.smallest * 2.0**52, to.largest)


@compiled
def cast(number: float, to: Cast) -> float:
    """A float64 number cast to a type and back."""
    if to.dropped == 0 or number == 0.0 or not math.isfinite(number):
        return number
    size = abs(number)
    if size < to.normal:
        return math.copysign((size + to.shift) - to.shift, number)
    bits = np.float64(number).view(np.int64)
    bits += ((bits >> to.dropped) & 1) + (1 << (to.dropped - 1)) - 1
    found = np.int64(bits & -(1 << to.dropped)).view(np.float64)
    return math.copysign(np.inf, number) if abs(found) > to.largest else found


@compiled
def next_of_blocks(
    blocks: Any, symbol: int, old: Any, new: Any, kept: Cast, sums: Cast, norms: Any
) -> None:
    """One step of N blocks [V, N, b, b]: `new` [H] from `old` [H].

    `norms` [N] are those that blocks get back, where they are not negative.
    """
    size = blocks.shape[2]
    for block in range(blocks.shape[1]):
        first = block * size
        square = 0.0
        for row in range(size):
            total = cast(blocks[symbol, block, row, 0] * old[first], sums)
            for column in range(1, size):
                term = blocks[symbol, block, row, column] * old[first + column]
                total = cast(total + cast(term, sums), sums)
            new[first + row] = total
            square += total * total
        if norms[block] >= 0.0 and square > 0.0:
            scale = norms[block] / math.sqrt(square)
            for row in range(size):
                new[first + row] *= scale
        for row in range(size):
            new[first + row] = cast(new[first + row], kept)


@compiled
def states_of_blocks(
    blocks: Any, symbols: Any, states: Any, kept: Cast, sums: Cast, norms: Any
) -> Any:
    """States [B, T, H] after symbols [B, T], from states [B, H]."""
    found = np.empty((*symbols.shape, states.shape[1]))
    for word in range(symbols.shape[0]):
        old = states[word]
        for time in range(symbols.shape[1]):
            new = found[word, time]
            next_of_blocks(blocks, symbols[word, time], old, new, kept, sums, norms)
            old = new
    return found


@compiled
def follow_blocks(
    blocks: Any,
    readout: Any,
    delta: Any,
    output: Any,
    points: Any,
    sine: float,
    symbols: Any,
    at: Any,
    states: Any,
    wrong: Any,
    start: int,
    kept: Cast,
    sums: Cast,
    norms: Any,
) -> None:
    """Read symbols [B, T] on, in place, up to the first wrong answer of each word, `wrong` [B].

    `points` [S, H] are the exact states of length 1, `at` [B] the machine's states. Within an angle
    of that sine of its exact state every state is answered rightly, so that logits are not needed.
    """
    new = np.empty(states.shape[1])
    for word in range(symbols.shape[0]):
        if wrong[word] >= 0:
            continue
        old = states[word]
        for time in range(symbols.shape[1]):
            symbol = symbols[word, time]
            next_of_blocks(blocks, symbol, old, new, kept, sums, norms)
            old[:] = new
            state = delta[at[word], symbol]
            at[word] = state
            along, square = 0.0, 0.0
            for place in range(new.shape[0]):
                along += points[state, place] * new[place]
                square += new[place] * new[place]
            if along > 0.0 and square - along * along <= sine * sine * square:
                continue
            if not rightly_read(readout, new, output[state]):
                wrong[word] = start + time + 1
                break


@compiled
def rightly_read(readout: Any, state: Any, label: int) -> bool:
    """Whether a label has the largest logit, and is the first that has; all logits are finite."""
    own = logit_of(readout[label], state)
    if not math.isfinite(own):
        return False
    for other in range(readout.shape[0]):
        logit = logit_of(readout[other], state)
        if not math.isfinite(logit) or logit > own or (logit == own and other < label):
            return False
    return True


@compiled
def logit_of(weights: Any, state: Any) -> float:
    """The scalar product of two vectors [H]."""
    total = 0.0
    for place in range(state.shape[0]):
        total += weights[place] * state[place]
    return total


@compiled
def delta_rule_loop(
    queries: Any,
    keys: Any,
    values: Any,
    betas: Any,
    gains: Any,
    memory: Any,
    kept: Cast,
    sums: Cast,
) -> Any:
    """Outputs [B, T, N, U] of the delta rule; the memory [B, N, K, U] is replaced by the last one.

    Queries are [B, T, N, K], keys [B, T, n, N, K], values [B, T, n, N, U], betas [B, T, n, N] and
    gains [B, T, N] or of no positions.
    """
    num_words, length, heads, key_size = queries.shape
    value_size = values.shape[-1]
    found = np.empty((num_words, length, heads, value_size))
    error = np.empty(value_size)
    for word in range(num_words):
        for time in range(length):
            for head in range(heads):
                own = memory[word, head]
                if gains.shape[1]:
                    for key in range(key_size):
                        for value in range(value_size):
                            own[key, value] = cast(gains[word, time, head] * own[key, value], sums)
                for part in range(keys.shape[2]):
                    vector = keys[word, time, part, head]
                    beta = betas[word, time, part, head]
                    for value in range(value_size):
                        total = cast(vector[0] * own[0, value], sums)
                        for key in range(1, key_size):
                            term = cast(vector[key] * own[key, value], sums)
                            total = cast(total + term, sums)
                        error[value] = cast(values[word, time, part, head, value] - total, sums)
                    for key in range(key_size):
                        rate = cast(beta * vector[key], sums)
                        for value in range(value_size):
                            term = cast(rate * error[value], sums)
                            own[key, value] = cast(own[key, value] + term, sums)
                query = queries[word, time, head]
                for value in range(value_size):
                    total = cast(query[0] * own[0, value], sums)
                    for key in range(1, key_size):
                        total = cast(total + cast(query[key] * own[key, value], sums), sums)
                    found[word, time, head, value] = total
                for key in range(key_size):
                    for value in range(value_size):
                        own[key, value] = cast(own[key, value], kept)
    return found


class Looped(Rounded):
    """A model under a rounding model of casts after each step, computed by loops where it has one.

    Its state, `initial_state` and `scan` are those of `Rounded`.
    """

    def __init__(self, model: nn.Module, rounding: Rounding) -> None:
        super().__init__(model, rounding)
        assert rounding.every == rounding.chunk == 1 and not rounding.saturate
        assert self.casts.dtype == torch.float64, "loops hold numbers in float64"
        sums = rounding.format("accumulation")
        self.kept, self.sums = cast_to(rounding.format("state")), cast_to(sums)
        if isinstance(self.model, BlockModel):
            for block in self.model.blocks:
                mixer: Any = block.mixer
                if isinstance(mixer, RoundedMixer) and isinstance(mixer.mixer, DeltaMixer):
                    block.mixer = _LoopedDelta(mixer.mixer, self.casts)

    @property
    def blocks(self) -> Tensor | None:
        """The operators as blocks [V, N, b, b], of a linear model that has a loop."""
        model = self.model
        once = self.rounding.renormalise in (0, 1) and self.rounding.products == "same"
        if not isinstance(model, LinearModel) or model.additive is not None or not once:
            return None
        operators = self.operators()
        if isinstance(operators, DenseOperators):
            operators = BlockOperators(operators.matrices.unsqueeze(1))
        if not isinstance(operators, BlockOperators):
            return None
        with self.casts.arithmetic():  # which also loads numbers
            return operators.blocks.clone(memory_format=torch.contiguous_format)

    @property
    def norms(self) -> Tensor:
        """The norms [N] that blocks get back after each symbol, or -1."""
        blocks, model = self.blocks, self.model
        assert blocks is not None and isinstance(model, LinearModel)
        first = self.casts.part("state", model.first).unflatten(-1, blocks.shape[1:3])
        norms: Tensor = first.norm(dim=-1)
        return norms if self.rounding.renormalise else -torch.ones_like(norms)

    def _scan_linear(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        model, blocks = self.model, self.blocks
        if blocks is None:
            return super()._scan_linear(symbols, state)
        assert isinstance(model, LinearModel)
        _, own = state
        found = states_of_blocks(
            blocks.contiguous().numpy(),
            symbols.numpy(),
            own.contiguous().numpy(),
            self.kept,
            self.sums,
            self.norms.numpy(),
        )
        states = torch.from_numpy(found)
        return model.readout(states), (0, states[:, -1])


class _LoopedDelta(RoundedMixer):
    """A delta rule whose positions are one loop."""

    def _scan_stages(
        self, mixer: Any, inputs: Tensor, count: int, state: Any
    ) -> tuple[Tensor, tuple[int, Any]]:
        casts = self._casts
        assert casts.rounding.products == "same"
        window, memory = mixer.split(state)
        terms, window = mixer.terms(inputs, window)
        terms = casts.terms(terms)
        gains = torch.empty(len(inputs), 0, 1, dtype=inputs.dtype)
        if terms.log_gates is not None:
            with casts.arithmetic():
                gains = terms.log_gates.exp()
        memory = memory.clone(memory_format=torch.contiguous_format)
        read = delta_rule_loop(
            terms.queries.contiguous().numpy(),
            terms.keys.contiguous().numpy(),
            terms.values.contiguous().numpy(),
            terms.betas.contiguous().numpy(),
            gains.contiguous().numpy(),
            memory.numpy(),
            cast_to(casts.rounding.format("state")),
            cast_to(casts.rounding.format("accumulation")),
        )
        outputs = mixer.finish(torch.from_numpy(read), terms, inputs)
        return outputs, (0, mixer.join(window, memory))
