"""Words drawn from an automaton: endless streams to train on, long words to evaluate on.

Letters: N batches, B words per batch, T time, S states, V symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.automata import Automaton
from statetrack.data.batch import Batch, Supervision, Unsigned, label, smallest_type
from statetrack.data.lengths import LengthDistribution
from statetrack.data.randomness import RandomBits, below

CHUNK: Final = 2**20
"""How many symbols of a stream of long words are held at once."""


class BatchStream(Protocol):
    """Whatever training reads: an endless row of batches, any of which can be asked for.

    Batch k does not depend on which others were asked for before or beside it.
    """

    def block(
        self,
        first: int,
        num_batches: int,
        batch_size: int,
        progress: float | NDArray[np.float64] = 1.0,
    ) -> Batch:
        """The batches `first .. first + num_batches - 1`: arrays `[N, B, T]`.

        `progress`, one number or `[N]`, says how far training is at each batch, from 0 to 1.
        """
        ...


class WordStream:
    """Fresh words for ever: lengths from a distribution, symbols by the automaton's weights.

    Streams of different seeds or purposes are independent, even at equal batch indices.
    """

    def __init__(
        self,
        automaton: Automaton,
        lengths: LengthDistribution,
        supervision: Supervision,
        seed: int,
        purpose: Literal["train", "validation", "test"],
    ) -> None:
        self._automaton = automaton
        self._lengths = lengths
        self._supervision = supervision
        self._bits = RandomBits(seed, purpose)
        self._sampler = SymbolSampler(automaton)

    def block(
        self,
        first: int,
        num_batches: int,
        batch_size: int,
        progress: float | NDArray[np.float64] = 1.0,
    ) -> Batch:
        """The batches `first .. first + num_batches - 1`: arrays `[N, B, T]`.

        T is the longest length that may be drawn, whichever was; under a curriculum it is that
        of the block's greatest `progress`, so there a batch's padding depends on its block.
        """
        longest = self._lengths.longest
        width = batch_size * (1 + longest)
        bits = self._bits.read(first * width, num_batches * width).reshape(num_batches, width)
        progress = np.broadcast_to(np.asarray(progress, np.float64), (num_batches,))
        lengths = self._lengths.draw(bits[:, :batch_size], progress[:, None])  # [N, B]
        padded_to = int(self._lengths.longest_at(progress).max())
        word_bits = bits[:, batch_size:].reshape(num_batches, batch_size, longest)
        symbols = self._sampler.draw(word_bits[..., :padded_to])
        return label(self._automaton, symbols, lengths, self._supervision)


class SymbolSampler:
    """Turns random bits into the symbols of an automaton's words, by its weights."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._dtype = smallest_type(automaton.num_symbols)

    def draw(self, bits: NDArray[np.uint32], state: NDArray[np.integer] | None = None) -> Unsigned:
        """Symbols `[..., T]` from bits `[..., T]`, for words that begin in `state [...]`.

        `state` is the automaton's start where it is left out. A symbol of weight 0 is never drawn.
        """
        if self._automaton.uniform_weights:
            return below(self._automaton.num_symbols, bits).astype(self._dtype)
        start = np.int64(self._automaton.start) if state is None else state
        states = np.broadcast_to(start, bits.shape[:-1]).astype(np.int64)
        symbols = np.empty(bits.shape, self._dtype)
        for time in range(bits.shape[-1]):
            places = np.searchsorted(
                self._upper_ends, (states << 32) + bits[..., time], side="right"
            )
            drawn = places - states * self._automaton.num_symbols
            symbols[..., time] = drawn
            states = self._automaton.delta[states, drawn]
        return symbols

    @cached_property
    def _upper_ends(self) -> NDArray[np.int64]:
        """Where each symbol's part of a state's line of 2**32 points ends: `[S * V]`, rising.

        The lines of all states lie one after the other. A part of weight 0 is empty, also at the
        end of a line, because the last symbol that may be drawn ends exactly where the line does.
        """
        weights = self._automaton.weights
        ends = np.rint(weights.cumsum(axis=1) * 2.0**32).astype(np.int64)  # [S, V]
        to_come = weights[:, ::-1].cumsum(axis=1)[:, ::-1] - weights  # of later symbols
        ends[to_come <= 0] = 2**32
        return (ends + (np.arange(len(weights))[:, None] << 32)).ravel()


def stream_words(
    automaton: Automaton, num_words: int, length: int, seed: int, chunk: int = CHUNK
) -> Iterator[Batch]:
    """Fresh test words of one length in constant memory: batches of consecutive pieces `[B, <=T]`.

    Joined along T the pieces are `num_words` whole words with a label after every symbol,
    whatever the `chunk` (how many symbols a piece may hold). `scored` is the automaton's own;
    words of different lengths or seeds are independent.
    """
    bits = RandomBits(seed, "test", variant=length)
    sampler = SymbolSampler(automaton)
    outputs = automaton.output.astype(smallest_type(automaton.num_labels))
    state = np.full(num_words, automaton.start, np.int64)
    piece_length = max(1, chunk // num_words)
    for begin in range(0, length, piece_length):
        size = min(piece_length, length - begin)
        drawn = bits.read(begin * num_words, size * num_words).reshape(size, num_words)
        symbols = np.ascontiguousarray(sampler.draw(drawn.T, state))
        states = automaton.states_after(symbols, state)
        state = states[:, -1].astype(np.int64)
        yield Batch(symbols, outputs[states], automaton.scored[states], np.full(num_words, size))
