"""Words drawn from an automaton or a sampler: endless streams to train on, long words to test on.

Letters: N batches, B words per batch, T time, S states, V symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from statetrack.data.batch import Batch, Supervision, label
from statetrack.data.lengths import LengthDistribution
from statetrack.data.randomness import RandomBits, below
from statetrack.errors import SettingsError
from statetrack.sources import Automaton, Sampler, Source
from statetrack.sources.running import Unsigned, smallest_type

CHUNK: Final = 2**20
"""How many symbols of a stream of long words are held at once."""

LONGEST_WHOLE: Final = 100_000
"""The longest word that is drawn whole, as a sampler's words are."""


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
    """Fresh words for ever: lengths from a distribution, symbols as the machine draws them.

    Streams of different seeds or purposes are independent, even at equal batch indices.
    """

    def __init__(
        self,
        machine: Source,
        lengths: LengthDistribution,
        supervision: Supervision,
        seed: int,
        purpose: Literal["train", "validation", "test"],
    ) -> None:
        self._machine = machine
        self._lengths = lengths
        self._supervision = supervision
        self._bits = RandomBits(seed, purpose)
        self._sampler = WordSampler(machine, lengths.longest)

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
        width = batch_size * (1 + self._sampler.num_bits)
        bits = self._bits.read(first * width, num_batches * width).reshape(num_batches, width)
        progress = np.broadcast_to(np.asarray(progress, np.float64), (num_batches,))
        lengths = self._lengths.draw(bits[:, :batch_size], progress[:, None])  # [N, B]
        padded_to = int(self._lengths.longest_at(progress).max())
        word_bits = bits[:, batch_size:].reshape(num_batches, batch_size, self._sampler.num_bits)
        symbols = self._sampler.draw(word_bits, lengths, padded_to)
        return label(self._machine, symbols, lengths, self._supervision)


class WordSampler:
    """Turns random bits into words of up to `longest` symbols, of an automaton or a sampler.

    `num_bits` is how many 32-bit integers a word takes.

    Raises `SettingsError` for words of a sampler that are longer than `LONGEST_WHOLE`.
    """

    def __init__(self, machine: Source, longest: int) -> None:
        self._longest = longest
        if isinstance(machine, Automaton):
            self._symbols: SymbolSampler | None = SymbolSampler(machine)
            self.num_bits = longest
            return
        check_drawn_whole(longest)
        self._symbols, self._words = None, machine
        self.num_bits = machine.num_bits(longest)

    def draw(
        self, bits: NDArray[np.uint32], lengths: NDArray[np.int64], padded_to: int
    ) -> Unsigned:
        """Words `[..., padded_to]` of lengths `[...]`, none greater, from bits `[..., num_bits]`.

        What stands behind a word's end means nothing.
        """
        if self._symbols is not None:
            return self._symbols.draw(bits[..., :padded_to])
        flat = bits.reshape(-1, self.num_bits)
        words = self._words.draw(flat, lengths.reshape(-1), self._longest)
        return words[:, :padded_to].reshape(*bits.shape[:-1], padded_to)


def check_drawn_whole(length: int) -> None:
    """Raises `SettingsError` for words that are too long to be drawn whole."""
    if length > LONGEST_WHOLE:
        raise SettingsError(
            f"length {length}: words that come from a sampler are drawn whole, and can have "
            f"{LONGEST_WHOLE} symbols at most"
        )


class SymbolSampler:
    """Turns random bits into the symbols of an automaton's words, by its weights and slips."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._dtype = smallest_type(automaton.num_symbols)

    def draw(
        self,
        bits: NDArray[np.uint32],
        state: NDArray[np.integer] | None = None,
        position: int = 0,
    ) -> Unsigned:
        """Symbols `[..., T]` from bits `[..., T]`, for words that go on in `state [...]`.

        `state` is the automaton's start where it is left out; `position` says how many symbols
        come before. A symbol that cannot be drawn in a state never is.
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
    def _upper_ends(self) -> NDArray[np.int64]:
        """Where each symbol's part of a state's line of 2**32 points ends: `[S * V]`, rising.

        The lines of all states lie one after the other. A part of weight 0 is empty, also at the
        end of a line, because the last symbol that may be drawn ends exactly where the line does.
        """
        return self._line_up(self._automaton.weights.cumsum(axis=1))

    def _ends_at(self, position: int) -> NDArray[np.int64]:
        """The same at a position of a word that may slip there."""
        weights_end, shift = self._cumulative
        return self._line_up(weights_end + self._automaton.slip_chance(position) * shift)

    @cached_property
    def _cumulative(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The sums of weights, and of what a slip adds to them, up to each symbol: `[S, V]`."""
        return self._automaton.weights.cumsum(axis=1), self._automaton.shift_at_slip.cumsum(axis=1)

    def _line_up(self, cumulative: NDArray[np.float64]) -> NDArray[np.int64]:
        """Ends on the joined lines, `[S * V]`, from ends between 0 and 1, `[S, V]`."""
        ends = np.rint(cumulative * 2.0**32).astype(np.int64)
        ends[self._last] = 2**32
        return (ends + self._line_starts).ravel()

    @cached_property
    def _last(self) -> NDArray[np.bool_]:
        """Where no later symbol of the line can be drawn: `[S, V]`."""
        chances = self._automaton.drawable
        return chances[:, ::-1].cumsum(axis=1)[:, ::-1] <= chances

    @cached_property
    def _line_starts(self) -> NDArray[np.int64]:
        """Where each state's line begins: `[S, 1]`."""
        return np.arange(self._automaton.num_states)[:, None] << 32


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
        symbols = np.ascontiguousarray(sampler.draw(drawn.T, state, begin))
        states = automaton.states_after(symbols, state)
        state = states[:, -1].astype(np.int64)
        yield Batch(symbols, outputs[states], automaton.scored[states], np.full(num_words, size))


def whole_words(
    sampler: Sampler, num_words: int, length: int, seed: int, chunk: int = CHUNK
) -> Iterator[Batch]:
    """Fresh test words of one length from a sampler, a few at a time: batches `[<= num_words, T]`.

    The words are the same whatever the `chunk` (how many symbols a batch may hold); those of
    different lengths or seeds are independent. Raises `SettingsError` where they are too long.
    """
    source = WordSampler(sampler, length)
    bits = RandomBits(seed, "test", variant=length)
    width, at_once = source.num_bits, max(1, chunk // length)
    for first in range(0, num_words, at_once):
        size = min(at_once, num_words - first)
        drawn = bits.read(first * width, size * width).reshape(size, width)
        lengths = np.full(size, length)
        yield label(sampler, source.draw(drawn, lengths, length), lengths, "every")
