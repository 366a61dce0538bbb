"""Drawing the symbols of an automaton's words from random integers, state by state.

Letters: T time, S states, V symbols.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from statetrack.sources.arrays import Bits, Booleans, Floats, Integers, Unsigned, smallest_type
from statetrack.sources.randomness import below

if TYPE_CHECKING:
    from statetrack.sources.automaton import Automaton


class SymbolSampler:
    """Turns random bits into the symbols of an automaton's words, by its weights and slips."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._dtype = smallest_type(automaton.num_symbols)

    def draw(
        self,
        bits: Bits,
        state: NDArray[np.integer] | None = None,
        position: int = 0,
    ) -> Unsigned:
        """Symbols `[..., T]` from bits `[..., T]`, for words that continue in `state [...]`.

        `state` is the automaton's start where it is left out; `position` says how many symbols
        come before. A symbol of weight 0 is never drawn.
        """
        if self._automaton.uniform_weights:
            return below(self._automaton.num_symbols, bits).astype(self._dtype)
        start = np.int64(self._automaton.start) if state is None else state
        states = np.broadcast_to(start, bits.shape[:-1]).astype(np.int64)
        symbols = np.empty(bits.shape, self._dtype)
        for time in range(bits.shape[-1]):
            ends = self._ends_at(position + time) if self._automaton.can_slip else self._upper_ends
            places = np.searchsorted(ends, (states << 32) + bits[..., time], side="right")
            drawn = places - states * self._automaton.num_symbols
            symbols[..., time] = drawn
            states = self._automaton.delta[states, drawn]
        return symbols

    @cached_property
    def _upper_ends(self) -> Integers:
        """Cumulative weights times 2**32, plus 2**32 for each earlier state: `[S * V]`, rising.

        In state s the integer b draws the first symbol whose entry exceeds 2**32 s + b. The
        interval of a symbol of weight 0 is empty, also of the last ones of a state, because the
        last symbol that can be drawn has exactly the entry 2**32 (s + 1).
        """
        return self._joined(self._automaton.weights.cumsum(axis=1))

    def _ends_at(self, position: int) -> Integers:
        """The same at a position of a word that can slip there."""
        weights_end, shift = self._cumulative
        return self._joined(weights_end + self._automaton.slip_chance(position) * shift)

    @cached_property
    def _cumulative(self) -> tuple[Floats, Floats]:
        """The sums of weights, and of what a slip adds to them, up to each symbol: `[S, V]`."""
        return self._automaton.weights.cumsum(axis=1), self._automaton.shift_at_slip.cumsum(axis=1)

    def _joined(self, cumulative: Floats) -> Integers:
        """The entries `[S * V]` from cumulative chances between 0 and 1, `[S, V]`."""
        ends = np.rint(cumulative * 2.0**32).astype(np.int64)
        ends[self._last] = 2**32
        return (ends + self._offsets).ravel()

    @cached_property
    def _last(self) -> Booleans:
        """Whether no later symbol can be drawn in a state: `[S, V]`."""
        chances = self._automaton.drawable
        return chances[:, ::-1].cumsum(axis=1)[:, ::-1] <= chances

    @cached_property
    def _offsets(self) -> Integers:
        """2**32 for each earlier state: `[S, 1]`."""
        return np.arange(self._automaton.num_states)[:, None] << 32
